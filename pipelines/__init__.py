"""What runs, when, in which order."""

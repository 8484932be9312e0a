"""What carries a value from one step to the next."""

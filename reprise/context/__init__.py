"""What a step gets to read: its input text and its variables."""

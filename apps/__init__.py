"""How a person or a program starts it."""

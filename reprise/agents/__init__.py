"""How an agent answers: the tool loop and its messages."""

"""What an agent may do, one file a tool group."""

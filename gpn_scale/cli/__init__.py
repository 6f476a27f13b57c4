"""The commands: each turns its options into calls of the library and prints a short summary."""

"""The commands: they turn options into calls of the library, and print a few lines of text."""

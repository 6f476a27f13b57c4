"""The commands of the library: options in, files and a few lines of text out."""

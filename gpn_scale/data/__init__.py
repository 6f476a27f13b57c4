"""Graphs: the value object `Graph`, and functions that create it from names, files and objects."""

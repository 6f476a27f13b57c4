"""Graphs: the value object `Graph`, and how to get one from names, files and Python objects."""

"""From names, files and Python objects to one value object: `Graph`."""

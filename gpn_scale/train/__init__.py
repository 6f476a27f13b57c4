"""Finding the parameters, and keeping what was found."""

"""Command-line entry points and the recipes that they run."""

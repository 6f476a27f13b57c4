"""Drift: how predictions, their parts, classes, columns and nodes moved from A to B."""

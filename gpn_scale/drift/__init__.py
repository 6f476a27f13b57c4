"""Drift: movements of predictions, their parts, classes, columns and nodes from A to B."""

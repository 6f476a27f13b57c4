"""Predictions, uncertainty scores, metrics and reports."""

"""From posteriors to scores, metrics and reports."""

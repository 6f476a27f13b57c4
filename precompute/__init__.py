"""Builds stores of approximate top-k personalised-PageRank rows from graphs."""

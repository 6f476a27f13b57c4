"""Stores of approximate top-k personalised-PageRank rows on disk; loads neither torch nor numba."""

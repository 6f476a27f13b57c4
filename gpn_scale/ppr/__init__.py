"""Stores of top-k personalised-PageRank rows, and batches of them, without torch or numba."""

"""From a graph to a store of approximate top-k personalised-PageRank rows."""

"""From a graph and a trained model to predictions: all nodes, some nodes, new nodes."""

"""The paper's experiments: what is measured of a trained model, over a matrix of runs."""

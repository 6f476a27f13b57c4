"""The paper's experiments: measurements of trained models over a matrix of runs."""

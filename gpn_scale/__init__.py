"""Graph Posterior Networks for graphs of any size: per node, the class and how sure it is."""

__version__ = "0.1.0"

"""Layers and edges of PyTorch Geometric, to compare networks with."""

import warnings

import numpy as np
import torch


def pyg():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        from torch_geometric import nn

        return nn


def edge_index(graph):
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    return torch.from_numpy(np.stack([source, graph.indices.astype(np.int64)]))

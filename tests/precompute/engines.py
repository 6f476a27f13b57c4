"""Engines, graphs and dense rows that tests of precompute share."""

import numpy as np

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.transition import transition_matrix
from precompute.mpi import SingleProcess
from precompute.row_engine import RowEngine
from precompute.scratch_memory import new_rows
from tests.oracles import dense_diffusion, dense_ppr, dense_transition


def random_graph(num_nodes=150, degree=4, rng_seed=0):
    ends = np.random.default_rng(rng_seed).integers(num_nodes, size=(2, num_nodes * degree // 2))
    return build_graph(*ends, num_nodes=num_nodes)


def hub_graph(num_nodes, rng_seed=0):
    """A hub, random edges with weights, isolated nodes, and two components."""
    rng = np.random.default_rng(rng_seed)
    half = num_nodes // 2
    source = np.concatenate([np.zeros(half - 1, int), rng.integers(num_nodes - 50, size=num_nodes)])
    target = np.concatenate([np.arange(1, half), rng.integers(num_nodes - 50, size=num_nodes)])
    keep = (source < half) == (target < half)
    source, target = source[keep], target[keep]
    weight = rng.gamma(1.0, size=len(source)) + 0.1
    return build_graph(source, target, num_nodes=num_nodes, edge_weight=weight)


def config_of(normalisation="rw", steps="inf", teleport=0.2, **options):
    diffusion = DiffusionConfig(normalisation=normalisation, steps=steps, teleport=teleport)
    return PPRConfig(diffusion=diffusion, **options)


def engine_of(graph, config, threads=1):
    diffusion = config.diffusion
    transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
    return RowEngine(transition, config, SingleProcess(), threads=threads)


def truth_of(graph, config):
    """Full rows of all nodes, dense."""
    diffusion = config.diffusion
    transition = dense_transition(graph, diffusion.normalisation, diffusion.self_loops)
    if diffusion.steps == "inf":
        return dense_ppr(transition, diffusion.teleport)
    return dense_diffusion(transition, diffusion.teleport, diffusion.steps)


def padded(lists, entries):
    """Rows of (id, weight) pairs."""
    rows = new_rows(len(lists), entries)
    for row, pairs in enumerate(lists):
        rows.sizes[row] = len(pairs)
        for place, (node, weight) in enumerate(pairs):
            rows.ids[row, place], rows.weights[row, place] = node, weight
    return rows


def swept(engine):
    """The rows of all nodes by sweeps, in the order of the nodes."""
    return engine.sweep(lambda *_: None).of(np.arange(engine.num_nodes))


def densify(rows, num_nodes):
    """Padded rows as a matrix; every node stands at most once in a row."""
    dense = np.zeros((len(rows.sizes), num_nodes))
    for row, size in enumerate(rows.sizes):
        ids = rows.ids[row, :size]
        assert len(set(ids.tolist())) == size
        dense[row, ids] = rows.weights[row, :size]
    return dense

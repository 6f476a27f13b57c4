"""The untruncated diffusion on the whole graph: the ground truth for all others."""

import torch

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.power_iteration import PowerIteration
from gpn_scale.diffusion.transition import steps_to_tolerance, transition_matrix
from gpn_scale.nn.sparse import SparseMatrix


def exact_diffusion(
    graph: Graph, config: DiffusionConfig, device: torch.device, dtype: torch.dtype
) -> PowerIteration:
    """The power iteration that `config` asks for, on the whole graph."""
    matrix = transition_matrix(graph, config.normalisation, config.self_loops)
    transition = SparseMatrix(
        torch.from_numpy(matrix.indptr).to(device),
        torch.from_numpy(matrix.indices).to(device),
        torch.from_numpy(matrix.weight).to(device, dtype),
        matrix.num_nodes,
        symmetric=matrix.symmetric,
    )
    return PowerIteration(
        transition,
        teleport=config.teleport,
        steps=config_steps(config),
        in_logs=config.of == "log_evidence",
    )


def config_steps(config: DiffusionConfig) -> int:
    """K; for `inf` the fewest steps that leave at most `tolerance` of the mass on its way."""
    if config.steps == "inf":
        return steps_to_tolerance(config.teleport, config.tolerance)
    return config.steps

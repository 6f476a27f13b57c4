"""Slow, obvious truths that the fast code must agree with."""

import math

import numpy as np
import torch
from torch import Tensor

from gpn_scale.data.graph import Graph
from gpn_scale.nn.flow import RadialLayer


def dense_adjacency(graph: Graph) -> np.ndarray:
    """A, entry by entry, in float64."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    for node in range(graph.num_nodes):
        for edge in range(graph.indptr[node], graph.indptr[node + 1]):
            weight = 1.0 if graph.edge_weight is None else graph.edge_weight[edge]
            adjacency[node, graph.indices[edge]] = weight
    return adjacency


def dense_transition(graph: Graph, normalisation: str, self_loops: bool) -> np.ndarray:
    """S, by the definition: loops, then division by out-weight or by the roots of both weights."""
    adjacency = dense_adjacency(graph)
    for node in range(graph.num_nodes):
        if self_loops or not adjacency[node].any():
            adjacency[node, node] += 1.0
    out_weight, in_weight = adjacency.sum(1), adjacency.sum(0)
    for u in range(graph.num_nodes):
        for v in range(graph.num_nodes):
            if adjacency[u, v]:
                root = np.sqrt(out_weight[u] * in_weight[v])
                adjacency[u, v] /= out_weight[u] if normalisation == "rw" else root
    return adjacency


def dense_ppr(transition: np.ndarray, teleport: float) -> np.ndarray:
    """Personalised PageRank of every node as a row: t (I - (1 - t) S)^-1."""
    return teleport * np.linalg.inv(np.eye(len(transition)) - (1 - teleport) * transition)


def dense_diffusion(transition: np.ndarray, teleport: float, steps: int) -> np.ndarray:
    """The matrix of K power-iteration steps."""
    result = np.eye(len(transition))
    for _ in range(steps):
        result = (1 - teleport) * transition @ result + teleport * np.eye(len(transition))
    return result


def jacobian_log_det(layer: RadialLayer, z_D: Tensor, label: int) -> Tensor:
    """log |det J| of one class's radial map at one point, by autograd."""

    def image(z: Tensor) -> Tensor:
        num_classes = layer.centre_CD.shape[0]
        return layer(z.expand(1, num_classes, -1))[0][0, label]

    return torch.linalg.slogdet(torch.autograd.functional.jacobian(image, z_D)).logabsdet


def textbook_entropy(alpha_NC: Tensor) -> Tensor:
    """Entropy of Dirichlet distributions as torch has it."""
    return torch.distributions.Dirichlet(alpha_NC).entropy()


def known_p_values(
    parts: dict[str, list[str]], score_V: dict[str, np.ndarray], score_N: dict[str, np.ndarray]
) -> dict[str, list[float]]:
    """P-values of every part and of `known`, by counting; the parts' names map to their scores.

    Fisher's sums of -log p are compared as products of counts, which are whole numbers, and are
    equal if they differ by less than 1e-6. A part weighs the same whether one score stands for it
    or two.
    """
    size = len(next(iter(score_V.values())))

    def products(count_of: dict[str, int]) -> dict[str, int]:
        """Exponentials of twice the mean of logarithms: a pair of scores, or one score twice."""
        by_part = {
            part: math.prod(count_of[name] for name in names * (2 // len(names)))
            for part, names in parts.items()
        }
        return by_part | {"known": math.prod(by_part.values())}

    own = [
        products({name: int((s >= s[u]).sum()) for name, s in score_V.items()}) for u in range(size)
    ]
    result: dict[str, list[float]] = {part: [] for part in (*parts, "known")}
    for v in range(len(next(iter(score_N.values())))):
        count_of = {name: 1 + int((s >= score_N[name][v]).sum()) for name, s in score_V.items()}
        for part, value in products(count_of).items():
            if len(parts.get(part, [])) == 1:  # a single score needs no second comparison
                result[part].append(count_of[parts[part][0]] / (1 + size))
                continue
            stranger = sum(each[part] * 10**6 <= value * (10**6 + 2) for each in own)
            result[part].append((1 + stranger) / (1 + size))
    return result


def surprise_by_part(
    parts: dict[str, list[str]], score_V: dict[str, np.ndarray], score_N: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Mean of -log p over the scores of each part, p by counting, of every node."""
    size = len(next(iter(score_V.values())))

    def p_value(name: str, score: float) -> float:
        return (1 + int((score_V[name] >= score).sum())) / (1 + size)

    return {
        part: np.mean([[-np.log(p_value(n, s)) for s in score_N[n]] for n in names], axis=0)
        for part, names in parts.items()
    }

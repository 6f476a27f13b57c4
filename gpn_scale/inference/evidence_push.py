"""Main contributors of many nodes, found by following evidence back along the edges.

Complete rows would take time proportional to nodes x graph. Here only paths that carry a noticeable
part of a node's evidence are followed, so that the time per node hardly depends on the size of the
graph. Shares of contributors are then lower bounds.

Shapes: B nodes, N nodes of the graph, M contributors of each.
"""

from dataclasses import dataclass

import numpy as np

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.power_iteration import config_steps
from gpn_scale.diffusion.sparse_rows import SparseRows, csr_rows, entries_where
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.inference.contributors import Contributors, largest_contributors
from gpn_scale.inference.evidence import EvidenceSummary

_BLOCK_ENTRIES = 4_000_000
"""Largest number of entries of sparse rows in a step, unless a single node needs more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PushedContributors:
    """Contributors of some nodes, and the work spent on finding them.

    >>> none = Contributors(
    ...     node=np.empty((0, 3), np.int64),
    ...     share=np.empty((0, 3)),
    ...     weight=np.empty((0, 3)),
    ...     leading_class=np.empty((0, 3), np.int64),
    ...     tail_share=np.empty(0),
    ... )
    >>> PushedContributors(contributors=none, work=0).work
    0
    """

    contributors: Contributors
    """Contributors, with lower bounds as shares and weights; `tail_share` was not traced."""
    work: int
    """Number of edges that were followed, each once per node and step."""


class EvidencePush:
    """Follows the evidence of nodes back to the nodes that supplied it.

    K steps of the diffusion are followed backwards, level by level: of the weight that has arrived
    at a node, the fraction t stays there and the rest moves on along S; after K levels, all of it
    stays. A weight r that has arrived at node w stands for about r beta_agg(w) of the root's
    evidence. If that is less than the fraction `tolerance` of it, the weight is dropped.

    >>> from gpn_scale import build_graph
    >>> config = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
    >>> evidence = EvidenceSummary(np.array([8.0, 1.0, 0.0]), np.array([0, 1, 1]))
    >>> push = EvidencePush(build_graph([0, 1], [1, 2]), config, evidence)
    >>> push.contributors(np.array([1]), count=2, tolerance=0.0).contributors.share
    array([[0.8, 0.2]])

    Args:
        graph: The graph.
        diffusion: A diffusion of evidence, not of its logarithm.
        evidence: Feature evidence of all nodes of the graph.
    """

    def __init__(self, graph: Graph, diffusion: DiffusionConfig, evidence: EvidenceSummary) -> None:
        matrix = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
        # Products are faster with small integers, which scipy uses if offsets are small as well.
        small = len(matrix.indices) <= np.iinfo(np.int32).max
        offsets = matrix.indptr.astype(np.int32 if small else np.int64)
        self._transition = csr_rows(matrix.weight, matrix.indices, offsets, matrix.num_nodes)
        self._length = np.diff(matrix.indptr)
        self._teleport = diffusion.teleport
        self._steps = config_steps(diffusion)
        self._feature = evidence
        self.evidence = evidence.total
        """Aggregated evidence of all nodes, summed over classes, (N,)."""
        for _ in range(self._steps):
            spread = self._transition @ self.evidence
            self.evidence = (1.0 - self._teleport) * spread + self._teleport * evidence.total

    def contributors(self, nodes: NodeIds, *, count: int, tolerance: float) -> PushedContributors:
        """Return the nodes that supply most of each node's evidence.

        Args:
            nodes: Node ids, (B,).
            count: Number M of contributors to name per node.
            tolerance: Part of a node's evidence below which a weight is dropped; with 0, shares
                are exact.
        """
        if not len(nodes):
            return PushedContributors(contributors=_joined([], count), work=0)
        parts: list[Contributors] = []
        blocks, work = [nodes], 0
        while blocks:
            block = blocks.pop()
            rows, passed = self._rows(block, tolerance)
            work += passed
            if rows is None:  # in two halves, the first of which comes next
                half = len(block) // 2
                blocks += [block[half:], block[:half]]
            else:
                parts.append(self._largest(block, rows, count))
        return PushedContributors(contributors=_joined(parts, count), work=work)

    def _rows(self, nodes: NodeIds, tolerance: float) -> tuple[SparseRows | None, int]:
        """Return the traced weights, (B, N), and the work; None if there are too many nodes."""
        arrived = csr_rows(
            np.ones(len(nodes)), nodes, np.arange(len(nodes) + 1), len(self.evidence)
        )
        least_B = tolerance * self.evidence[nodes]
        kept, work = 0.0 * arrived, 0
        for _ in range(self._steps):
            kept = kept + self._teleport * arrived
            passed = int(self._length[arrived.indices].sum())
            if passed > _BLOCK_ENTRIES and len(nodes) > 1:
                return None, work
            work += passed
            arrived = (1.0 - self._teleport) * (arrived @ self._transition)
            least_E = np.repeat(least_B, np.diff(arrived.indptr))
            carried_E = arrived.data * self.evidence[arrived.indices]
            arrived = entries_where(arrived, carried_E >= least_E)
        return kept + arrived, work

    def _largest(self, nodes: NodeIds, rows: SparseRows, count: int) -> Contributors:
        """Return the entries of each row that supply most evidence."""
        supplied_E = rows.data * self._feature.total[rows.indices]
        return largest_contributors(
            row_ptr=rows.indptr,
            ids_E=rows.indices,
            weight_E=rows.data,
            supplied_E=supplied_E,
            total_B=self.evidence[nodes],
            leading_E=self._feature.leading_class[rows.indices],
            count=count,
        )


def _joined(parts: list[Contributors], count: int) -> Contributors:
    empty = np.empty((0, count))
    return Contributors(
        node=np.concatenate([empty.astype(np.int64), *(each.node for each in parts)]),
        share=np.concatenate([empty, *(each.share for each in parts)]),
        weight=np.concatenate([empty, *(each.weight for each in parts)]),
        leading_class=np.concatenate(
            [empty.astype(np.int64), *(each.leading_class for each in parts)]
        ),
        tail_share=np.concatenate([np.empty(0), *(each.tail_share for each in parts)]),
    )

"""`NodeRows`: the nodes that a page lists, with everything that it shows about each.

Shapes: R listed nodes, M entries of lists.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.page.histograms import FloatArray

SPLITS = ("train", "val", "test")
"""Names of the subsets, in the order of their codes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexLists:
    """A list of indices into `NodeRows.names` for each listed node."""

    start: NDArray[np.int64]
    """Offsets of the lists, (R + 1,)."""
    index: NDArray[np.int64]
    """The entries of all lists, one list after another, (M,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContributorLists:
    """The nodes that supplied most evidence to each listed node, by decreasing share."""

    lists: IndexLists
    """The contributors; the list of a node that is not explained is empty."""
    share: FloatArray
    """Share of the node's evidence, (M,)."""
    weight: FloatArray
    """Diffusion weight, (M,)."""
    adjacent: NDArray[np.bool_]
    """Whether an edge joins the contributor to the node, (M,)."""
    is_bound: NDArray[np.bool_]
    """Whether the shares of a listed node are lower bounds, (R,)."""
    source: str
    """One sentence on the source of the weights, or on why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentMap:
    """Latent positions of the listed nodes in two dimensions."""

    position: FloatArray
    """Positions, (R, 2); NaN for nodes that are not placed."""
    method: str
    explained_variance: tuple[float, float] | None = None
    """Fraction of the variance along each axis; None for a method whose axes have no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeRows:
    """The listed nodes, the strangest first."""

    total: int
    """Number of nodes of the graph."""
    choice: str
    """One sentence on which nodes are listed."""
    node: NodeIds
    """Ids of the listed nodes, (R,)."""
    names: tuple[str, ...]
    """Names of the listed nodes, then of others that lists mention."""
    leading_class: NDArray[np.int64]
    """Class for which a node's own features give most evidence, for each of `names`."""
    predicted: NDArray[np.int64]
    """Predicted class, (R,)."""
    probability: FloatArray
    """Probability of the predicted class, (R,)."""
    label: NDArray[np.int64]
    """Class, or -1 if it is not known, (R,)."""
    split: NDArray[np.int64]
    """Index into `SPLITS`, or -1 for a node of no subset, (R,)."""
    mark: NDArray[np.int64]
    """Index into `marks`, (R,)."""
    marks: tuple[str, ...]
    """Names of marks, joined where a node has several; the first one is empty."""
    evidence: FloatArray
    """log10 of the pseudo-counts, with network, (R,)."""
    own_evidence: FloatArray
    """log10 of the pseudo-counts from own features alone, (R,)."""
    median_evidence: float
    """Median pseudo-counts of the known test nodes."""
    p_known: FloatArray | None
    """P-value that the node is known, (R,); None for a model without p-values."""
    p_parts: Mapping[str, FloatArray]
    """P-values of the parts, (R,) each."""
    reason: NDArray[np.int64]
    """Index into `reasons`, (R,)."""
    reasons: tuple[str, ...]
    """Reasons in words; the first one is empty."""
    degree: NDArray[np.int64]
    """Number of neighbours, (R,)."""
    neighbours: IndexLists
    """Some neighbours of each node."""
    contributors: ContributorLists
    components: LatentMap
    """Positions along the directions of largest variance."""
    near: LatentMap | None
    """Positions at which close nodes stay close, of some nodes; None for too few nodes."""

    @property
    def is_unlabelled(self) -> NDArray[np.bool_]:
        """Whether no class is known of each listed node, (R,)."""
        return np.asarray(self.label < 0)

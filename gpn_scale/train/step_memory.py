"""Model of the memory that a training step takes on a GPU, as a function of its sizes.

It describes `nn/radial_whole.py`, `nn/hidden_whole.py` and `train/device_batch.py`, and a test
compares it with the measured peak. CUDA's libraries take a few hundred MB in addition.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

from gpn_scale.device import SCRATCH_SHARE
from gpn_scale.nn.radial_limits import whole_bytes_per_row

_ENTRY_BYTES = 16
"""A row's entry: index and weight, in the matrix and in its transpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSize:
    """Sizes of a step of feature evidence; the opinion of GPN+ takes less.

    >>> arxiv = StepSize(features=128, hidden=256, hidden_layers=2, latent=16, classes=40)
    >>> arxiv.bytes_per_node, arxiv.bytes_per_root
    (29376, 855744)
    """

    features: int
    """Dense feature columns."""
    hidden: int
    """Width of hidden layers."""
    hidden_layers: int
    """Number of hidden layers, each with batch-norm and dropout."""
    latent: int
    """Latent dimension."""
    classes: int
    """Number of classes."""
    radial_layers: int = 10
    """Radial layers of a flow."""
    roots: int = 512
    """Roots of the batch."""
    nodes_per_root: float = 29.0
    """Nodes that a root's row adds to the batch's support: k + 1, or fewer where roots share."""
    tail_nodes: int = 4096
    """Nodes drawn for the clusters' means."""
    k: int = 32
    """Entries of a row."""
    clusters: int = 32
    """Clusters of the tail."""

    @property
    def nodes(self) -> int:
        """Nodes that the step encodes."""
        return round(self.roots * self.nodes_per_root) + self.tail_nodes

    @property
    def flow_bytes_per_node(self) -> int:
        """Bytes of the flows for one node, if all nodes are computed at once."""
        return whole_bytes_per_row(self.classes, self.latent, self.radial_layers, 4)

    @property
    def other_bytes_per_node(self) -> int:
        """Bytes of all else for one node: features of two batches, hidden layers, evidence."""
        features = 2 * 4 * self.features
        # Of every layer: its input, its activation, and a mask of one byte.
        hidden = self.hidden_layers * self.hidden * (4 + 4 + 1)
        return features + hidden + 4 * 2 * self.latent + 4 * 5 * self.classes

    @property
    def bytes_per_node(self) -> int:
        """Bytes of one node that the step encodes."""
        return self.flow_bytes_per_node + self.other_bytes_per_node

    @property
    def bytes_per_root(self) -> int:
        """Bytes that one more root takes, with the nodes of its row."""
        more = replace(self, roots=self.roots + 1000)
        scratch = more.nodes * more.flow_bytes_per_node
        return (more.bytes(scratch) - self.bytes(scratch)) // 1000

    @property
    def parameters(self) -> int:
        """Number of the model's parameters."""
        widths = [self.features, *[self.hidden] * self.hidden_layers, self.latent]
        maps = sum((a + 1) * b for a, b in pairwise(widths))
        norms = 2 * self.hidden * self.hidden_layers
        return maps + norms + self.radial_layers * self.classes * (self.latent + 2)

    def bytes(self, scratch_bytes: int) -> int:
        """Return the bytes of the whole step: parameters, gradients, Adam's moments, the batch.

        Args:
            scratch_bytes: Memory that the flows may take; those of more nodes are computed in
                parts, each of them twice.
        """
        flows = min(scratch_bytes, self.nodes * self.flow_bytes_per_node)
        entries = self.roots * self.k + self.tail_nodes
        rows = self.roots * (2 * 4 * self.clusters + 64 * self.classes)
        others = self.nodes * self.other_bytes_per_node + 2 * _ENTRY_BYTES * entries + rows
        return 16 * self.parameters + flows + others

    def whole_roots(self, memory_bytes: int) -> int:
        """Return the roots of the largest batch whose flows a GPU of this memory computes at once.

        They have a quarter of it (`SCRATCH_SHARE`).
        """
        nodes = int(SCRATCH_SHARE * memory_bytes) // self.flow_bytes_per_node
        return max(0, int((nodes - self.tail_nodes) / self.nodes_per_root))

    def most_roots(self, memory_bytes: int) -> int:
        """Return the roots of the largest batch that takes four fifths of a GPU of this memory."""
        limit, scratch = int(0.8 * memory_bytes), int(SCRATCH_SHARE * memory_bytes)
        least, most = 0, limit // self.flow_bytes_per_node + 1
        most = max(most, limit // self.other_bytes_per_node + 1)
        while least < most:
            middle = (least + most + 1) // 2
            fits = replace(self, roots=middle).bytes(scratch) <= limit
            least, most = (middle, most) if fits else (least, middle - 1)
        return least

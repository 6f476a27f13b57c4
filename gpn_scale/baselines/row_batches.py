"""Training of comparison models on batches of stored PPR rows.

Shapes: B roots of a batch, U nodes of their rows, C classes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gpn_scale.baselines.appnp import AbstractDiffusedNetwork
from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import no_mixing
from gpn_scale.baselines.training import random_batches
from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.store import PPRStore


class RowBatch(NamedTuple):
    """The rows of some roots, and the features of the nodes in them."""

    weights: SparseMatrix
    """Weights of the nodes in the roots' rows, (B, U)."""
    inputs: Inputs
    """Features of these nodes, each node once; (U, F)."""


def stored_rows(model: AbstractBaseline, view: GraphView, store: Path | None) -> PPRStore:
    """Open the PPR store that a model trains on.

    Raises:
        StoreError: no store was given, or it belongs to another graph or diffusion.
    """
    if store is None:
        raise StoreError(
            f"{model.name} trains on the rows of a PPR store, and none was given: pass store=",
            arguments=("store",),
        )
    return open_rows(store, view.graph, model.config.diffusion)


def row_batch(
    view: GraphView, store: PPRStore, roots: NodeIds, *, normalised: bool = False
) -> RowBatch:
    """Return the batch of some roots.

    Args:
        view: The graph.
        store: Its rows.
        roots: Ids of the roots.
        normalised: Whether the kept weights of every row are scaled to sum to 1.
    """
    rows = store.rows(roots)
    support, position_E = np.unique(rows.ids, return_inverse=True)
    weights_E = rows.weights.astype(np.float64)
    if normalised:
        row_E = rows.row_of_entry()
        weights_E /= np.bincount(row_E, weights_E, minlength=len(roots))[row_E]
    weights_BU = SparseMatrix(
        torch.from_numpy(rows.row_ptr).to(view.device),
        torch.from_numpy(position_E).to(view.device),
        torch.from_numpy(weights_E).to(view.device, view.edges.dtype),
        len(support),
    )
    return RowBatch(weights_BU, view.feature_rows.take(support.astype(np.int64)).inputs)


class AbstractRowNetwork(AbstractDiffusedNetwork):
    """A diffused network that trains on stored rows and predicts by exact diffusion."""

    mode = "minibatch"
    needs_rows = True

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Open the PPR store.

        Raises:
            StoreError: no store was given, or it belongs to another graph or diffusion.
        """
        self._rows = stored_rows(self, view, store)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """Yield the losses of random batches that contain every training node once."""
        for roots, target_B in random_batches(view, self.config.minibatch, generator):
            yield self.loss(self._batch_logits(view, roots, generator), target_B)

    def _batch_logits(self, view: GraphView, roots: NodeIds, generator: torch.Generator) -> Tensor:
        """Return weighted sums of the logits in the roots' rows, each node encoded once; (B, C)."""
        batch = row_batch(view, self._rows, roots)
        first_UH = self.layers.first(batch.inputs)
        return batch.weights @ self.layers.after_first(first_UH, no_mixing, generator)

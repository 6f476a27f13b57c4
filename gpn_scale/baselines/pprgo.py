"""PPRGo: APPNP trained on batches of stored PPR rows (Bojchevski et al., 2020).

Shapes: B roots of a batch, U nodes of their rows, C classes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.appnp import AbstractDiffusedNetwork
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import no_mixing
from gpn_scale.baselines.training import random_batches
from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.nn.sparse import SparseMatrix


class PPRGo(AbstractDiffusedNetwork):
    """A perceptron trained on the strongest entries of PPR rows; predicts by exact diffusion."""

    name = "PPRGo"
    mode = "minibatch"
    needs_rows = True

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Open the PPR store.

        Raises:
            StoreError: no store was given, or it belongs to another graph or diffusion.
        """
        if store is None:
            raise StoreError(
                "PPRGo trains on the rows of a PPR store, and none was given: pass store=",
                arguments=("store",),
            )
        self._rows = open_rows(store, view.graph, self.config.diffusion)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """Yield the losses of random batches that contain every training node once."""
        for roots, target_B in random_batches(view, self.config.minibatch, generator):
            logits_BC = self._batch_logits(view, roots, generator)
            yield functional.cross_entropy(logits_BC, target_B)

    def _batch_logits(self, view: GraphView, roots: NodeIds, generator: torch.Generator) -> Tensor:
        """Return weighted sums of the logits in the roots' rows, each node encoded once; (B, C)."""
        rows = self._rows.rows(roots)
        support, position_E = np.unique(rows.ids, return_inverse=True)
        weights_BU = SparseMatrix(
            torch.from_numpy(rows.row_ptr).to(self.device),
            torch.from_numpy(position_E).to(self.device),
            torch.from_numpy(rows.weights).to(self.device, self.dtype),
            len(support),
        )
        inputs = view.feature_rows.take(support.astype(np.int64)).inputs
        logits_UC = self.layers.after_first(self.layers.first(inputs), no_mixing, generator)
        return weights_BU @ logits_UC

"""APPNP: a perceptron's logits, diffused over the graph; PPRGo: the same from stored rows.

Klicpera et al. (2019); Bojchevski et al. (2020).

Shapes: N nodes, B roots of a batch, U nodes of their rows, C classes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.gcn import AbstractLayers
from gpn_scale.baselines.layers import alone
from gpn_scale.baselines.training import random_batches
from gpn_scale.baselines.view import View
from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.power_iteration import PowerIteration, config_steps
from gpn_scale.errors import StoreError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.store import PPRStore


class AbstractDiffused(AbstractLayers):
    """A perceptron whose logits are diffused by K steps of personalised PageRank."""

    def logits(self, view: View, generator: torch.Generator | None = None) -> Tensor:  # noqa: D102
        config = self.config.diffusion
        matrix = view.edges.transition(config.normalisation)
        diffuse = PowerIteration(matrix, teleport=config.teleport, steps=config_steps(config))
        return diffuse.linear(self.layers(view, alone, generator))

    def predict_view(self, view: View) -> ScoredPrediction:
        """Softmax."""
        return self.answer(self.final_logits(view).softmax(1))


class APPNP(AbstractDiffused):
    """Trained on the whole graph in every step."""

    name = "APPNP"


class PPRGo(AbstractDiffused):
    """Trained on batches of the diffusion's strongest entries; predicts by exact diffusion."""

    name = "PPRGo"
    mode = "minibatch"
    needs_rows = True

    def prepare(self, view: View, store: Path | None) -> None:
        """Opens the rows.

        Raises:
            StoreError: there are none, or they are of another graph or diffusion.
        """
        if store is None:
            raise StoreError(
                "PPRGo trains on the rows of a store: make one with `python -m precompute`"
            )
        fingerprint = view.graph.structure_fingerprint()
        self._rows = PPRStore.open(store, graph_fingerprint=fingerprint)
        for name, value in self.config.diffusion.store_parameters.items():
            stored = self._rows.parameters.get(name)
            if stored != value:
                raise StoreError(
                    f"{store} has rows of {name} {stored}, the model diffuses with {value}: build "
                    "the store again"
                )

    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """The training nodes once, in random batches."""
        for roots, target_B in random_batches(view, self.config.minibatch, generator):
            logits_BC = self._batch_logits(view, roots, generator)
            yield functional.cross_entropy(logits_BC, target_B)

    def _batch_logits(self, view: View, roots: NodeIds, generator: torch.Generator) -> Tensor:
        """Sums of the logits of the roots' neighbours, each encoded once, (B, C)."""
        rows = self._rows.rows(roots)
        support, local = np.unique(rows.ids, return_inverse=True)
        weights = SparseMatrix(
            torch.from_numpy(rows.row_ptr).to(self.device),
            torch.from_numpy(local).to(self.device),
            torch.from_numpy(rows.weights).to(self.device, self.dtype),
            len(support),
        )
        inputs = view.feature_rows.take(support.astype(np.int64)).inputs
        logits_UC = self.layers.after_first(self.layers.first(inputs), alone, generator)
        return weights @ logits_UC

"""VGCN and its variants, trained on batches of nodes with sampled neighbours.

Shapes: B roots of a batch, U nodes of a batch, C classes, H hidden units.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gpn_scale.baselines.ensemble import Ensemble
from gpn_scale.baselines.gcn import AbstractGCN
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.neighbour_sampler import NeighbourBatch, NeighbourSampler
from gpn_scale.baselines.training import random_batches


class AbstractMinibatchGCN(AbstractGCN):
    """A network of graph convolutions that trains on batches and predicts with all edges."""

    mode = "minibatch"

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Create the sampler; a PPR store is not used."""
        limit = self.config.minibatch.neighbours
        hops = self.config.encoder.layers
        self._sampler = NeighbourSampler(view.graph, hops, None if limit == "all" else limit)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """Yield the losses of random batches that contain every training node once."""
        rng = np.random.default_rng([self.config.train.rng_seed, epoch])
        for roots, target_B in random_batches(view, self.config.minibatch, generator):
            batch = self._sampler.batch(roots, rng)
            logits_BC = self._batch_logits(view, batch, generator)
            yield self.loss(logits_BC, target_B)

    def _batch_logits(
        self, view: GraphView, batch: NeighbourBatch, generator: torch.Generator
    ) -> Tensor:
        """Return the logits of the roots, (B, C)."""
        sums = batch.matrices(self.device, self.dtype)
        first_UH = self.layers.first(view.feature_rows.take(batch.nodes).inputs)
        return self.layers.after_first(first_UH, lambda values: next(sums) @ values, generator)


def in_neighbour_batches(base: type[AbstractGCN]) -> type[AbstractGCN]:
    """Return the model `base-minibatch`: the same network, trained on batches."""
    name = f"{base.name}-minibatch"
    return type(name, (AbstractMinibatchGCN, base), {"name": name, "__doc__": base.__doc__})


def ensemble_of(member: type[AbstractGCN]) -> type[Ensemble]:
    """Return VGCN-Ensemble with members that are trained on batches."""
    name = f"{Ensemble.name}-minibatch"
    attributes = {"name": name, "mode": member.mode, "Member": member, "__doc__": Ensemble.__doc__}
    return type(name, (Ensemble,), attributes)

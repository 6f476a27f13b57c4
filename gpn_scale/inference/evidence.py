"""Feature evidence of any nodes of a graph, in chunks, as a trained model sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from gpn_scale.config import FeatureScaling
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import Features, NodeIds
from gpn_scale.inference.encoder_inputs import as_inputs
from gpn_scale.nn.model import GPN

CHUNK_ROWS = 1 << 13
"""Nodes encoded at once: enough for the kernels, little beside everything else."""


@dataclass(frozen=True, slots=True)
class FeatureEvidence:
    """Node ids -> their feature evidence (nodes, C); only their feature rows are read.

    Call it under `evaluating(model)` and `torch.no_grad()`.
    """

    model: GPN
    features: Features
    scaling: FeatureScaling
    device: torch.device
    dtype: torch.dtype

    def __call__(self, nodes: NodeIds) -> Tensor:
        """Of `nodes`, in their order, by chunks."""
        evidence = torch.empty(
            len(nodes), self.model.flow.num_classes, device=self.device, dtype=self.dtype
        )
        for start in range(0, len(nodes), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            rows = scale_features(take_rows(self.features, nodes[part]), self.scaling)
            inputs = as_inputs(rows, self.device, self.dtype)
            evidence[part] = self.model.feature_evidence(inputs)
        return evidence


@contextmanager
def evaluating(model: GPN) -> Iterator[None]:
    """Batch-norm with the statistics of training, whatever the model was doing before."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)

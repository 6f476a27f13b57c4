"""Trained networks, together with all that turns feature rows into the values to diffuse.

Shapes: B nodes, C classes, D latent dimensions, F feature columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import DiffusionConfig, FeatureScaling
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import Features, Graph, NodeIds
from gpn_scale.errors import GraphError, NumericalError
from gpn_scale.evaluation.known_calibration import Average, KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import as_inputs
from gpn_scale.nn.encoder import Encoder, Inputs
from gpn_scale.nn.model import GPN
from gpn_scale.nn.opinion import Opinion

CHUNK_ROWS = 1 << 13
"""Number of nodes encoded at once: enough to keep the kernels busy, with little memory."""


@dataclass(frozen=True, slots=True, eq=False)
class AbstractTrainedPart(ABC):
    """A network, the scaling of its features, and the diffusion of its predictions.

    The network may still be in training: validation uses it then. All methods leave the network in
    the mode, training or evaluation, that it was in.

    >>> issubclass(TrainedModel, AbstractTrainedPart)
    True
    >>> issubclass(TrainedOpinion, AbstractTrainedPart)
    True
    """

    network: GPN | Opinion
    """The network, on `device`."""
    scaling: FeatureScaling
    """Scaling of feature rows, as in training."""
    diffusion: DiffusionConfig
    """Diffusion that aggregates the network's values."""
    device: torch.device
    """Device of all tensors."""
    dtype: torch.dtype
    """Type of the network's real numbers."""

    @property
    @abstractmethod
    def num_classes(self) -> int:
        """Number C of classes."""

    @abstractmethod
    def values(self, inputs: Inputs) -> Tensor:
        """Return the values to diffuse, from scaled feature rows: (B, F) -> (B, C)."""

    def finite_values(self, inputs: Inputs) -> Tensor:
        """Return `values` after checking that all of them are finite.

        Raises:
            NumericalError: some are not, because the model is damaged or features are too large.
        """
        values_BC = self.values(inputs)
        if not bool(torch.isfinite(values_BC).all()):
            raise NumericalError(
                "the model computes values that are not finite: its file is damaged, or features "
                "are far larger than those in training"
            )
        return values_BC

    @property
    def encoder(self) -> Encoder:
        """The network's encoder."""
        return self.network.encoder

    @property
    def num_features(self) -> int:
        """Number F of feature columns."""
        return len(self.encoder.first.shift_F)

    def check_features(self, graph: Graph) -> None:
        """Check that the graph has as many feature columns as the training graph.

        Raises:
            GraphError: the number of columns differs.
        """
        if graph.num_features != self.num_features:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_features} feature columns, but the model was "
                f"trained on {self.num_features}"
            )

    def inputs(self, features: Features) -> Inputs:
        """Return feature rows, scaled, as the encoder takes them."""
        return as_inputs(scale_features(features, self.scaling), self.device, self.dtype)

    def values_of(self, features: Features, nodes: NodeIds) -> Tensor:
        """Return the values to diffuse of `nodes` in their order, (B, C).

        Args:
            features: Feature rows of all nodes; only those of `nodes` are read, in chunks.
            nodes: Node ids, (B,).
        """
        return self._in_chunks(self.finite_values, self.num_classes, features, nodes)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let batch normalisation use the statistics of training within the block."""
        was_training = self.network.training
        self.network.eval()
        try:
            yield
        finally:
            self.network.train(was_training)

    def _in_chunks(
        self,
        compute: Callable[[Inputs], Tensor],
        width: int,
        features: Features,
        nodes: NodeIds,
    ) -> Tensor:
        values = torch.empty(len(nodes), width, device=self.device, dtype=self.dtype)
        with torch.no_grad(), self.evaluating():
            for start in range(0, len(nodes), CHUNK_ROWS):
                chunk = slice(start, start + CHUNK_ROWS)
                values[chunk] = compute(self.inputs(take_rows(features, nodes[chunk])))
        return values


@dataclass(frozen=True, slots=True, eq=False)
class TrainedOpinion(AbstractTrainedPart):
    """The opinion of a GPN+, whose values are logits.

    >>> import numpy as np
    >>> from gpn_scale.config import RunConfig
    >>> source = torch.Generator().manual_seed(1)
    >>> network = Opinion(RunConfig(), num_features=1, num_classes=2, generator=source)
    >>> kind = torch.device("cpu"), torch.float32
    >>> opinion = TrainedOpinion(network, "none", DiffusionConfig(), *kind)
    >>> opinion.values_of(np.array([[0.0], [1.0], [2.0]]), nodes=np.array([2, 0])).shape
    torch.Size([2, 2])
    """

    network: Opinion

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        return self.network.num_classes

    def values(self, inputs: Inputs) -> Tensor:
        """Return the logits before diffusion, (B, C)."""
        logits_BC: Tensor = self.network.encoder(inputs)
        return logits_BC


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel(AbstractTrainedPart):
    """A GPN, whose values are evidence; for GPN+ together with its opinion and calibration.

    >>> import numpy as np
    >>> from gpn_scale.config import RunConfig
    >>> prior_C, source = torch.tensor([0.5, 0.5]), torch.Generator().manual_seed(1)
    >>> network = GPN(RunConfig(), num_features=1, class_prior_C=prior_C, generator=source)
    >>> kind = torch.device("cpu"), torch.float32
    >>> trained = TrainedModel(network, "none", DiffusionConfig(), *kind)
    >>> trained.evidence(np.array([[0.0], [1.0], [2.0]]), nodes=np.array([2, 0])).shape
    torch.Size([2, 2])
    """

    network: GPN
    opinion: TrainedOpinion | None = None
    """The opinion of a GPN+; None for a GPN."""
    calibration: KnownCalibration | None = None
    """Temperature and p-values of a GPN+; None for a GPN, and before it is calibrated."""

    @property
    def num_classes(self) -> int:
        """Number C of classes."""
        return self.network.flow.num_classes

    def values(self, inputs: Inputs) -> Tensor:
        """Return the feature evidence, (B, C)."""
        return self.network.feature_evidence(inputs)

    def evidence(self, features: Features, nodes: NodeIds) -> Tensor:
        """Return the feature evidence of `nodes` in order, (B, C); arguments as in `values_of`."""
        return self.values_of(features, nodes)

    def latent(self, features: Features, nodes: NodeIds) -> Tensor:
        """Return the latent positions of `nodes` in order, (B, D); arguments as in `values_of`."""
        return self._in_chunks(self.network.encoder, self.network.flow.latent, features, nodes)

    def finished(self, prediction: Prediction, average: Average | None) -> Prediction:
        """Return the prediction with calibrated probabilities and p-values, if the model has them.

        The array of probabilities is changed in place.

        Args:
            prediction: An uncalibrated prediction.
            average: Averages the surprise of all predicted nodes over the nodes' rows; None to
                leave surroundings out.
        """
        calibration = self.calibration
        if calibration is None or prediction.energy is None:
            return prediction
        calibration.temper(prediction)
        surprise = calibration.surprise(prediction)
        if not surprise:
            return prediction
        total_N = np.sum(list(surprise.values()), axis=0)
        around_N = None if average is None else average(total_N[:, None])[:, 0]
        p = calibration.p_values(surprise, around_N)
        return replace(prediction, surprise=total_N, p=p)

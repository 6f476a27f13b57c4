"""Base classes of comparison models that are one torch module.

Shapes: N nodes, C classes.
"""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.layers import Layers
from gpn_scale.baselines.training import evaluating, train, warm_up
from gpn_scale.data.graph import Graph
from gpn_scale.inference.encoder_inputs import column_moments
from gpn_scale.nn.encoder import InputLinear
from gpn_scale.train.checkpoint import check_tensors


class AbstractNetwork(AbstractBaseline):
    """A model that is one torch module, trained with early stopping."""

    _module: nn.Module | None = None

    @abstractmethod
    def build(self, view: GraphView, generator: torch.Generator) -> nn.Module:
        """Return the module with its initial values."""

    @abstractmethod
    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """Yield the losses of an epoch's steps."""

    @abstractmethod
    def validation_loss(self, view: GraphView) -> float:
        """Return the loss that decides early stopping."""

    def fit_view(self, view: GraphView, store: Path | None) -> None:  # noqa: D102
        self.prepare(view, store)
        self._module = self.new_module(view, torch.Generator())
        generator = self.generator(1)

        def losses(epoch: int) -> Iterator[Tensor]:
            return self.losses(view, generator, epoch)

        flow = self.flow(self._module)
        if flow is not None:
            warm_up(self._module, flow, losses, self.config.train)
        train(
            self._module,
            losses,
            lambda: self.validation_loss(view),
            self.config.train,
            without_decay=flow,
        )

    def flow(self, module: nn.Module) -> nn.Module | None:
        """Return the part of the module that is warmed up and has no weight decay.

        None, the default, for a module without such a part.
        """
        return None

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Compute what training needs from the graph; the default computes nothing."""

    def new_module(self, view: GraphView, source: torch.Generator) -> nn.Module:
        """Return an untrained module; initial weights are drawn on the CPU for every device."""
        module = self.build(view, source.manual_seed(self.config.train.rng_seed))
        inputs = [part for part in module.modules() if isinstance(part, InputLinear)]
        if inputs and self.config.encoder.standardise:
            moments = column_moments(view.feature_rows.features, "none")
            for part in inputs:
                part.standardise(*moments)
        return module.to(self.device, self.dtype)

    @property
    def module(self) -> nn.Module:
        """The trained network.

        Raises:
            RunError: the model has not been trained.
        """
        if self._module is None:
            raise self.unfitted_error()
        return self._module

    def state(self) -> dict[str, Tensor]:
        """Return the module's tensors."""
        return self.module.state_dict()

    def restore(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        module = self.new_module(self.view(graph), torch.Generator())
        check_tensors(source, tensors, module.state_dict())
        module.load_state_dict(tensors)
        self._module = module.eval()


class AbstractSoftmaxNetwork(AbstractNetwork):
    """A network whose class probabilities are a softmax, trained by cross-entropy."""

    @abstractmethod
    def logits(self, view: GraphView, generator: torch.Generator | None = None) -> Tensor:
        """Return the logits of all nodes, (N, C); with a generator, with the noise of training."""

    def loss(self, logits_BC: Tensor, labels_B: Tensor) -> Tensor:
        """Return the mean training loss of some nodes; the default is the cross-entropy."""
        return functional.cross_entropy(logits_BC, labels_B)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        nodes, labels = view.training
        yield self.loss(self.logits(view, generator)[nodes], labels)

    def validation_loss(self, view: GraphView) -> float:  # noqa: D102
        nodes, labels = view.validation
        return float(self.loss(self.logits(view)[nodes], labels))

    def final_logits(self, view: GraphView) -> Tensor:
        """Return the logits of the trained network without noise or gradients, (N, C)."""
        with evaluating(self.module):
            return self.logits(view)


class AbstractLayeredNetwork(AbstractSoftmaxNetwork):
    """A softmax network whose module is, or contains, `Layers`."""

    def build(self, view: GraphView, generator: torch.Generator) -> nn.Module:  # noqa: D102
        width = view.feature_rows.features.shape[1]
        return Layers(width, view.graph.num_classes, self.config.encoder, generator)

    @property
    def layers(self) -> Layers:
        """The trained network."""
        assert isinstance(self.module, Layers)
        return self.module

    @abstractmethod
    def representation(self, view: GraphView) -> Tensor:
        """Return the last hidden values of all nodes, (N, H), summed over nodes as logits are."""

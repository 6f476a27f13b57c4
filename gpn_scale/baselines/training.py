"""Training with early stopping, and what networks share.

Shapes: N nodes, C classes, H hidden units.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam

from gpn_scale.baselines.model import AbstractBaseline
from gpn_scale.baselines.view import View
from gpn_scale.config import MinibatchConfig, TrainConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import NumericalError
from gpn_scale.inference.encoder_inputs import column_moments
from gpn_scale.nn.encoder import InputLinear
from gpn_scale.train.checkpoint import check_tensors


def train(
    module: nn.Module,
    losses: Callable[[int], Iterator[Tensor]],
    validate: Callable[[], float],
    config: TrainConfig,
) -> None:
    """Adam until the validation loss has not improved for `patience` epochs; best weights stay.

    Args:
        module: Changed in place.
        losses: Epoch, from 1 -> the losses of its steps.
        validate: The validation loss, with the module evaluating.
        config: Epochs, patience, learning rate, weight decay.

    Raises:
        NumericalError: a validation loss is not finite.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimiser = Adam(parameters, lr=config.learning_rate, weight_decay=config.weight_decay)
    best, best_epoch, state = math.inf, 0, {}
    for epoch in range(1, config.epochs + 1):
        module.train()
        for loss in losses(epoch):
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        module.eval()
        with torch.no_grad():
            found = validate()
        if not math.isfinite(found):
            raise NumericalError(
                f"validation loss is {found} in epoch {epoch}, expected a finite number: try a "
                "smaller train.learning_rate or scale the features"
            )
        if found < best:
            best, best_epoch = found, epoch
            state = {name: value.detach().clone() for name, value in module.state_dict().items()}
        if epoch - best_epoch >= config.patience:
            break
    if state:
        module.load_state_dict(state)
    module.eval()


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Batch-norm with the statistics of training, and no gradients."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


class AbstractNetwork(AbstractBaseline):
    """A model that is one torch module."""

    _module: nn.Module | None = None

    @abstractmethod
    def build(self, view: View, generator: torch.Generator) -> nn.Module:
        """The module with its initial values."""

    @abstractmethod
    def losses(self, view: View, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """The losses of an epoch's steps."""

    @abstractmethod
    def validation_loss(self, view: View) -> float:
        """Decides early stopping."""

    def fit_view(self, view: View, store: Path | None) -> None:  # noqa: D102
        self.prepare(view, store)
        self._module = self.new_module(view, torch.Generator())
        generator = self.generator(1)
        train(
            self._module,
            lambda epoch: self.losses(view, generator, epoch),
            lambda: self.validation_loss(view),
            self.config.train,
        )

    def prepare(self, view: View, store: Path | None) -> None:
        """What must be known of the graph before training."""

    def new_module(self, view: View, source: torch.Generator) -> nn.Module:
        """A module at its start; initial values are drawn on the CPU, whatever the device."""
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
            GraphError: there is none yet.
        """
        if self._module is None:
            raise self.unfitted()
        return self._module

    def state(self) -> dict[str, Tensor]:
        """The module's tensors."""
        return self.module.state_dict()

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        module = self.new_module(self.view(graph), torch.Generator())
        check_tensors(source, tensors, module.state_dict())
        module.load_state_dict(tensors)
        self._module = module.eval()


def random_batches(
    view: View, config: MinibatchConfig, generator: torch.Generator
) -> Iterator[tuple[NodeIds, Tensor]]:
    """The training nodes once, in random order: nodes of a batch, and their labels as a tensor.

    A last batch of one node, of which batch-norm has no variance, is joined to the one before it.
    """
    nodes, labels = view.training
    size = config.roots_per_batch(len(nodes))
    order = torch.randperm(len(nodes), generator=generator, device=generator.device)
    stops = list(range(size, len(nodes), size))
    if size > 1 and stops and len(nodes) - stops[-1] == 1:
        stops.pop()
    for start, stop in pairwise([0, *stops, len(nodes)]):
        chosen = order[start:stop]
        yield nodes[chosen].cpu().numpy(), labels[chosen]


def cross_entropy(logits_NC: Tensor, labelled: tuple[Tensor, Tensor]) -> Tensor:
    """Mean over labelled nodes."""
    nodes, labels = labelled
    return functional.cross_entropy(logits_NC[nodes], labels)

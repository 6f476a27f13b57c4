"""Training with early stopping, batches of training nodes, and the loss of softmax networks.

Shapes: N nodes, C classes.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, count, islice, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.config import MinibatchConfig, TrainConfig
from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import NumericalError


def train(
    module: nn.Module,
    losses: Callable[[int], Iterator[Tensor]],
    validate: Callable[[], float],
    config: TrainConfig,
    *,
    without_decay: nn.Module | None = None,
) -> None:
    """Train with Adam until the validation loss has not improved for `patience` epochs.

    The module ends with the weights of the best epoch.

    Args:
        module: Network to train, changed in place.
        losses: Function from an epoch, counted from 1, to the losses of its steps.
        validate: Function that returns the validation loss; the module is then in evaluation mode.
        config: Epochs, patience, learning rate and weight decay.
        without_decay: Part of the module that has no weight decay; None for none.

    Raises:
        NumericalError: a validation loss is not finite.
    """
    optimiser = _new_optimiser(module, config, without_decay)
    best_loss, best_epoch, best_state = math.inf, 0, {}
    for epoch in range(1, config.epochs + 1):
        _train_epoch(module, optimiser, losses(epoch))
        module.eval()
        with torch.no_grad():
            loss = _finite(validate(), epoch)
        if loss < best_loss:
            best_loss, best_epoch = loss, epoch
            state = module.state_dict()
            best_state = {name: value.detach().clone() for name, value in state.items()}
        if epoch - best_epoch >= config.patience:
            break
    if best_state:
        module.load_state_dict(best_state)
    module.eval()


def warm_up(
    module: nn.Module,
    part: nn.Module,
    losses: Callable[[int], Iterator[Tensor]],
    config: TrainConfig,
) -> None:
    """Train a part of the module alone for `warmup_steps` steps, those of epochs 0, 0, ...

    Args:
        module: Network, of which only `part` is changed.
        part: The part to train, without weight decay.
        losses: Function from an epoch to the losses of its steps.
        config: Learning rate and number of steps.
    """
    optimiser = Adam(part.parameters(), lr=config.learning_rate)
    steps = chain.from_iterable(losses(0) for _ in count())
    _train_epoch(module, optimiser, islice(steps, config.warmup_steps))


def _new_optimiser(module: nn.Module, config: TrainConfig, without_decay: nn.Module | None) -> Adam:
    free = [] if without_decay is None else list(without_decay.parameters())
    known = {id(parameter) for parameter in free}
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    decayed = [parameter for parameter in parameters if id(parameter) not in known]
    groups: list[dict[str, Any]] = [{"params": decayed, "weight_decay": config.weight_decay}]
    if free:
        groups.append({"params": free, "weight_decay": 0.0})
    return Adam(groups, lr=config.learning_rate)


def _train_epoch(module: nn.Module, optimiser: Adam, losses: Iterator[Tensor]) -> None:
    module.train()
    for loss in losses:
        module.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()


def _finite(validation_loss: float, epoch: int) -> float:
    if not math.isfinite(validation_loss):
        raise NumericalError(
            f"validation loss is {validation_loss} in epoch {epoch}, expected a finite number: try "
            "a smaller train.learning_rate or scale the features",
            arguments=("train.learning_rate", "data.feature_scaling"),
        )
    return validation_loss


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put the module into evaluation mode, without gradients, while the block runs."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)


def random_batches(
    view: GraphView, config: MinibatchConfig, generator: torch.Generator
) -> Iterator[tuple[NodeIds, Tensor]]:
    """Yield every training node once, in random order: the nodes of a batch, and their labels.

    A last batch of one node, for which batch-norm has no variance, joins the batch before it.
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
    """Return the mean cross-entropy of the labelled nodes, given as ids and labels."""
    nodes, labels = labelled
    return functional.cross_entropy(logits_NC[nodes], labels)

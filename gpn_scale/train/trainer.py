"""Warm-up, main phase, early stopping; knows no files, flags or environment."""

import math
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor
from torch.optim import Adam

from gpn_scale.config import TrainConfig
from gpn_scale.distributed import World
from gpn_scale.errors import NumericalError
from gpn_scale.memory import give_back_freed_memory
from gpn_scale.nn.model import GPN
from gpn_scale.train.task import AbstractTask, Forward, Validation


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """What one epoch brought; a line of the metrics log."""

    epoch: int
    """Counted from 1, warm-up included."""
    phase: str
    """`warmup` or `main`, at its end."""
    loss: float
    """Sum over the training nodes; with several steps, the mean of their estimates of it."""
    val_cross_entropy: float
    val_accuracy: float
    best_epoch: int
    """Epoch of the best validation cross-entropy so far."""


@dataclass(slots=True)
class Progress:
    """How far training has come; with the tensors, all that a resumed run needs."""

    epoch: int = 0
    """Finished epochs, warm-up included."""
    step: int = 0
    """Steps done of the epoch after these."""
    loss_sum: float = 0.0
    """Of these steps."""
    best_epoch: int = 0
    best_cross_entropy: float = math.inf
    best_state: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers at `best_epoch`."""


@dataclass(slots=True)
class Timing:
    """Where the seconds of training went in this process."""

    data: float = 0.0
    """Waiting for batches."""
    forward: float = 0.0
    backward: float = 0.0
    """With the optimiser's step."""
    communication: float = 0.0
    """Waiting for other processes included; a part of the two before, and of validation."""
    validation: float = 0.0
    roots: int = 0
    """Training nodes whose loss was computed meanwhile, by all processes together."""

    @property
    def seconds(self) -> dict[str, float]:
        """All of them, by name."""
        return {name: value for name, value in asdict(self).items() if name != "roots"}

    @property
    def roots_per_second(self) -> float:
        """While training, validation left out; 0 before any."""
        seconds = self.data + self.forward + self.backward
        return self.roots / seconds if seconds > 0 else 0.0

    def since(self, before: "Timing") -> "Timing":
        """What was added to an earlier one."""
        old = asdict(before)
        return Timing(**{name: value - old[name] for name, value in asdict(self).items()})


ObserveStep = Callable[[int, int, int], None]
"""(epoch, steps done in it, its number of steps), after every optimiser step."""


class Interrupted(Exception):
    """A process was asked to stop; all have done so after the same step."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Trainer:
    """Moves a model towards a task, epoch by epoch, remembering its best state.

    `records()` may be left after any step: `progress`, the model, `optimiser` and `generator` then
    hold everything that a later trainer needs to go on to the same weights. `observe_step` may be
    set to see the steps of long epochs, `stop_asked` to have all processes stop when one is asked.

    Args:
        model: Changed in place.
        task: Where losses come from.
        config: Epochs, patience, learning rate.
        generator: Source of dropout; its device is the model's.
        world: The processes that train this model together.
    """

    def __init__(
        self,
        model: GPN,
        task: AbstractTask,
        config: TrainConfig,
        generator: torch.Generator,
        world: World | None = None,
    ) -> None:
        self.model = model
        self.task = task
        self.config = config
        self.generator = generator
        self.world = world or World()
        self.progress = Progress()
        self.timing = Timing()
        self.observe_step: ObserveStep = lambda epoch, step, steps: None
        self.stop_asked: Callable[[], int | None] = lambda: None
        self._forward: Forward | None = None  # once all processes have a trainer
        self.optimiser = self.new_optimiser(self.phase(1))

    def new_optimiser(self, phase: str) -> Adam:
        """Adam over the flows alone (`warmup`) or, with decay on the encoder, over all (`main`)."""
        flows = {"params": list(self.model.flow.parameters()), "weight_decay": 0.0}
        encoder = {
            "params": list(self.model.encoder.parameters()),
            "weight_decay": self.config.weight_decay,
        }
        groups = [flows] if phase == "warmup" else [encoder, flows]
        groups = [group for group in groups if group["params"]]
        return Adam(groups, lr=self.config.learning_rate)

    def learning_rate(self, step: int) -> float:
        """Of an optimiser step counted from 1 over all epochs."""
        if self.config.schedule == "constant":
            return self.config.learning_rate
        steps = max((self.warmup_epochs + self.config.epochs) * self.task.num_steps, 1)
        return self.config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (step - 1) / steps))

    def phase(self, step: int) -> str:
        """Of an optimiser step counted from 1 over all epochs."""
        return "warmup" if step <= self.warmup_steps else "main"

    @property
    def warmup_steps(self) -> int:
        """Steps of warm-up; none for flows without layers, which have nothing to warm up."""
        return self.config.warmup_steps if any(True for _ in self.model.flow.parameters()) else 0

    @property
    def warmup_epochs(self) -> int:
        """Epochs that are warm-up to their last step; they do not count as training."""
        return self.warmup_steps // self.task.num_steps

    @property
    def finished(self) -> bool:
        """Whether all epochs are done or validation has stopped improving."""
        done = self.progress.epoch - self.warmup_epochs
        stale = self.progress.epoch - self.progress.best_epoch
        return done >= self.config.epochs or (done > 0 and stale >= self.config.patience)

    def records(self) -> Iterator[EpochRecord]:
        """Trains until finished, one epoch per record.

        Raises:
            NumericalError: a loss or validation score is not finite.
            Interrupted: a process was asked to stop.
        """
        if self._forward is None:
            self._forward = self.world.parallel(self.model)
            if self.world.size > 1:
                self.model.encoder.divide(self.world.total)
        while not self.finished:
            yield self._epoch()

    def restore_best(self) -> None:
        """Puts the best state into the model, which is then no longer the one to train on."""
        if self.progress.best_state:
            self.model.load_state_dict(self.progress.best_state)
        self.model.eval()

    def _epoch(self) -> EpochRecord:
        progress = self.progress
        epoch = progress.epoch + 1
        phase = self.phase(epoch * self.task.num_steps)
        loss = self._optimise(epoch)
        self.model.eval()
        began = time.monotonic()
        give_back_freed_memory()  # so that the needs of training and validation do not add up
        validation = self.task.validate(self.model)
        give_back_freed_memory()
        self.timing.validation += time.monotonic() - began
        _require_finite(
            validation.cross_entropy, "validation cross-entropy", f"epoch {epoch} ({phase})"
        )
        progress.epoch, progress.step, progress.loss_sum = epoch, 0, 0.0
        if phase == "main":
            self._remember(validation)
        return EpochRecord(
            epoch=epoch,
            phase=phase,
            loss=loss,
            val_cross_entropy=validation.cross_entropy,
            val_accuracy=validation.accuracy,
            best_epoch=progress.best_epoch,
        )

    def _optimise(self, epoch: int) -> float:
        """The steps of an epoch that are still to do; returns the mean loss of all of them."""
        self.model.train()
        progress, steps = self.progress, self.task.num_steps
        done = (epoch - 1) * steps
        losses = self._losses(epoch)
        for loss in losses:
            step = done + progress.step + 1
            if step == self.warmup_steps + 1:
                self.optimiser = self.new_optimiser("main")
            phase = self.phase(step)
            number = self.stop_asked() or 0
            sums = self.world.totals_later([float(loss.detach()), float(number)])
            self._backward(loss)
            value, asked = sums()
            where = f"step {progress.step + 1} of {steps} of epoch {epoch} ({phase})"
            _require_finite(value, "training loss", where)
            self._step(self.learning_rate(step))
            progress.step += 1
            progress.loss_sum += value
            self.observe_step(epoch, progress.step, steps)
            if asked:
                losses.close()
                raise Interrupted(number or signal.SIGTERM)
        return progress.loss_sum / steps

    def _losses(self, epoch: int) -> Generator[Tensor, None, None]:
        """The task's losses, with the time that they take."""
        timing, task = self.timing, self.task
        losses = task.losses(
            self.model, self.generator, epoch, first=self.progress.step, forward=self._forward
        )
        while True:
            began, waited = time.monotonic(), task.data_seconds
            loss = next(losses, None)
            waited = task.data_seconds - waited
            timing.data += waited
            timing.forward += time.monotonic() - began - waited
            timing.roots = task.roots_seen
            if loss is None:
                return
            yield loss

    def _backward(self, loss: Tensor) -> None:
        began = time.monotonic()
        self.model.zero_grad(set_to_none=True)
        # Gradients are averaged over the processes, the loss is the sum of their parts.
        (loss * self.world.size).backward()  # type: ignore[no-untyped-call]
        self.timing.backward += time.monotonic() - began

    def _step(self, learning_rate: float) -> None:
        began = time.monotonic()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.step()
        self.timing.backward += time.monotonic() - began
        self.timing.communication = self.world.seconds

    def _remember(self, validation: Validation) -> None:
        if validation.cross_entropy < self.progress.best_cross_entropy:
            self.progress.best_cross_entropy = validation.cross_entropy
            self.progress.best_epoch = self.progress.epoch
            self.progress.best_state = {
                name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()
            }


def _require_finite(value: float, what: str, where: str) -> None:
    if not math.isfinite(value):
        raise NumericalError(
            f"{what} is {value} in {where}, expected a finite number: "
            "try a smaller train.learning_rate or scale the features"
        )

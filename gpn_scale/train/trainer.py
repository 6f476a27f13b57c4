"""The training loop: warm-up, main phase, early stopping; no files, flags or environment."""

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field

import torch
from torch import Tensor
from torch.optim import Adam

from gpn_scale.config import TrainConfig
from gpn_scale.device import device_rule
from gpn_scale.distributed import World
from gpn_scale.errors import NumericalError
from gpn_scale.memory import give_back_freed_memory
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.step_totals import StepTotals
from gpn_scale.train.task import AbstractTask, TrainedPart, Validation


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """Result of one epoch; a line of the metrics log."""

    epoch: int
    """Number of the epoch, counted from 1, warm-up included."""
    phase: str
    """Phase at the end of the epoch, `warmup` or `main`."""
    loss: float
    """Sum of the losses of the training nodes; with several steps, the mean of their estimates."""
    val_cross_entropy: float
    """Mean cross-entropy of the validation nodes."""
    val_accuracy: float
    """Accuracy on the validation nodes."""
    best_epoch: int
    """Epoch of the best validation cross-entropy so far."""
    part: str = "features"
    """Part of the model: `features`, or `opinion` for the opinion of GPN+."""


@dataclass(slots=True)
class TrainingState:
    """Progress of the training; together with the tensors, everything that a resumed run needs."""

    epoch: int = 0
    """Number of finished epochs, warm-up included."""
    step: int = 0
    """Number of finished steps of the current epoch."""
    loss_sum: float = 0.0
    """Sum of the losses of these steps."""
    best_epoch: int = 0
    """Epoch of the best validation cross-entropy so far; 0 before the main phase."""
    best_cross_entropy: float = math.inf
    """Validation cross-entropy at `best_epoch`."""
    best_state: dict[str, Tensor] = field(default_factory=dict)
    """Parameters and buffers at `best_epoch`."""
    seconds: float = 0.0
    """Time that training took until the last step, including that before it was resumed."""


@dataclass(slots=True)
class Timing:
    """Time that this process has spent in each phase of training, in seconds."""

    data: float = 0.0
    """Time spent waiting for batches."""
    forward: float = 0.0
    """Time of the forward passes."""
    backward: float = 0.0
    """Time of the backward passes and of the optimiser's steps."""
    communication: float = 0.0
    """Time of communication, which is part of forward, backward and validation.

    It includes waiting for slower processes."""
    validation: float = 0.0
    """Time of validation."""
    roots: int = 0
    """Number of training nodes whose loss was computed, by all processes together."""

    @property
    def seconds(self) -> dict[str, float]:
        """All times by name, in seconds."""
        return {name: value for name, value in asdict(self).items() if name != "roots"}

    @property
    def roots_per_second(self) -> float:
        """Training nodes per second, validation left out; 0 before the first step."""
        seconds = self.data + self.forward + self.backward
        return self.roots / seconds if seconds > 0 else 0.0

    def since(self, before: "Timing") -> "Timing":
        """Return the difference to an earlier timing."""
        old = asdict(before)
        return Timing(**{name: value - old[name] for name, value in asdict(self).items()})


ObserveStep = Callable[[int, int, int], None]
"""Called after every optimiser step with (epoch, steps done in it, its number of steps)."""


class Interrupted(Exception):
    """Raised in all processes, after the same step, when one was asked to stop.

    Args:
        number: Number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Trainer:
    """Trains a model on a task, epoch by epoch, and keeps its best state.

    Iteration over `records()` may end after any step: `state`, the model, `optimiser` and
    `generator` then hold everything that a later trainer needs to reach the same weights. Set
    `observe_step` to see the steps of long epochs, and `stop_asked` to have all processes stop when
    one is asked.

    Args:
        model: Network to train, changed in place.
        task: Source of the losses.
        config: Epochs, patience, learning rate.
        generator: Source of dropout, on the host.
        world: The processes that train this model together.
    """

    def __init__(
        self,
        model: TrainedPart,
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
        self.state = TrainingState()
        self.timing = Timing()
        self.observe_step: ObserveStep = lambda epoch, step, steps: None
        self.stop_asked: Callable[[], int | None] = lambda: None
        self._unread: deque[StepTotals] = deque()
        self._asked = 0
        self._is_shared = False  # whether all processes have a trainer, and the same weights
        self._counted_until = time.monotonic()
        self.optimiser = self.new_optimiser(self.phase(1))

    @property
    def part(self) -> str:
        """The part of the model that is trained: `features` or `opinion`."""
        return "opinion" if isinstance(self.model, Opinion) else "features"

    def new_optimiser(self, phase: str) -> Adam:
        """Return Adam for the flows (`warmup`), or for all with encoder weight decay (`main`)."""
        flows = {"params": self.model.warmup_parameters(), "weight_decay": 0.0}
        encoder = {
            "params": list(self.model.encoder.parameters()),
            "weight_decay": self.config.weight_decay,
        }
        groups = [flows] if phase == "warmup" else [encoder, flows]
        groups = [group for group in groups if group["params"]]
        fused = True if self._runs_ahead else None
        return Adam(groups, lr=self.config.learning_rate, fused=fused)

    @property
    def _runs_ahead(self) -> bool:
        """Whether steps are queued on the device before the loss of the last one is read."""
        device = self.model.encoder.first.weight.device
        return device_rule(device).runs_ahead

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of an optimiser step, counted from 1 over all epochs."""
        if self.config.schedule == "constant":
            return self.config.learning_rate
        steps = max((self.warmup_epochs + self.config.epochs) * self.task.num_steps, 1)
        return self.config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (step - 1) / steps))

    def phase(self, step: int) -> str:
        """Return the phase of an optimiser step, counted from 1 over all epochs."""
        return "warmup" if step <= self.warmup_steps else "main"

    @property
    def warmup_steps(self) -> int:
        """Number of warm-up steps; 0 for flows without layers, which have no parameters."""
        return self.config.warmup_steps if self.model.warmup_parameters() else 0

    @property
    def warmup_epochs(self) -> int:
        """Number of epochs that consist of warm-up alone; they do not count as training."""
        return self.warmup_steps // self.task.num_steps

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or validation has stopped improving."""
        done = self.state.epoch - self.warmup_epochs
        stale = self.state.epoch - self.state.best_epoch
        return done >= self.config.epochs or (done > 0 and stale >= self.config.patience)

    def records(self) -> Iterator[EpochRecord]:
        """Train until finished; yield one record per epoch.

        Raises:
            NumericalError: a loss or validation score is not finite.
            Interrupted: a process was asked to stop.
        """
        self._counted_until = time.monotonic()
        if not self._is_shared:
            self._is_shared = True
            self.world.share_state(self.model)
            if self.world.size > 1:
                self.model.encoder.divide(self.world.total)
        while not self.finished:
            yield self._epoch()
        self._count_seconds()

    def restore_best(self) -> None:
        """Put the best state into the model, after which it must not be trained further."""
        if self.state.best_state:
            self.model.load_state_dict(self.state.best_state)
        self.model.eval()

    def _epoch(self) -> EpochRecord:
        state = self.state
        epoch = state.epoch + 1
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
        state.epoch, state.step, state.loss_sum = epoch, 0, 0.0
        if phase == "main":
            self._remember(validation)
        self._count_seconds()
        return EpochRecord(
            epoch=epoch,
            phase=phase,
            loss=loss,
            val_cross_entropy=validation.cross_entropy,
            val_accuracy=validation.accuracy,
            best_epoch=state.best_epoch,
            part=self.part,
        )

    def _optimise(self, epoch: int) -> float:
        """Do the remaining steps of an epoch; return the mean loss of all its steps."""
        self.model.train()
        state, steps = self.state, self.task.num_steps
        done = (epoch - 1) * steps
        losses = self._losses(epoch)
        for loss in losses:
            step = done + state.step + 1
            if step == self.warmup_steps + 1:
                self.optimiser = self.new_optimiser("main")
            phase = self.phase(step)
            where = f"step {state.step + 1} of {steps} of epoch {epoch} ({phase})"
            totals = self._backward(loss, self.stop_asked() or 0, where)
            self._unread.append(totals)
            if self._runs_ahead:
                totals.guard(self.optimiser)
                self._read(leave=1)
            else:
                self._read()
            self._step(self.learning_rate(step))
            state.step += 1
            self._count_seconds()
            self.observe_step(epoch, state.step, steps)
            if self._asked:
                losses.close()
                self.catch_up()
                number, self._asked = self._asked, 0
                raise Interrupted(number)
        self.catch_up()
        return state.loss_sum / steps

    def catch_up(self) -> None:
        """Wait for the losses of all steps so far; after that, `state` is complete.

        Raises:
            NumericalError: one of them is not finite.
        """
        self._read()

    def _read(self, *, leave: int = 0) -> None:
        """Read the losses of all steps but the last few, and requests to stop."""
        while len(self._unread) > leave:
            totals = self._unread.popleft()
            value, asked = totals.read()
            _require_finite(value, "training loss", totals.where)
            self.state.loss_sum += value
            if asked:
                self._asked = totals.number or signal.SIGTERM

    def _losses(self, epoch: int) -> Generator[Tensor, None, None]:
        """Yield the task's losses and measure the time that they take."""
        timing, task = self.timing, self.task
        losses = task.losses(self.model, self.generator, epoch, first=self.state.step)
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

    def _backward(self, loss: Tensor, number: int, where: str) -> StepTotals:
        """Compute the gradients, and sum them over all processes together with the loss."""
        began = time.monotonic()
        self.model.zero_grad(set_to_none=True)
        # A process has an equal part of the same loss, but the gradients of its own nodes alone.
        whole = loss if self.world.size == 1 else loss * self.world.size
        whole.backward()  # type: ignore[no-untyped-call]
        totals = StepTotals.summed(loss, number, where, self.model.parameters(), self.world)
        self.timing.backward += time.monotonic() - began
        return totals

    def _step(self, learning_rate: float) -> None:
        began = time.monotonic()
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate
        self.optimiser.step()
        self.timing.backward += time.monotonic() - began
        self.timing.communication = self.world.seconds

    def _count_seconds(self) -> None:
        """Add the time since the last call to the state."""
        now = time.monotonic()
        self.state.seconds += now - self._counted_until
        self._counted_until = now

    def _remember(self, validation: Validation) -> None:
        if validation.cross_entropy < self.state.best_cross_entropy:
            self.state.best_cross_entropy = validation.cross_entropy
            self.state.best_epoch = self.state.epoch
            self.state.best_state = {
                name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()
            }


def _require_finite(value: float, what: str, where: str) -> None:
    if not math.isfinite(value):
        raise NumericalError(
            f"{what} is {value} in {where}, expected a finite number: "
            "try a smaller train.learning_rate or scale the features",
            arguments=("train.learning_rate", "data.feature_scaling"),
        )

"""Processes that train together: who is who, and sums over all; sole user of torch.distributed."""

import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel

from gpn_scale.errors import ConfigError, ElsewhereError, GpnScaleError, RunError
from gpn_scale.rank_part import RankPart

_PIECE_BYTES = 16 << 20
_MESSAGE_BYTES = 2048
_AWAKE_SECONDS = 0.05
# Running moments are computed from sums over all processes, and so are the same without copying.
_OWN_BUFFERS: dict[str, Any] = {
    name: False
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel).parameters
}
if len(_OWN_BUFFERS) == 2:  # the second is the old name of the first
    del _OWN_BUFFERS["broadcast_buffers"]


@dataclass(slots=True)
class World:
    """All processes of a run, seen from one of them; alone by default, and then all is a no-op.

    What is summed is the same bits in every process afterwards, so that decisions taken from it
    are the same everywhere.
    """

    part: RankPart = field(default_factory=RankPart)
    local_rank: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seconds: float = 0.0
    """Spent in communication so far, waiting for slower processes included."""

    @property
    def rank(self) -> int:
        """Number of this process."""
        return self.part.rank

    @property
    def size(self) -> int:
        """Number of processes."""
        return self.part.size

    @property
    def is_first(self) -> bool:
        """Whether it is this process that talks and writes."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """Sum over all processes, without gradient."""
        if self.size == 1:
            return tensor
        summed = tensor.detach().clone()
        self._sum_(summed)
        return summed

    def joined(self, own_NC: Tensor, run: slice, count: int) -> Tensor:
        """All `count` rows, of which each process has a run; differentiable.

        The gradient of a row is the sum of what the processes do with it.
        """
        if self.size == 1:
            return own_NC
        rows: Tensor = _Joined.apply(own_NC, run, count, self)  # type: ignore[no-untyped-call]
        return rows

    def totals(self, values: Sequence[float]) -> list[float]:
        """Sums of some numbers over all processes, in float64."""
        return self.totals_later(values)()

    def totals_later(self, values: Sequence[float]) -> Callable[[], list[float]]:
        """The same, to be called for later; meanwhile other work may go on."""
        if self.size == 1:
            return lambda: list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        work = dist.all_reduce(tensor, async_op=True)

        def result() -> list[float]:
            self._wait(work)
            return [float(value) for value in tensor.tolist()]

        return result

    def total_into(self, array: NDArray[Any]) -> None:
        """Sums an array over all processes, in place and in pieces."""
        if self.size == 1:
            return
        flat = array.reshape(-1)
        step = max(1, _PIECE_BYTES // array.itemsize)
        for start in range(0, len(flat), step):
            piece = torch.from_numpy(np.array(flat[start : start + step])).to(self.device)
            self._sum_(piece)
            flat[start : start + step] = piece.cpu().numpy()

    def barrier(self) -> None:
        """Waits for all processes."""
        self.totals([0.0])

    def parallel(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over all processes in every backward pass."""
        if self.size == 1:
            return model
        # Its sums and those within the backward pass mix, but in the same order in every process.
        parallel = DistributedDataParallel(model, **_OWN_BUFFERS)
        parallel.register_comm_hook(self, _timed_all_reduce)
        return parallel

    def require_same(self, **facts: str) -> None:
        """Refuses processes whose facts differ from those of process 0.

        Raises:
            RunError: the first fact that differs, and whose.
        """
        for name, text in facts.items():
            digest = hashlib.blake2b(text.encode(), digest_size=32).digest()
            prints = self._gathered(digest, 32)
            other = next((rank for rank, value in enumerate(prints) if value != prints[0]), None)
            if other is not None:
                kind = RunError if self.is_first else ElsewhereError
                raise kind(
                    f"rank {other} has another {name} than rank 0, expected the same on all: give "
                    "all ranks the same code, files and options"
                )

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """A block that every process runs; where one refuses its input, all end with an error.

        The block may not wait for other processes.

        Raises:
            GpnScaleError: that of the first process that has one; `ElsewhereError` in the others.
        """
        problem: GpnScaleError | None = None
        try:
            yield
        except GpnScaleError as error:
            problem = error
        words = "" if problem is None else str(problem)
        texts = self._gathered(words.encode()[:_MESSAGE_BYTES], _MESSAGE_BYTES)
        failed = [rank for rank, text in enumerate(texts) if text]
        if failed and failed[0] != self.rank:
            said = texts[failed[0]].decode(errors="replace")
            raise ElsewhereError(f"rank {failed[0]} of {self.size} stopped: {said}") from problem
        if problem is not None:
            raise problem

    def _gathered(self, message: bytes, width: int) -> list[bytes]:
        """The messages of all processes, each of at most `width` bytes without trailing zeros."""
        if self.size == 1:
            return [message.rstrip(b"\0")]
        padded = np.frombuffer(message.ljust(width, b"\0"), np.uint8)
        table = np.zeros((self.size, width), np.int32)
        table[self.rank] = padded
        self.total_into(table)
        return [row.astype(np.uint8).tobytes().rstrip(b"\0") for row in table]

    def _sum_(self, tensor: Tensor) -> None:
        """Sums over all processes, in place."""
        self._wait(dist.all_reduce(tensor, async_op=True))

    def _wait(self, work: Any) -> None:
        """Waits for a sum and counts the time."""
        began = time.monotonic()
        if self.device.type == "cpu":
            # A process that sleeps is woken late, by milliseconds on a virtual machine, and a step
            # has seven sums. So it stays awake for a while, but lets gloo's threads have the core.
            while not work.is_completed() and time.monotonic() - began < _AWAKE_SECONDS:
                os.sched_yield()
        work.wait()
        self.seconds += time.monotonic() - began


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own_NC: Tensor, run: slice, count: int, world: World) -> Tensor:
        ctx.world, ctx.run = world, run
        all_NC = own_NC.new_zeros(count, *own_NC.shape[1:])
        all_NC[run] = own_NC
        world._sum_(all_NC)
        return all_NC

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NC: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.world.total(grad_NC.contiguous())[ctx.run], None, None, None


def _timed_all_reduce(
    world: World,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[Tensor]:
    """What DDP does without a hook, and how long it takes, computation beside it included."""
    began = time.monotonic()
    work = dist.all_reduce(bucket.buffer().div_(world.size), async_op=True)

    def finished(future: Any) -> Tensor:
        world.seconds += time.monotonic() - began
        value: Tensor = future.value()[0]
        return value

    summed: torch.futures.Future[Tensor] = work.get_future().then(finished)
    return summed


@contextmanager
def connected(device: torch.device, *, timeout_seconds: float) -> Iterator[World]:
    """The processes that torchrun started, or one alone; they part at the end of the block.

    Args:
        device: Where tensors are; `cuda` stands for the one of the process's local rank.
        timeout_seconds: After so long without an answer the others count as lost.

    Raises:
        ConfigError: the backend is not there, or the address cannot be used.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(device=device)
        return
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    backend = "gloo"
    if device.type == "cuda":
        backend, device = "nccl", torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    if not dist.is_backend_available(backend):
        raise ConfigError(
            f"this build of torch has no {backend}, which several ranks on {device.type} need: "
            "install another build, or use --device cpu"
        )
    try:
        # Where torchrun starts ranks again, those before have left their addresses in its store.
        limit = timedelta(seconds=timeout_seconds)
        meeting: Any = dist.rendezvous("env://", timeout=limit)  # type: ignore[attr-defined]
        met, rank, size = next(meeting)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        name = f"gpn_scale/attempt_{attempt}"
        store = dist.PrefixStore(name, met)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=limit)
    except dist.DistNetworkError as error:
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise ConfigError(
            f"the ranks cannot meet at {address} ({str(error).splitlines()[0]}): choose another "
            "port with torchrun's --master-port or --rdzv-endpoint"
        ) from error
    try:
        part = RankPart(dist.get_rank(), dist.get_world_size())
        yield World(part=part, local_rank=local_rank, device=device)
    finally:
        dist.destroy_process_group()

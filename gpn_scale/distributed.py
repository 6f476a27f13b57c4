"""Processes that train together, and sums over them; sole user of torch.distributed."""

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
from gpn_scale.explained import Explained
from gpn_scale.rank_part import RankPart

_PIECE_BYTES = 16 << 20
_MESSAGE_BYTES = 2048
_AWAKE_SECONDS = 0.05
# Running moments come from sums over all processes, so they are equal without copying buffers.
_OWN_BUFFERS: dict[str, Any] = {
    name: False
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in inspect.signature(DistributedDataParallel).parameters
}
if len(_OWN_BUFFERS) == 2:  # the second is the deprecated name of the first
    del _OWN_BUFFERS["broadcast_buffers"]


@dataclass(slots=True)
class World:
    """All processes of a run, seen from one of them.

    By default there is only one process, and every method returns at once. After a sum, every
    process holds the same bits, so decisions that depend on it are the same everywhere.

    >>> world = World()
    >>> world.rank, world.size, world.totals([1.5, 2.0])
    (0, 1, [1.5, 2.0])
    >>> with world.all_or_none():
    ...     world.require_same(seed="7")
    >>> World(part=RankPart(rank=1, size=4)).is_first
    False
    """

    part: RankPart = field(default_factory=RankPart)
    local_rank: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    seconds: float = 0.0
    """Time spent in communication so far, including the wait for slower processes."""

    @property
    def rank(self) -> int:
        """Rank of this process, in [0, size)."""
        return self.part.rank

    @property
    def size(self) -> int:
        """Number of processes."""
        return self.part.size

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, the only process that prints and writes files."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """Return the sum of `tensor` over all processes, without gradient."""
        if self.size == 1:
            return tensor
        summed = tensor.detach().clone()
        self._sum_(summed)
        return summed

    def joined(self, own_NC: Tensor, run: slice, count: int) -> Tensor:
        """Return all `count` rows, of which this process has those in `run`; differentiable.

        The gradient of a row is the sum of its gradients in all processes.
        """
        if self.size == 1:
            return own_NC
        rows: Tensor = _Joined.apply(own_NC, run, count, self)  # type: ignore[no-untyped-call]
        return rows

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each number over all processes, in float64."""
        return self.totals_later(values)()

    def totals_later(self, values: Sequence[float]) -> Callable[[], list[float]]:
        """Start to sum as `totals` does; return a function that waits for the sums."""
        if self.size == 1:
            return lambda: list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        work = dist.all_reduce(tensor, async_op=True)

        def result() -> list[float]:
            self._wait(work)
            return [float(value) for value in tensor.tolist()]

        return result

    def total_into(self, array: NDArray[Any]) -> None:
        """Sum `array` over all processes, in place and in pieces."""
        if self.size == 1:
            return
        flat = array.reshape(-1)
        step = max(1, _PIECE_BYTES // array.itemsize)
        for start in range(0, len(flat), step):
            piece = torch.from_numpy(np.array(flat[start : start + step])).to(self.device)
            self._sum_(piece)
            flat[start : start + step] = piece.cpu().numpy()

    def barrier(self) -> None:
        """Wait until every process has come here."""
        self.totals([0.0])

    def from_first(self, text: str) -> str:
        """Return the text of rank 0, in every process.

        >>> World().from_first("runs/mine")
        'runs/mine'
        """
        message = text.encode(errors="surrogateescape") if self.is_first else b""
        width = int(self.totals([float(len(message))])[0])
        return self._gathered(message, width)[0].decode(errors="surrogateescape")

    def parallel(self, model: nn.Module) -> nn.Module:
        """Return the model with gradients averaged over all processes in every backward pass."""
        if self.size == 1:
            return model
        # Its sums interleave with those of the backward pass, in the same order in every process.
        parallel = DistributedDataParallel(model, **_OWN_BUFFERS)
        parallel.register_comm_hook(self, _timed_all_reduce)
        return parallel

    def require_same(self, **facts: str) -> None:
        """Check that each text is equal in all processes; messages call it by its keyword.

        Raises:
            RunError: in rank 0, if a text differs; the message names the rank and the text.
            ElsewhereError: in the other ranks.
        """
        for name, text in facts.items():
            digest = hashlib.blake2b(text.encode(), digest_size=32).digest()
            digests = self._gathered(digest, 32)
            other = next((rank for rank, value in enumerate(digests) if value != digests[0]), None)
            if other is not None:
                kind = RunError if self.is_first else ElsewhereError
                raise kind(
                    f"rank {other} has a different {name} from rank 0, expected the same on all "
                    "ranks: start all ranks with the same code, files and arguments"
                )

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Run a block in every process; if it fails in one of them, raise an error in all.

        The block must not wait for other processes.

        Raises:
            GpnScaleError: in the lowest rank where the block failed, with its own message.
            ElsewhereError: in all other ranks.
        """
        problem: GpnScaleError | None = None
        try:
            with Explained():
                yield
        except GpnScaleError as error:
            problem = error
        message = "" if problem is None else str(problem)
        texts = self._gathered(message.encode()[:_MESSAGE_BYTES], _MESSAGE_BYTES)
        failed = [rank for rank, text in enumerate(texts) if text]
        if failed and failed[0] != self.rank:
            reason = texts[failed[0]].decode(errors="replace")
            raise ElsewhereError(f"rank {failed[0]} of {self.size} stopped: {reason}") from problem
        if problem is not None:
            raise problem

    def _gathered(self, message: bytes, width: int) -> list[bytes]:
        """Return the messages of all processes, each of at most `width` bytes, not ending in 0."""
        if self.size == 1:
            return [message.rstrip(b"\0")]
        padded = np.frombuffer(message.ljust(width, b"\0"), np.uint8)
        table = np.zeros((self.size, width), np.int32)
        table[self.rank] = padded
        self.total_into(table)
        return [row.astype(np.uint8).tobytes().rstrip(b"\0") for row in table]

    def _sum_(self, tensor: Tensor) -> None:
        """Sum over all processes, in place."""
        self._wait(dist.all_reduce(tensor, async_op=True))

    def _wait(self, work: Any) -> None:
        """Wait for a sum and add the time to `seconds`."""
        began = time.monotonic()
        if self.device.type == "cpu":
            # A sleeping process wakes up late, by milliseconds on a virtual machine, and a step has
            # seven sums. So it stays awake for a while, but yields the core to gloo's threads.
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
    """Average gradients as DDP does by default, and measure the time until the result arrives."""
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
    """Connect the processes that torchrun started, or only this one, and yield their `World`.

    The connection ends with the block.

    >>> with connected(torch.device("cpu"), timeout_seconds=60.0) as world:
    ...     world.size  # without torchrun
    1

    Args:
        device: Device of the tensors; `cuda` stands for the GPU of this process's local rank.
        timeout_seconds: Time without an answer after which other processes count as lost.

    Raises:
        ConfigError: torch was built without the backend, or the address cannot be used.
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
            "install another build, or use device='cpu'",
            arguments=("device",),
        )
    try:
        # After a restart by torchrun, its store still holds the addresses of the former ranks.
        limit = timedelta(seconds=timeout_seconds)
        rendezvous: Any = dist.rendezvous("env://", timeout=limit)  # type: ignore[attr-defined]
        base_store, rank, size = next(rendezvous)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        name = f"gpn_scale/attempt_{attempt}"
        store = dist.PrefixStore(name, base_store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=limit)
    except dist.DistNetworkError as error:
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        raise ConfigError(
            f"the ranks cannot meet at {address} ({str(error).splitlines()[0]}): choose another "
            "master port or rendezvous endpoint for torchrun"
        ) from error
    try:
        part = RankPart(dist.get_rank(), dist.get_world_size())
        yield World(part=part, local_rank=local_rank, device=device)
    finally:
        dist.destroy_process_group()

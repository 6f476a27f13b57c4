"""Processes that train together, and sums over them; the only module with torch.distributed."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from gpn_scale.errors import ConfigError, ElsewhereError, GpnScaleError, MachineError, RunError
from gpn_scale.explained import Explained
from gpn_scale.rank_part import RankPart

_PIECE_BYTES = 16 << 20
_MESSAGE_BYTES = 2048
_AWAKE_SECONDS = 0.05


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

    def shared(self, own: Tensor) -> Tensor:
        """Return the sum over all processes, from which all of them compute the same result.

        The gradient passes unchanged: a process's summand changes the common result exactly as much
        as the sum, and the other processes have the same gradient, so nothing is summed.
        """
        if self.size == 1:
            return own
        total: Tensor = _Shared.apply(own, self)  # type: ignore[no-untyped-call]
        return total

    def totals(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each number over all processes, in float64."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        self._sum_(tensor)
        return [float(value) for value in tensor.tolist()]

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
        """Wait until every process has reached this call."""
        self.totals([0.0])

    def from_first(self, text: str) -> str:
        """Return the text of rank 0, in every process.

        >>> World().from_first("runs/mine")
        'runs/mine'
        """
        message = text.encode(errors="surrogateescape") if self.is_first else b""
        width = int(self.totals([float(len(message))])[0])
        return self._gathered(message, width)[0].decode(errors="surrogateescape")

    def share_state(self, model: nn.Module) -> None:
        """Give the model of every process the parameters and buffers of rank 0."""
        if self.size > 1:
            for tensor in model.state_dict().values():
                self._wait(dist.broadcast(tensor, src=0, async_op=True))

    def sum_gradients(self, parameters: Iterable[nn.Parameter], numbers_S: Tensor) -> Tensor:
        """Sum the gradients over all processes, together with some numbers, in one message.

        Args:
            parameters: Parameters, whose gradients become the sums; one that has none gets zeros.
            numbers_S: Further numbers, of any type.

        Returns:
            The sums of these numbers, in the type of the parameters.
        """
        if self.size == 1:
            return numbers_S
        wanted = list(parameters)
        grads = [torch.zeros_like(each) if each.grad is None else each.grad for each in wanted]
        flat = torch.cat([*(grad.flatten() for grad in grads), numbers_S.to(grads[0])])
        self._sum_(flat)
        sizes = [*(each.numel() for each in wanted), len(numbers_S)]
        *sums, totals_S = torch.split(flat, sizes)
        for each, total in zip(wanted, sums, strict=True):
            each.grad = total.view_as(each)
        return totals_S

    def require_same(self, **facts: str) -> None:
        """Check that each text is equal in all processes; its keyword names it in messages.

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
        """Wait for other processes and add the time to `seconds`.

        Raises:
            MachineError: one of them has ended, or did not answer within the time limit.
        """
        began = time.monotonic()
        if self.device.type == "cpu":
            # A sleeping process wakes up late, by milliseconds on a virtual machine, and a step has
            # six sums. So the process stays awake a while, but yields the core to gloo's threads.
            while not work.is_completed() and time.monotonic() - began < _AWAKE_SECONDS:
                os.sched_yield()
        try:
            work.wait()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise MachineError(
                f"another rank has ended or does not answer ({reason}): see its messages, then "
                "start all ranks again; a training continues from its last checkpoint with resume",
                arguments=("resume",),
            ) from error
        self.seconds += time.monotonic() - began


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, world: World) -> Tensor:
        return world.total(own)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


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
        # After a restart, torchrun's store still holds the addresses of the previous ranks.
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

"""The ranks of a build: one process, or several under an MPI launcher.

No other module uses mpi4py. It is only loaded if a launcher started this process as one of several
ranks, so everything else works on a machine without an MPI library.
"""

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpn_scale.command_line import BAD_INPUT, FAULT, say_fault
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, GpnScaleError, GraphError
from gpn_scale.explained import Explained
from gpn_scale.flags import PRECOMPUTE_FLAGS, with_flags
from gpn_scale.messages import say

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
Bounds = Sequence[tuple[int, int]]
"""For each rank, the rows [start, stop) that it has written."""

MESSAGE_BYTES = 1 << 29
"""Length of the longest message between machines; MPI counts in int32, hence below 2 GiB."""

_SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_PMIX_SIZE_VARIABLES = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
_SHARED_MEMORY = "/dev/shm"
_FORWARDING_SECONDS = 0.2  # an aborting launcher drops output that it has not read


class AbstractComm(ABC):
    """Operations of all ranks together; all ranks must call them in the same order.

    Only `abort` may be called by a single rank.

    >>> comm: AbstractComm = world()
    >>> comm.rank, comm.size, comm.allgather("text")
    (0, 1, ['text'])
    """

    rank: int
    """Number of this rank, in [0, size)."""
    size: int
    """Number of ranks."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait until every rank has called this."""

    @abstractmethod
    def broadcast(self, value: T, source: int = 0) -> T:
        """Return the small value of rank `source`; the values of other ranks are ignored."""

    @abstractmethod
    def gather(self, value: T) -> list[T] | None:
        """Return the small values of all ranks, in their order, on rank 0; None elsewhere."""

    @abstractmethod
    def allgather(self, value: T) -> list[T]:
        """Return the small values of all ranks, in their order, on every rank."""

    @abstractmethod
    def abort(self, code: int) -> None:
        """End all ranks with exit code `code`; any single rank may call it."""

    @abstractmethod
    def shared_zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return zeros in memory that all ranks of a machine share until the job ends.

        Raises:
            ConfigError: the machine's shared memory is too small.
        """

    @abstractmethod
    def share_rows(self, array: NDArray[Any], bounds: Bounds) -> None:
        """Give every rank the rows of `array` that the ranks have just written, in place.

        Args:
            array: A whole array from `shared_zeros`.
            bounds: The rows that each rank has written; disjoint, and the same on all ranks.
        """


class SingleProcess(AbstractComm):
    """A single process without MPI.

    >>> SingleProcess().shared_zeros((2,), np.int32)
    array([0, 0], dtype=int32)
    """

    rank = 0
    size = 1

    def barrier(self) -> None:
        """Return at once."""

    def broadcast(self, value: T, source: int = 0) -> T:
        """Return `value`."""
        return value

    def gather(self, value: T) -> list[T] | None:
        """Return a list of one value."""
        return [value]

    def allgather(self, value: T) -> list[T]:
        """Return a list of one value."""
        return [value]

    def abort(self, code: int) -> None:
        """Exit with `code`."""
        raise SystemExit(code)

    def shared_zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return zeros."""
        return np.zeros(shape, dtype)

    def share_rows(self, array: NDArray[Any], bounds: Bounds) -> None:
        """Do nothing."""
        assert len(bounds) == 1


class MPIComm(AbstractComm):
    """All ranks of an MPI job.

    Within a machine, shared arrays are one piece of memory. Between machines, the first rank of
    each (its leader) sends and receives for all.

    >>> issubclass(MPIComm, AbstractComm)  # `world()` returns one in each process of an MPI job
    True

    Args:
        ranks_per_machine: Treat each group of this many ranks as a machine of its own, to test the
            traffic between machines on one; None for the real machines.

    Raises:
        ConfigError: mpi4py or its MPI library cannot be loaded.
    """

    def __init__(self, ranks_per_machine: int | None = None) -> None:
        self._mpi = _load_mpi()
        self._world = self._mpi.COMM_WORLD
        self.rank = self._world.rank
        self.size = self._world.size
        self._machine = self._world.Split_type(self._mpi.COMM_TYPE_SHARED, key=self.rank)
        if ranks_per_machine is not None:
            color = self._machine.rank // ranks_per_machine
            self._machine = self._machine.Split(color, key=self.rank)
        is_leader = self._machine.rank == 0
        self._leaders = self._world.Split(0 if is_leader else self._mpi.UNDEFINED, key=self.rank)
        machine = self._machine.bcast(self._leaders.rank if is_leader else -1)
        self._machine_of_rank: list[int] = self._world.allgather(machine)
        self._windows: dict[int, MPI.Win] = {}  # by the address of the array they hold

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self._world.Barrier()

    def broadcast(self, value: T, source: int = 0) -> T:
        """Return the small value of rank `source`."""
        received: T = self._world.bcast(value, root=source)
        return received

    def gather(self, value: T) -> list[T] | None:
        """Return the small values of all ranks, in their order, on rank 0; None elsewhere."""
        values: list[T] | None = self._world.gather(value)
        return values

    def allgather(self, value: T) -> list[T]:
        """Return the small values of all ranks, in their order, on every rank."""
        values: list[T] = self._world.allgather(value)
        return values

    def abort(self, code: int) -> None:
        """End all ranks with exit code `code`."""
        sys.stdout.flush()
        sys.stderr.flush()
        _unlink_own_segments()
        time.sleep(_FORWARDING_SECONDS)
        self._world.Abort(code)
        os._exit(code)  # MPICH may return before the launcher ends this process

    def shared_zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return zeros in memory that all ranks of a machine share until the job ends.

        The window is never freed: this would be a collective operation, and garbage collectors do
        not run in the same order on all ranks.
        """
        num_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if num_bytes == 0:
            return np.zeros(shape, dtype)
        self._check_room(num_bytes)
        own = num_bytes if self._machine.rank == 0 else 0
        window = self._mpi.Win.Allocate_shared(own, comm=self._machine)
        memory, _ = window.Shared_query(0)
        array = np.ndarray(shape, dtype, buffer=memory)
        window.Lock_all()  # never unlocked: `Sync` is only defined before Unlock_all
        self._windows[array.ctypes.data] = window
        self._clear(np.frombuffer(memory, np.uint8), window)
        return array

    def share_rows(self, array: NDArray[Any], bounds: Bounds) -> None:
        """Give every rank the rows of `array` that the ranks have just written, in place.

        The cost is a barrier within a machine; between machines, every row is sent once to each
        leader, in messages of at most `MESSAGE_BYTES`.
        """
        assert len(bounds) == self.size
        assert array.flags.c_contiguous
        if array.size == 0:
            return
        window = self._windows[array.ctypes.data]
        self._meet(window)
        if self._leaders != self._mpi.COMM_NULL and self._leaders.size > 1:
            for machine, (start, stop) in zip(self._machine_of_rank, bounds, strict=True):
                self._send_from(machine, array[start:stop])
        self._meet(window)

    def _send_from(self, machine: int, rows: NDArray[Any]) -> None:
        """Copy `rows`, of any dtype, from the leader of `machine` to all other leaders."""
        flat = rows.reshape(-1).view(np.uint8)
        for start in range(0, flat.size, MESSAGE_BYTES):
            piece = flat[start : start + MESSAGE_BYTES]
            self._leaders.Bcast([piece, self._mpi.BYTE], root=machine)

    def _clear(self, memory: NDArray[np.uint8], window: "MPI.Win") -> None:
        """Set the machine's new array to zero, a part by each rank: MPI does not promise zeros."""
        cuts = [memory.size * r // self._machine.size for r in range(self._machine.size + 1)]
        start, stop = list(pairwise(cuts))[self._machine.rank]
        memory[start:stop] = 0
        self._meet(window)

    def _meet(self, window: "MPI.Win") -> None:
        """Make what any rank of this machine wrote before visible to all of them."""
        window.Sync()
        self._machine.Barrier()
        window.Sync()

    def _check_room(self, num_bytes: int) -> None:
        """Refuse arrays that do not fit: writing to a full /dev/shm kills the process (SIGBUS)."""
        free = num_bytes
        on_disk = "MPICH" in self._mpi.Get_library_version() and os.path.isdir(_SHARED_MEMORY)
        if self._machine.rank == 0 and on_disk:
            status = os.statvfs(_SHARED_MEMORY)
            free = status.f_bavail * status.f_frsize
        free = self._machine.bcast(free)
        if free < num_bytes:
            raise ConfigError(
                f"{_SHARED_MEMORY} has {free / 2**30:.2f} GiB free, but the ranks of this machine "
                f"share an array of {num_bytes / 2**30:.2f} GiB there: allow more shared memory or "
                "start one process with more threads"
            )


def world() -> AbstractComm:
    """Return the ranks that this process belongs to; without a launcher, a single process.

    >>> world().size
    1

    Raises:
        ConfigError: a launcher started several ranks, but mpi4py cannot be loaded or belongs to
            another MPI library, so that the ranks could not communicate.
    """
    launched = _launched_ranks()
    if launched == 1:
        return SingleProcess()
    comm = MPIComm()
    if launched is not None and comm.size != launched:
        library = comm._mpi.Get_library_version().split("\n")[0].strip("\0 ")
        raise ConfigError(
            f"the launcher started {launched} ranks, but mpi4py sees {comm.size}: they belong to "
            f"different MPI libraries; use the mpiexec of {library}"
        )
    return comm


def check_same_graph(graph: Graph, comm: AbstractComm) -> None:
    """Check that all ranks loaded the same graph.

    >>> from gpn_scale import build_graph
    >>> check_same_graph(build_graph([0, 1], [1, 2]), SingleProcess())  # one rank always agrees

    Raises:
        GraphError: a rank's graph differs from that of rank 0.
    """
    fingerprints = comm.allgather(graph.structure_fingerprint())
    other = [rank for rank, value in enumerate(fingerprints) if value != fingerprints[0]]
    if other:
        raise GraphError(
            f"rank {other[0]} has a different graph from rank 0 (fingerprints "
            f"{fingerprints[other[0]]} and {fingerprints[0]}), expected the same graph: give all "
            "ranks the same files"
        )


@contextmanager
def abort_all_ranks_on_error(comm: AbstractComm) -> Iterator[None]:
    """End all ranks if this one fails, so that the others do not wait for it forever.

    The exit code is 2 with a one-line message for a `GpnScaleError`, the given code without a
    message for a `SystemExit`, and 1 with a one-line message for anything else. In a single
    process nothing is caught.

    >>> with abort_all_ranks_on_error(SingleProcess()):
    ...     ranks = SingleProcess().gather("text")
    >>> ranks
    ['text']
    """
    if comm.size == 1:
        yield
        return
    try:
        with Explained():
            yield
    except GpnScaleError as error:
        message = with_flags(error, PRECOMPUTE_FLAGS)
        say(
            "error",
            f"rank {comm.rank}: {message}",
            level="error",
            rank=comm.rank,
            arguments=error.arguments,
        )
        comm.abort(BAD_INPUT)
        raise
    except BaseException as error:
        if isinstance(error, SystemExit) and isinstance(error.code, int | None):
            if error.code:
                comm.abort(error.code)
            raise
        say_fault(error, f"rank {comm.rank} of {comm.size}: ", rank=comm.rank)
        comm.abort(FAULT)
        raise


def _launched_ranks() -> int | None:
    """Return the number of ranks in the launcher's environment variables; None if unknown."""
    names: tuple[str, ...] = _SIZE_VARIABLES
    if "PMIX_RANK" in os.environ:
        names += _PMIX_SIZE_VARIABLES  # without PMIx, Slurm sets these for single processes too
    sizes = [int(text) for name in names if (text := os.environ.get(name, "")).isdecimal()]
    if sizes:
        return max(sizes[0], 1)
    return None if "PMIX_RANK" in os.environ else 1


def _unlink_own_segments() -> None:
    """Remove MPICH's internal segments, which it leaves behind on abort."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.split(maxsplit=5)[-1]
            if path.startswith(f"{_SHARED_MEMORY}/mpich_shm_"):
                Path(path).unlink(missing_ok=True)


def _load_mpi() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py without its MPI library
        reason = str(error).split("\n")[0]
        raise ConfigError(
            f"this process is one of several MPI ranks, but mpi4py cannot be loaded ({reason}): "
            "install it with an MPI library (pip install mpi4py mpich), or start one process"
        ) from error
    return MPI

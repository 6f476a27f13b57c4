"""The graph and the PPR store of a run: loaded or built by the first process, used by all."""

import multiprocessing
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpn_scale.child_process import end_with_parent
from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.distributed import World
from gpn_scale.errors import GpnScaleError, StoreError
from gpn_scale.explained import Explained
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.messages import say
from gpn_scale.ppr.claiming import Existing
from gpn_scale.ppr.manifest import MANIFEST

_SMALL_GRAPH = 50_000
_POLL_SECONDS = 0.5


def shared_graph(dataset: str, data_dir: Path, copy: Path, world: World) -> Graph:
    """Return the graph; several processes share one memory-mapped copy of it.

    If the graph is not already a folder of arrays on disk, the first process loads it and saves it
    to `copy`, which all processes then map.

    Raises:
        GpnScaleError: the graph cannot be loaded or saved.
    """
    if world.size == 1:
        return load_graph(dataset, data_dir)
    mapped = True
    with world.all_or_none():
        if world.is_first:
            graph = load_graph(dataset, data_dir)
            mapped = isinstance(graph.indices, np.memmap)
            if not mapped:
                save_graph(graph, copy)
    copied = world.totals([float(not mapped)])[0] > 0
    with world.all_or_none():
        return open_graph(copy) if copied else load_graph(dataset, data_dir)


def row_entries(num_nodes: int) -> int:
    """Return the number of entries per row of a store that a run builds itself.

    On a small graph, a batch encodes most nodes anyway, so long rows cost little. The less mass is
    left to the tail, the closer training comes to exact mode (docs/performance.md).
    """
    return min(128, num_nodes) if num_nodes <= _SMALL_GRAPH else 32


def build_rows(
    graph: Graph,
    dataset: str,
    data_dir: Path,
    out: Path,
    diffusion: DiffusionConfig,
    world: World,
    *,
    overwrite: bool = False,
) -> None:
    """Build the PPR store `out` unless it exists; the first process builds it, the others wait.

    Args:
        graph: The graph whose rows are needed.
        dataset: Name of the graph.
        data_dir: Folder with the graph.
        out: Directory of the store.
        diffusion: The diffusion whose rows are needed.
        world: The processes of the run.
        overwrite: Whether to replace a store that does not match the graph and the diffusion.

    Raises:
        StoreError: the store cannot be built; the message contains the reason.
    """
    build = None
    misfit = overwrite and not has_rows_for(out, graph, diffusion)
    if world.is_first and (misfit or not (out / MANIFEST).exists()):
        config = PPRConfig(
            diffusion=DiffusionConfig(
                teleport=diffusion.teleport,
                normalisation=diffusion.normalisation,
                steps=diffusion.steps,
                self_loops=diffusion.self_loops,
            ),
            k=row_entries(graph.num_nodes),
        )
        _say(f"computing rows of {config.k} entries in {out}")
        if world.size > 1:
            _say(f"the other {world.size - 1} rank(s) wait for these rows")
        existing: Existing = "overwrite" if misfit else "resume"
        build = _Build.start(_Job(dataset, data_dir, config, out, existing))
    try:
        # All ranks poll: a single sum would time out while the store is being built.
        while world.totals([float(build is not None and build.is_running())])[0]:
            time.sleep(_POLL_SECONDS)
    finally:
        if build is not None:
            build.stop()
    with world.all_or_none():
        if build is not None:
            build.check()


def has_rows_for(out: Path, graph: Graph, diffusion: DiffusionConfig) -> bool:
    """Return whether the store `out` is readable and matches this graph and diffusion."""
    try:
        open_rows(out, graph, diffusion)
    except StoreError:
        return False
    return True


class _Job(NamedTuple):
    """Everything that a child process needs to build a store."""

    dataset: str
    data_dir: Path
    config: PPRConfig
    out: Path
    existing: Existing
    """What to do with an existing store in `out`."""


class _Failure(NamedTuple):
    """The error of a child process, as plain values that a pipe can send."""

    message: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Build:
    """A child process that builds a store, so that its memory and numba's threads end with it."""

    job: _Job
    process: SpawnProcess
    failures: Connection

    @classmethod
    def start(cls, job: _Job) -> "_Build":
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_build_in_child, args=(job, sender), daemon=True)
        process.start()
        sender.close()  # the child has its own end of the pipe
        return cls(job, process, receiver)

    def is_running(self) -> bool:
        return self.process.is_alive()

    def stop(self) -> None:
        """End the child if it is still running, e.g. because this process was interrupted."""
        self.process.terminate()
        self.process.join()

    def check(self) -> None:
        """Raise a `StoreError` if the child has failed."""
        if self.process.exitcode == 0:
            return
        code = self.process.exitcode
        reason = f"the process ended with exit code {code}, see its messages above"
        if code is not None and code < 0:
            reason = f"the process was ended by signal {-code}, perhaps because memory ran out"
        failure = _Failure(reason, ())
        with suppress(EOFError):  # the child died without sending an error
            failure = self.failures.recv()
        raise StoreError(
            f"the rows in {self.job.out} could not be computed: {failure.message}",
            arguments=failure.arguments,
        )


def _build_in_child(job: _Job, failures: Connection) -> None:
    """Build a store in this process, without MPI; send the error if the user can fix it."""
    end_with_parent()
    try:
        with Explained():
            _build_store(job)
    except GpnScaleError as error:
        failures.send(_Failure(str(error), error.arguments))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(1)


def _build_store(job: _Job) -> None:
    from precompute.build import build_store

    graph = load_graph(job.dataset, job.data_dir)
    build_store(graph, job.config, job.out, existing=job.existing, say=_say)


def _say(text: str) -> None:
    say("rows", text)

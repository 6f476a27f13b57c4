"""The graph and the rows of a run: loaded or built by the first process, shared by all."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.distributed import World
from gpn_scale.errors import StoreError
from gpn_scale.ppr.store import MANIFEST

_SMALL_GRAPH = 50_000
_POLL_SECONDS = 0.5
_MPI_VARIABLES = ("PMI", "OMPI_COMM_", "MPI_", "HYDI_", "HYDRA_")


def shared_graph(dataset: str, data_dir: Path, copy: Path, world: World) -> Graph:
    """The graph; with several processes a memory-mapped one, so that a machine holds it once.

    A graph that is no folder of mapped arrays is loaded by the first process and saved to `copy`.

    Raises:
        GpnScaleError: it cannot be loaded or saved.
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


def _outside_mpi(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what a launcher of MPI ranks sets: a child of one rank is not that rank."""
    return {k: v for k, v in environment.items() if not k.startswith(_MPI_VARIABLES)}


def row_entries(num_nodes: int) -> int:
    """Entries of the rows that are built when none are given.

    On a small graph a batch encodes most nodes anyway, so that long rows cost little, and the less
    is left to the tail the nearer training comes to exact mode (docs/performance.md).
    """
    return 128 if num_nodes <= _SMALL_GRAPH else 32


def build_rows(
    graph: Graph, dataset: str, data_dir: Path, out: Path, diffusion: DiffusionConfig, world: World
) -> None:
    """Makes sure that `out` holds rows of this diffusion; the first process builds, others wait.

    Args:
        graph: What `dataset` is.
        dataset: Its name.
        data_dir: Where it is.
        out: The store.
        diffusion: Of the rows.
        world: The processes.

    Raises:
        StoreError: the build failed.
    """
    process = None
    if world.is_first and not (out / MANIFEST).exists():
        entries = row_entries(graph.num_nodes)
        print(f"computing rows of {entries} entries into {out}", file=sys.stderr)
        if world.size > 1:
            print(f"the other {world.size - 1} rank(s) wait for them", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "precompute", "--dataset", dataset]
        command += ["--data-dir", str(data_dir), "--out", str(out), "--resume"]
        command += ["--k", str(entries)]
        for name, value in diffusion.store_parameters.items():
            word = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
            command += [f"--{name.replace('_', '-')}", word]
        process = subprocess.Popen(command, env=_outside_mpi(os.environ))
    # The others ask again and again, since they would not wait for ever in a single sum.
    while True:
        code = 0 if process is None else process.poll()
        pending, failed = world.totals([float(code is None), float(bool(code))])
        if failed:
            raise StoreError(f"the rows could not be computed into {out}: see above")
        if not pending:
            return
        time.sleep(_POLL_SECONDS)

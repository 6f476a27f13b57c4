"""PPR stores of a matrix of runs, built by one process before the cells run."""

from collections.abc import Sequence
from contextlib import nullcontext

from gpn_scale.cli.run_inputs import build_rows
from gpn_scale.distributed import World
from gpn_scale.experiments.cells import Cell
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.experiments.run_matrix import needed_stores
from gpn_scale.locks import claimed


def build_stores(request: MatrixRequest, cells: Sequence[Cell], world: World) -> None:
    """Build the PPR stores that the cells use and that do not exist yet.

    Other calls for the same matrix wait while a store is being built.

    Args:
        request: The matrix.
        cells: Cells that will run.
        world: The ranks of this call.

    Raises:
        StoreError: a build failed.
    """
    for store in needed_stores(request, cells):
        graph, data_dir = request.graph(store.dataset), request.data_dir
        lock = request.directory.lock_file(f"{store.path.name}.store")
        with claimed(lock, wait=True) if world.is_first else nullcontext():
            build_rows(graph, store.dataset, data_dir, store.path, store.diffusion, world)

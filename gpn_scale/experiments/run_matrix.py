"""Running the unfinished cells of a matrix, in one or several processes.

Independent processes may run the same matrix: each cell is claimed by a lock, and finished cells
are not run again.
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import torch

from gpn_scale.child_process import end_with_parent
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.experiments.catalogue import check_possible
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.experiments.run_cell import run_cell
from gpn_scale.locks import claimed
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.progress import ProgressMeter

_MOST_PROCESSES = 1_024


@dataclass(frozen=True)
class NeededStore:
    """A PPR store that cells of a matrix use."""

    path: Path
    dataset: str
    diffusion: DiffusionConfig
    """Diffusion of the rows."""
    required: bool
    """Whether a model trains on the rows; if not, they only serve the score `epistemic_local`."""


def run_matrix(
    request: MatrixRequest, *, processes: int = 1, threads: int = 1
) -> dict[Cell, CellResult]:
    """Run all unfinished cells of a matrix, and return the results of all cells.

    PPR stores that models train on must exist; see `needed_stores`.

    Args:
        request: The matrix.
        processes: Number of processes, each of which runs one cell at a time.
        threads: CPU threads of each process.

    Raises:
        ConfigError, GraphError: a model or an experiment refuses its dataset.
        RunError: stored results come from another configuration or version.
        StoreError: a PPR store is missing.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     request = MatrixRequest(
        ...         out=Path(folder), datasets=("synthetic:nodes=100,classes=4",), models=("LP",),
        ...         experiments=("clean",), splits=1, inits=1,
        ...     )
        ...     results = run_matrix(request)
        >>> [cell.model for cell in results]
        ['LP']
    """
    cells = unfinished_cells(request)
    for store in needed_stores(request, cells):
        if store.required and not (store.path / MANIFEST).exists():
            raise StoreError(
                f"{store.path} is missing, expected a PPR store of {store.dataset} with "
                f"{store.diffusion.store_parameters}: build it with `gpn-precompute`"
            )
    run_cells(request, cells, processes=processes, threads=threads)
    return {cell: result for cell in request.cells if (result := request.directory.result(cell))}


def unfinished_cells(request: MatrixRequest, cells: Sequence[Cell] | None = None) -> list[Cell]:
    """Return the cells with missing results; everything that can be refused is refused here.

    Stored results of all cells of the matrix are checked, since its directory is also read as a
    whole.

    Args:
        request: The matrix.
        cells: Cells of the matrix that are wanted; None for all.

    Raises:
        ConfigError, GraphError: a model or an experiment refuses its dataset.
        RunError: stored results come from another configuration or version.
    """
    directory = request.directory
    stored = {cell: result for cell in request.cells if (result := directory.result(cell))}
    for cell in stored:
        directory.result_of(cell, request.setting(cell).fingerprint)
    unfinished = [
        cell
        for cell in (request.cells if cells is None else cells)
        if cell.unfinished(stored.get(cell), request.experiments, request.fractions)
    ]
    for cell in unfinished:
        graph = request.graph(cell.dataset)
        check_possible(cell.experiments_among(request.experiments), graph)
        request.setting(cell).check(graph)
    return unfinished


def needed_stores(request: MatrixRequest, cells: Sequence[Cell]) -> list[NeededStore]:
    """Return the PPR stores that the cells use, each once."""
    stores: dict[Path, NeededStore] = {}
    for cell in cells:
        setting = request.setting(cell)
        path, diffusion = request.store_path(cell.dataset, setting), setting.row_diffusion
        if path is None or diffusion is None:
            continue
        required = setting.needs_rows or (path in stores and stores[path].required)
        stores[path] = NeededStore(path, cell.dataset, diffusion, required)
    return list(stores.values())


def run_cells(
    request: MatrixRequest,
    cells: Sequence[Cell],
    *,
    processes: int = 1,
    threads: int = 1,
    silent: bool = False,
) -> None:
    """Run cells in this process, or in several new ones.

    Args:
        request: The matrix.
        cells: Cells to run, in this order.
        processes: Number of processes, each of which runs one cell at a time.
        threads: CPU threads of each process.
        silent: Whether to show no progress.

    Raises:
        ConfigError: `processes` is below 1, or absurdly large.
        GpnScaleError: a cell failed.
    """
    if not 1 <= processes <= _MOST_PROCESSES:
        raise ConfigError(
            f"processes is {processes}, expected at least 1, at most {_MOST_PROCESSES:,}",
            arguments=("processes",),
        )
    with ProgressMeter("evaluate", "cell", len(cells), silent=silent) as meter:
        if processes == 1:
            for done, cell in enumerate(cells, start=1):
                run_claimed_cell(request, cell, threads)
                meter.update(done, cell.name)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            processes, mp_context=context, initializer=end_with_parent
        ) as pool:
            running = {
                pool.submit(run_claimed_cell, request, cell, threads): cell for cell in cells
            }
            try:
                for done, future in enumerate(as_completed(running), start=1):
                    future.result()
                    meter.update(done, running[future].name)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def run_claimed_cell(request: MatrixRequest, cell: Cell, threads: int = 1) -> None:
    """Run one cell in this process, unless another process is running it or has finished it."""
    torch.set_num_threads(threads)
    request.load_plugins()  # this may be a new process
    setting, directory = request.setting(cell), request.directory
    store = request.store_path(cell.dataset, setting)
    if store is not None and not (store / MANIFEST).exists():
        store = None
    with claimed(directory.lock_file(cell.name), wait=False) as is_free:
        if is_free:
            run_cell(
                directory,
                cell,
                request.experiments,
                setting,
                lambda: request.graph(cell.dataset),
                store=store,
                fractions=request.fractions,
            )

"""`compact`: fold the generations of an updated store into one, and remove the unused ones."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import StoreError
from gpn_scale.locks import claimed, is_in_use
from gpn_scale.ppr.claiming import Existing
from gpn_scale.ppr.generations import generation_folder, listed_generations, remove_generation
from gpn_scale.ppr.manifest import BUILD, LOCK, MANIFEST, SECONDS, Build, read_manifest
from gpn_scale.ppr.manifest_schema import FIRST_FOLDER, is_generation_folder
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.updated_manifest import next_number, write_updated_manifest
from gpn_scale.ppr.writer import StoreWriter
from gpn_scale.progress import ProgressMeter
from precompute.build import rows_per_shard
from precompute.shard_builder import BuildClock
from precompute.stored_settings import FOLDED

_ROWS_AT_A_TIME = 1 << 16


def compact_store(path: Path | str) -> list[str]:
    """Fold all rows of a store into one generation; return the old folders that are still in use.

    Rows, bounds and history do not change. Since these rows were computed on several graphs,
    `repair_store` cannot recompute them afterwards. Generations that a process has open stay on
    disk until the next call. A killed call leaves the store unchanged, and the next call continues.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from precompute.build import build_store
    >>> from precompute.update import update_store
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0), folder)
    ...     plan = update_store(folder, build_graph([0, 1, 2], [1, 2, 3]))
    ...     compact_store(folder), len(PPRStore.open(folder).history)
    ([], 1)

    Raises:
        StoreError: the store is incomplete, damaged or being updated.
    """
    directory = Path(path)
    PPRStore.open(directory)
    with claimed(directory / LOCK, wait=False) as is_alone:
        if not is_alone:
            raise StoreError(
                f"{directory} is being updated by another process: wait until it is done"
            )
        store = PPRStore.open(directory)
        if len(listed_generations(store.manifest)) > 1:
            _fold(store)
        del store  # it counts as a reader of the folded generations
        return _remove_unlisted(directory)


def _fold(store: PPRStore) -> None:
    """Write one generation with the rows of all roots."""
    began = time.monotonic()
    number = next_number(store.manifest)
    folder = store.path / generation_folder(number)
    newest = Build.of(listed_generations(store.manifest)[-1][1])

    def begin(existing: Existing) -> StoreWriter:
        return StoreWriter.begin(
            folder,
            graph_fingerprint=store.graph_fingerprint,
            parameters={**store.parameters, FOLDED: True},
            num_nodes=store.num_nodes,
            roots=store.roots,
            num_clusters=store.num_clusters,
            rows_per_shard=rows_per_shard(store.num_roots),
            k=store.k,
            existing=existing,
            graph=store.stored_graph(),
            node_names=None if newest.graph is None else newest.graph["node_names"],
        )

    try:
        writer = begin("resume")
    except StoreError:  # left over from a different operation
        writer = begin("overwrite")
    if store.cluster_of_node is not None:
        writer.write_clusters(store.cluster_of_node)
    clock = BuildClock(writer, began, active=True)
    with ProgressMeter("compact", "root", store.num_roots) as meter:
        for index in range(writer.num_shards):
            start, stop = writer.shard_rows(index)
            if not writer.is_done(index):
                writer.write_shard(index, _stored_rows(store.rows(store.roots[start:stop])))
            meter.update(stop)
    writer.finish(_kept_and_cut(store), store.moved(store.roots))
    clock.record()
    write_updated_manifest(store, number, roots=store.roots, record=None, alone=True)


def _stored_rows(rows: Rows) -> Rows:
    """Return rows in the types of shards: their cut masses were float16 before."""
    return replace(rows, ids=rows.ids.astype(np.int32), cut_mass=rows.cut_mass.astype(np.float16))


def _kept_and_cut(store: PPRStore) -> NDArray[np.float64] | None:
    """Return the mass that all rows together keep of every node and cut from it, (N,)."""
    if store.cut_mass_of_node is None:
        return None
    mass_N = store.cut_mass_of_node.astype(np.float64)
    for start in range(0, store.num_roots, _ROWS_AT_A_TIME):
        rows = store.rows(store.roots[start : start + _ROWS_AT_A_TIME])
        mass_N += np.bincount(rows.ids, rows.weights, minlength=len(mass_N))
    return mass_N


def _remove_unlisted(directory: Path) -> list[str]:
    """Remove generations that the manifest does not list; return those that are in use."""
    listed = {folder for folder, _ in listed_generations(read_manifest(directory))}
    on_disk = [path.name for path in directory.iterdir() if is_generation_folder(path.name)]
    left = []
    for folder in sorted({FIRST_FOLDER, *on_disk} - listed):
        if is_in_use(directory / folder / BUILD):
            left.append(folder)
        else:
            keep = {MANIFEST, SECONDS} if folder == FIRST_FOLDER else set()
            remove_generation(directory / folder, keep=keep)
    return left

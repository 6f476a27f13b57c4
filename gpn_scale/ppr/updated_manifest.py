"""The manifest of a store that was updated: its generations, and a history of its updates."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.ppr.generations import generation_folder, listed_generations
from gpn_scale.ppr.manifest import MANIFEST, Build, read_manifest
from gpn_scale.ppr.manifest_schema import FIRST_FOLDER, GENERATIONS, HISTORY
from gpn_scale.ppr.node_file import npy_bytes
from gpn_scale.ppr.sealed import checksum, sealed, write_if_other
from gpn_scale.ppr.store import PPRStore


def next_number(manifest: Mapping[str, Any]) -> int:
    """Return the number of the generation that the next update of a store writes.

    >>> next_number({})
    1
    """
    folders = [folder for folder, _ in listed_generations(manifest) if folder != FIRST_FOLDER]
    return 1 + max((int(folder.rpartition("-")[2]) for folder in folders), default=0)


def write_updated_manifest(
    store: PPRStore,
    number: int,
    *,
    roots: NDArray[np.int64],
    record: Mapping[str, Any] | None,
    alone: bool = False,
) -> None:
    """Replace the manifest of `store` by one that lists an additional, finished generation.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     _ = example_store(f"{folder}/{generation_folder(1)}")  # all rows again
    ...     write_updated_manifest(store, 1, roots=store.roots, record={"tolerance": 0.0})
    ...     PPRStore.open(folder).history[0]["tolerance"]
    0.0

    Args:
        store: The store before the update.
        number: Number of the new generation.
        roots: All roots of the store after the update, sorted.
        record: Record of the update for the history; None to add none.
        alone: Whether the new generation has the rows of all roots and replaces all others.
    """
    folder = generation_folder(number)
    newest = read_manifest(store.path / folder)
    build = Build.of(newest)
    is_whole = len(roots) == build.num_nodes
    first = Build.of(listed_generations(store.manifest)[0][1])
    build = replace(
        build,
        parameters=first.parameters,
        num_roots=len(roots),
        roots=None if is_whole else checksum(npy_bytes(roots.astype(np.int32))),
        rows_per_shard=first.rows_per_shard,
    )
    former = [] if alone else listed_generations(store.manifest)
    listed = [*former, (folder, newest)]
    facts: dict[str, Any] = asdict(build) | {
        GENERATIONS: [{"folder": place, "manifest": dict(each)} for place, each in listed],
        HISTORY: [*store.history, *([] if record is None else [dict(record)])],
        "files": {},
        "shards": [],
    }
    rows = PPRStore(store.path, facts)
    facts["entries"] = rows.num_entries
    missing = rows.missing_mass.astype(np.float64)
    facts["mean_missing_mass"] = float(missing.mean()) if len(missing) else None
    write_if_other(store.path / MANIFEST, sealed(facts).encode())

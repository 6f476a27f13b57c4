"""Checks that `build.json` and `manifest.json` contain only what a build writes.

Checksums detect damage, but a file may also be made up or edited by hand. Such a file must not lead
to a path outside the store, to an endless loop, or to a traceback.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from gpn_scale.config_sections import MOST_CLUSTERS
from gpn_scale.errors import StoreError
from gpn_scale.field_types import shown
from gpn_scale.ppr.sealed import REBUILD, REBUILD_ARGUMENTS

_BUILD_TYPES: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "format_version": (int,),
    "graph_fingerprint": (str,),
    "parameters": (dict,),
    "num_nodes": (int,),
    "num_roots": (int,),
    "roots": (str, type(None)),
    "rows_per_shard": (int,),
    "k": (int,),
    "num_clusters": (int,),
    "graph": (dict, type(None)),
}
"""Entries of `build.json` and of manifests, with their types."""
_GRAPH_TYPES: dict[str, tuple[type, ...]] = {
    "directed": (bool,),
    "edges": (int,),
    "node_names": (str, type(None)),
    "weighted": (bool,),
}
"""Facts about a stored graph, with their types."""
GENERATIONS, HISTORY = "generations", "history"
"""Entries that only the manifest of an updated store has."""
COUNTED = ("edges_added", "edges_removed")
"""Counts in each record of a history."""
FIRST_FOLDER = "."
"""Folder of the generation of the build: that of the store itself."""
_FOLDER = re.compile(r"generation-\d{5,}")
_MOST_NODES, _MOST_EDGES, _MOST_SHARDS = 1 << 31, 1 << 50, 1 << 20
_MOST: dict[str, int] = {"num_clusters": MOST_CLUSTERS}
"""Largest values of entries that may not be as large as the number of nodes."""
_LEAST = {"num_nodes": 0, "num_roots": 0, "rows_per_shard": 1, "k": 1, "num_clusters": 0}


def check_build(source: Path | str, stored: Mapping[str, Any]) -> None:
    """Refuse a build description that no build writes; `source` names it in messages.

    >>> check_build("build.json", {"format": "gpn_scale.ppr"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: build.json has no entry 'format_version': it is damaged ...

    Raises:
        StoreError: an entry is missing, of another type, or out of range.
    """
    for key, kinds in _BUILD_TYPES.items():
        if key not in stored:
            raise _refusal(source, f"has no entry {key!r}")
        if type(stored[key]) not in kinds:
            raise _refusal(source, f"has {shown(stored[key])} for {key!r}")
    for key, least in _LEAST.items():
        most = _MOST.get(key, _MOST_NODES)
        if not least <= stored[key] <= most:
            raise _refusal(
                source, f"has {shown(stored[key])} for {key!r}, expected {least} to {most:,}"
            )
    if (graph := stored["graph"]) is not None:
        typed = graph.keys() == _GRAPH_TYPES.keys() and all(
            type(graph[key]) in kinds for key, kinds in _GRAPH_TYPES.items()
        )
        if not typed or not 0 <= graph["edges"] <= _MOST_EDGES:
            raise _refusal(source, f"has {shown(graph)} for 'graph'")
    nodes, roots = stored["num_nodes"], stored["num_roots"]
    if roots > nodes or (stored["roots"] is None and roots != nodes):
        raise _refusal(source, f"has {roots:,} roots of {nodes:,} nodes")
    if (shards := -(-roots // stored["rows_per_shard"])) > _MOST_SHARDS:
        raise _refusal(source, f"has {shards:,} shards, expected at most {_MOST_SHARDS:,}")


def check_lists(
    source: Path | str,
    stored: Mapping[str, Any],
    files: set[str],
    num_shards: int,
    optional: Collection[str] = (),
) -> None:
    """Refuse a manifest whose lists of files and shards do not match its build.

    >>> lists = {"files": {}, "shards": []}
    >>> check_lists("manifest.json", lists, files=set(), num_shards=0)
    >>> check_lists("manifest.json", lists, files={"cut.npy"}, num_shards=0)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: manifest.json lists other files than cut.npy: it is damaged or \
made up; build the store again with existing='overwrite'

    Args:
        source: Name of the manifest in messages.
        stored: The manifest, whose build has been checked.
        files: Names of the files that its build has besides shards.
        num_shards: Number of shards that its build has.
        optional: Names of files that it may list in addition.

    Raises:
        StoreError: the lists are missing, or name other files.
    """
    listed, shards = stored.get("files"), stored.get("shards")
    if not isinstance(listed, dict) or listed.keys() - optional != files:
        raise _refusal(source, f"lists other files than {', '.join(sorted(files)) or 'none'}")
    for name, facts in listed.items():
        kinds = {"bytes": int, "checksum": str}
        is_whole = isinstance(facts, dict) and facts.keys() == kinds.keys()
        if not is_whole or any(type(facts[key]) is not kind for key, kind in kinds.items()):
            raise _refusal(source, f"has {shown(facts)} for the file {name}")
    if not isinstance(shards, list) or len(shards) != num_shards:
        raise _refusal(source, f"does not list the {num_shards:,} shards of its build")


def check_entries(source: Path | str, stored: Mapping[str, Any]) -> None:
    """Refuse a manifest without a valid number of entries.

    >>> check_entries("manifest.json", {"entries": None})
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: manifest.json has None for 'entries': it is damaged or made up; \
build the store again with existing='overwrite'

    Raises:
        StoreError: the entry is missing, or is not a possible number of entries.
    """
    entries = stored.get("entries")
    if type(entries) is not int or not 0 <= entries <= _MOST_EDGES:
        raise _refusal(source, f"has {shown(entries)} for 'entries'")


def is_generation_folder(name: str) -> bool:
    """Return whether `name` is that of the folder of a later generation.

    >>> is_generation_folder("generation-00003"), is_generation_folder("graph")
    (True, False)
    """
    return _FOLDER.fullmatch(name) is not None


def check_generations(source: Path | str, stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the unchecked manifests of the generations that an updated store lists.

    >>> check_generations("manifest.json", {"generations": []})
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: manifest.json has [] for 'generations': it is damaged or made up; \
build the store again with existing='overwrite'

    Raises:
        StoreError: the list of generations or the history is not one that an update writes.
    """
    listed, history = stored[GENERATIONS], stored.get(HISTORY)
    keys = {"folder", "manifest"}
    is_whole = isinstance(listed, list) and all(
        isinstance(entry, dict) and entry.keys() == keys and isinstance(entry["manifest"], dict)
        for entry in listed
    )
    if not is_whole or not listed:
        raise _refusal(source, f"has {shown(listed)} for {GENERATIONS!r}")
    folders = [entry["folder"] for entry in listed]
    for folder in folders:
        if folder != FIRST_FOLDER and not (
            isinstance(folder, str) and is_generation_folder(folder)
        ):
            raise _refusal(source, f"has {shown(folder)} for the folder of a generation")
    if len(set(folders)) < len(folders):
        raise _refusal(source, "lists a generation twice")
    if not isinstance(history, list) or not all(map(_is_record, history)):
        raise _refusal(source, f"has {shown(history)} for {HISTORY!r}")
    return [entry["manifest"] for entry in listed]


def _is_record(value: Any) -> bool:
    """Return whether `value` is a valid record of an update in a history."""
    return isinstance(value, dict) and all(type(value.get(key, 0)) is int for key in COUNTED)


def _refusal(source: Path | str, problem: str) -> StoreError:
    return StoreError(
        f"{source} {problem}: it is damaged or made up; {REBUILD}",
        arguments=REBUILD_ARGUMENTS,
    )

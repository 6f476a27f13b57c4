"""Whether `build.json` and `manifest.json` hold what a build writes, before anything is believed.

Their checksums detect damage. What a file says may still be made up, or written by hand, and must
not lead to a path outside of the store, to an endless loop, or to a traceback.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
}
"""Entries of `build.json`, which a manifest has too, with their types."""
_MOST_NODES = 1 << 31
_LEAST = {"num_nodes": 0, "num_roots": 0, "rows_per_shard": 1, "k": 1, "num_clusters": 0}


def check_build(source: Path | str, stored: Mapping[str, Any]) -> None:
    """Refuse a description of a build that no build writes; `source` names it in messages.

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
        if not least <= stored[key] <= _MOST_NODES:
            raise _refusal(
                source, f"has {shown(stored[key])} for {key!r}, expected {least} to {_MOST_NODES:,}"
            )
    nodes, roots = stored["num_nodes"], stored["num_roots"]
    if roots > nodes or (stored["roots"] is None and roots != nodes):
        raise _refusal(source, f"has {roots:,} roots of {nodes:,} nodes")


def check_lists(
    source: Path | str, stored: Mapping[str, Any], files: set[str], num_shards: int
) -> None:
    """Refuse a manifest whose lists of files and shards are not those of its build.

    >>> lists = {"files": {}, "shards": []}
    >>> check_lists("manifest.json", lists, files=set(), num_shards=0)
    >>> check_lists("manifest.json", lists, files={"cut.npy"}, num_shards=0)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: manifest.json lists other files than cut.npy: it is damaged or \
made up; build the store again with existing='overwrite'

    Args:
        source: Name of the manifest in messages.
        stored: The manifest; its build was checked.
        files: Names of the files that its build has besides shards.
        num_shards: Number of shards that its build has.

    Raises:
        StoreError: the lists are missing, or name other files.
    """
    listed, shards = stored.get("files"), stored.get("shards")
    if not isinstance(listed, dict) or listed.keys() != files:
        raise _refusal(source, f"lists other files than {', '.join(sorted(files)) or 'none'}")
    for name, facts in listed.items():
        kinds = {"bytes": int, "checksum": str}
        is_whole = isinstance(facts, dict) and facts.keys() == kinds.keys()
        if not is_whole or any(type(facts[key]) is not kind for key, kind in kinds.items()):
            raise _refusal(source, f"has {shown(facts)} for the file {name}")
    if not isinstance(shards, list) or len(shards) != num_shards:
        raise _refusal(source, f"does not list the {num_shards:,} shards of its build")


def _refusal(source: Path | str, problem: str) -> StoreError:
    return StoreError(
        f"{source} {problem}: it is damaged or made up; {REBUILD}",
        arguments=REBUILD_ARGUMENTS,
    )

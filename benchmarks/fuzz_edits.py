"""Edits of JSON documents, and of files with a JSON header, for `fuzz_targets.py`."""

import json
import random
import struct
from typing import Any

ODD = [None, True, 0, 1, -1, 2, 3, 10**6, 2**31, 2**63, 10**30, 0.5, -0.0, 1e-300, 1e308]
ODD += [float("nan"), "", "inf", "GPN", "..", "x" * 300, [], [1], [[]], [1, "a"], {}, {"a": 1}]
"""Values that an edit puts anywhere into a JSON document."""


def edit_json(content: bytes, rng: random.Random) -> bytes:
    """Change, remove or copy one value of a JSON document."""
    return json.dumps(_edited(json.loads(content), rng)).encode()


def edit_header(content: bytes, rng: random.Random) -> bytes:
    """Change one value of the JSON header after its length, or of the facts inside of it."""
    (size,) = struct.unpack("<Q", content[:8])
    header, rest = json.loads(content[8 : 8 + size]), content[8 + size :]
    if "facts" in header.get("__metadata__", {}) and rng.random() < 0.7:
        facts = json.loads(header["__metadata__"]["facts"])
        header["__metadata__"]["facts"] = json.dumps(_edited(facts, rng))
    else:
        header = _edited(header, rng)
    return joined_header(header, rest)


def joined_header(header: Any, rest: bytes) -> bytes:
    """Return a file of the header's length, the header and the rest."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rest


def without_checksum(content: bytes) -> bytes:
    """Return a model file as an earlier version wrote it."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["facts"])
    del facts["checksum"]
    header["__metadata__"]["facts"] = json.dumps(facts)
    return joined_header(header, content[8 + size :])


def _edited(value: Any, rng: random.Random) -> Any:
    owners = [(owner, key) for owner in _containers(value) for key in _keys(owner)]
    if not owners or rng.random() < 0.02:
        return rng.choice(ODD)
    owner, key = rng.choice(owners)
    action = rng.random()
    if action < 0.2:
        del owner[key]
    elif action < 0.4:
        other, place = rng.choice(owners)
        owner[key] = json.loads(json.dumps(other[place]))
    else:
        owner[key] = rng.choice(ODD)
    return value


def _containers(value: Any) -> list[Any]:
    """Return all objects and lists of a document."""
    parts, place = [value] if isinstance(value, dict | list) else [], 0
    while place < len(parts):
        inner = parts[place].values() if isinstance(parts[place], dict) else parts[place]
        parts += [each for each in inner if isinstance(each, dict | list)]
        place += 1
    return parts


def _keys(owner: Any) -> list[Any]:
    return list(owner) if isinstance(owner, dict) else list(range(len(owner)))

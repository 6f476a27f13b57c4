"""What `make fuzz` starts from is accepted, and what it has found stays fixed.

Fuzzing itself takes minutes; here every reader gets some hundred edits of its seeds.
"""

import importlib
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[1]
TARGETS = ["npz", "csv", "manifest", "shard", "node_array", "graph_folder", "model", "checkpoint"]
TARGETS += ["json", "plain_pickle"]
EDITS = 40


@pytest.fixture(scope="module")
def fuzz():
    """The module with all targets."""
    sys.path.insert(0, str(REPOSITORY / "benchmarks"))
    yield importlib.import_module("fuzz_targets")
    sys.path.remove(str(REPOSITORY / "benchmarks"))


@pytest.fixture(scope="module")
def seeds(fuzz, tmp_path_factory):
    """Accepted contents of each target by its name, made on demand."""
    made = {}

    def seeds_of(name):
        if name not in made:
            made[name] = fuzz.TARGETS[name].seeds(tmp_path_factory.mktemp("seeds"))
        return made[name]

    return seeds_of


def with_damage(content, rng):
    """Change, remove or repeat some bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place, length = rng.randrange(len(data) + 1), rng.randint(0, 8)
        data[place : place + length] = rng.choice([b"", rng.randbytes(length), data[:length]])
    return bytes(data)


def test_all_targets_are_tested(fuzz):
    assert list(fuzz.TARGETS) == TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_accepted(fuzz, seeds, tmp_path, name):
    for seed in seeds(name):
        assert fuzz.accepts(fuzz.TARGETS[name], seed, tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_seeds_are_accepted_or_refused_in_one_sentence(fuzz, seeds, tmp_path, name):
    target, rng = fuzz.TARGETS[name], random.Random(name)
    refused = 0
    for _ in range(EDITS):
        seed = rng.choice(seeds(name))
        refused += not fuzz.accepts(target, with_damage(seed, rng), tmp_path)
        if target.mutate is not None:
            refused += not fuzz.accepts(target, target.mutate(seed, rng), tmp_path)
    assert refused > 0


def npy(header):
    """An array file of version 1 with this header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(160)


FINDINGS = {
    "a header that is no Python": ("node_array", npy("{'descr': '<i4', 'fortran_order' False}\n")),
    "a header with wrong indentation": ("node_array", npy("{'descr':\n   1\n 2}\n")),
    "a header of Python 2": (
        "node_array",
        npy("{'descr': '<i4', 'fortran_order': False, 'shape': (41L,), }\n"),
    ),
    "a shard with numbers that are texts": (
        "shard",
        b"\x8d\0\0\0\0\0\0\0"
        b'{"arrays": {"cluster_mass": {"shape": "GPN"}, "ids": {"shape": [6]}}, "build": 3, '
        b'"clusters": "", "facts": 3, "first": 0, "rows": 2147483648}\0\0\0\0',
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_findings_are_refused(fuzz, tmp_path, finding):
    name, content = FINDINGS[finding]
    assert not fuzz.accepts(fuzz.TARGETS[name], content, tmp_path)


def changed(value, path, new):
    """A copy of a JSON value with another value at a path."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize(
    ("name", "path", "new"),
    [
        ("manifest", ["files"], [1]),
        ("manifest", ["files"], 0.5),
        ("manifest", ["files", "cut.npy"], {}),
        ("manifest", ["shards"], []),
        ("manifest", ["shards"], {}),
        ("manifest", ["shards"], 3),
        ("manifest", ["mean_missing_mass"], float("nan")),
        ("manifest", ["num_roots"], 2**31),
        ("graph_folder", ["num_classes"], None),
        ("graph_folder", ["arrays", "labels", "file"], "../graph.json"),
    ],
)
def test_findings_in_documents_are_refused(fuzz, seeds, tmp_path, name, path, new):
    content = json.dumps(changed(json.loads(seeds(name)[0]), path, new)).encode()
    assert not fuzz.accepts(fuzz.TARGETS[name], content, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("facts", {"a": float("nan")}), ("rows", [1]), ("rows", -1), ("rows", 10**30), ("first", "a")],
)
def test_findings_in_headers_of_shards_are_refused(fuzz, seeds, tmp_path, key, value):
    (content,) = seeds("shard")
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size]) | {key: value}
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + content[8 + size :]
    assert not fuzz.accepts(fuzz.TARGETS["shard"], content, tmp_path)


def test_one_damaged_id_does_not_fill_the_memory(fuzz, tmp_path):
    np.savez(tmp_path / "seed.npz", edge_index=np.array([[0, 2**30], [1, 2]]))
    content = (tmp_path / "seed.npz").read_bytes()
    assert not fuzz.accepts(fuzz.TARGETS["npz"], content, tmp_path)

"""Readers of files that may hold anything, each as a function of bytes for `fuzz.py`.

A target accepts the bytes, or refuses them with a `GpnScaleError`; everything else is a finding.
Checksums would hide what lies behind them from a fuzzer, so targets compute them again.
"""

import json
import pickle
import random
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse
from fuzz_edits import edit_header, edit_json, without_checksum

from gpn_scale.block_checksums import block_checksums
from gpn_scale.config import EncoderConfig, FlowConfig, RunConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Graph, Split
from gpn_scale.data.graph_folder import MANIFEST as GRAPH_MANIFEST
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.data.import_tables import import_tables
from gpn_scale.data.npz import read_npz, write_npz
from gpn_scale.data.plain_pickle import read_plain_pickle
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.tables import read_tables
from gpn_scale.errors import GpnScaleError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.ppr.example import example_store
from gpn_scale.ppr.manifest import BUILD, CLUSTERS, MANIFEST
from gpn_scale.ppr.node_file import read_node_file
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.sealed import checksum, sealed
from gpn_scale.ppr.shard import ShardInfo, read_shard_info, shard_entry, shard_name
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from gpn_scale.reading import parse_json
from gpn_scale.train.checkpoint import restore_checkpoint, save_checkpoint

_SEPARATOR = b"\x1e"
_LARGEST_DATA = 1 << 20
CONFIG = RunConfig(
    encoder=EncoderConfig(hidden=4, latent=2),
    flow=FlowConfig(radial_layers=2),
    train=TrainConfig(epochs=2),
)
Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, with files that it accepts."""

    read: Callable[[bytes, Path], None]
    """Read the bytes, in a folder that is its own; may raise a `GpnScaleError`."""
    seeds: Callable[[Path], list[bytes]]
    """Return contents that are accepted, made in an empty folder."""
    mutate: Mutate | None = None
    """Edit a content in a way that knows its format; None if bytes alone are edited."""


def accepts(target: Target, content: bytes, folder: Path) -> bool:
    """Return whether a reader accepts the bytes; errors that are no `GpnScaleError` pass."""
    with np.errstate(all="ignore"):
        try:
            target.read(content, folder)
        except GpnScaleError:
            return False
    return True


@cache
def small_graph(features: str = "dense") -> Graph:
    """Return a graph of 40 nodes with features, names, a split and a mark."""
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 20)
    values = rng.normal(size=(40, 4)).astype(np.float32) + labels[:, None]
    sparse = scipy.sparse.csr_array(np.where(values > 1, values, 0))
    csr = CSRFeatures(
        indptr=sparse.indptr, indices=sparse.indices, values=sparse.data, num_columns=4
    )
    return build_graph(
        rng.integers(0, 40, 100),
        rng.integers(0, 40, 100),
        features=csr if features == "sparse" else values,
        edge_weight=rng.uniform(0.5, 2, 100) if features == "sparse" else None,
        labels=labels,
        class_names=["no", "yes"],
        node_names=[f"n{node}" for node in range(40)],
        split=Split(train=np.arange(0, 40, 4), val=np.arange(1, 40, 4), test=np.arange(2, 40, 4)),
        marks={"odd": np.array([3, 7])},
    )


@cache
def raw_graph() -> Graph:
    """Return a graph of 40 nodes with prepared columns and a split."""
    nodes = {"id": list(range(40)), "kind": ["a", "b"] * 20, "age": list(range(40))}
    nodes |= {"label": ["no"] * 20 + ["yes"] * 20}
    edges = {"source": list(range(39)), "target": list(range(1, 40))}
    split = small_graph().split
    assert split is not None
    return import_tables(nodes, edges).graph.with_split(split)


def read_npz_file(content: bytes, folder: Path) -> None:
    """Read an npz graph whose CRCs are not checked, and read it back after writing it."""
    path, again = folder / "graph.npz", folder / "again.npz"
    path.write_bytes(content)
    with mock.patch.object(zipfile.ZipExtFile, "_update_crc", return_value=None):
        graph = read_npz(path, "graph")
    write_npz(graph, again)
    assert read_npz(again, "graph").fingerprint() == graph.fingerprint()


def npz_seeds(folder: Path) -> list[bytes]:
    """Return npz graphs with dense, sparse and no features."""
    path = folder / "seed.npz"
    graphs = [small_graph(), small_graph("sparse"), build_graph([0, 1], [1, 2], directed=True)]
    seeds = []
    for graph in graphs:
        write_npz(graph, path)
        seeds.append(path.read_bytes())
    return seeds


def read_csv_files(content: bytes, folder: Path) -> None:
    """Read two CSV tables, as a folder of tables and as an import."""
    nodes, _, edges = content.partition(_SEPARATOR)
    (folder / "nodes.csv").write_bytes(nodes)
    (folder / "edges.csv").write_bytes(edges)
    with suppress(GpnScaleError):
        read_tables(folder, "graph").fingerprint()
    import_tables(folder / "nodes.csv", folder / "edges.csv").graph.fingerprint()


def csv_seeds(_: Path) -> list[bytes]:
    """Return pairs of tables with columns of all kinds."""
    tables = [
        ("id,label,age\nann,x,31\nbob,y,29\n", "source,target,weight\nann,bob,0.5\n"),
        (
            "id;label;split;when;open;text\n1;a;train;2024-01-31;yes;one two\n2;b;train;;no;\n"
            "3;a;val;2023-12-01;yes;three\n4;b;test;;;\n5;;;2022-02-02;no;four\n",
            "source;target\n1;2\n2;3\n2;2\n",
        ),
        ('id,x\n"a ""b""",1e3\n"c\nd",\n', 'source,target\n"a ""b""","c\nd"\n'),
        ("id\tlabel\tn\n007\tä\t-1\n7\tß\t0.5\n", "source\ttarget\n007\t7\n"),
    ]
    return [nodes.encode() + _SEPARATOR + edges.encode() for nodes, edges in tables]


def _store(folder: Path) -> Path:
    """Return a small store in the folder, made on the first call."""
    path = folder / "store"
    if not path.is_dir():
        example_store(path)
        for name in (MANIFEST, BUILD, shard_name(0)):
            (folder / f"whole-{name}").write_bytes((path / name).read_bytes())
    return path


def _use_store(path: Path) -> None:
    """Read everything that a store holds."""
    assert isinstance(verify_store(path), list)
    store = PPRStore.open(path)
    rows = store.rows(store.roots[:50])
    assert np.isfinite(rows.weights).all()
    assert not rows.ids.size or rows.ids.max() < store.num_nodes
    assert len(store.missing_mass) == store.num_roots
    assert store.cluster_of_node is None or store.cut_mass_of_node is not None
    assert store.fingerprint
    assert store.clusters_checksum != ""
    assert store.build_seconds >= 0


def resealed(content: bytes) -> bytes:
    """Return a JSON object with the checksum that its content has; other bytes as they are."""
    try:
        value = json.loads(content)
        return sealed(value).encode() if isinstance(value, dict) else content
    except (ValueError, RecursionError):
        return content


def read_manifest_file(content: bytes, folder: Path) -> None:
    """Open a store with this manifest, and verify one with this `build.json`."""
    store = _store(folder)
    content = resealed(content)
    (store / MANIFEST).write_bytes(b"")
    (store / BUILD).write_bytes(content)
    assert verify_store(store)
    (store / BUILD).write_bytes((folder / f"whole-{BUILD}").read_bytes())
    (store / MANIFEST).write_bytes(content)
    _use_store(store)


def manifest_seeds(folder: Path) -> list[bytes]:
    """Return a manifest."""
    return [(_store(folder) / MANIFEST).read_bytes()]


def resealed_shard(content: bytes) -> tuple[bytes, ShardInfo | None]:
    """Return a shard with the header and the hashes that its data has; other bytes as they are."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        arrays = header["arrays"]
        info = ShardInfo(
            build=header["build"],
            clusters=header["clusters"],
            first=header["first"],
            rows=header["rows"],
            entries=arrays["ids"]["shape"][0],
            num_clusters=arrays["cluster_mass"]["shape"][1] if "cluster_mass" in arrays else 0,
            facts=header["facts"],
        )
        counts = (info.first, info.rows, info.entries, info.num_clusters)
        json.dumps(header["facts"], allow_nan=False)
        if not all(type(count) is int and 0 <= count < _LARGEST_DATA for count in counts):
            return content, None
        if (size := info.data_bytes) >= _LARGEST_DATA:
            return content, None
        data = content[8 + length :][:size].ljust(size, b"\0")
        table = block_checksums([memoryview(data)]).astype("<u8").tobytes()
        info = replace(info, checksum=checksum(table))
        return info.prefix() + data + table, info
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return content, None


def read_shard_file(content: bytes, folder: Path) -> None:
    """Check a shard on its own, and as part of a store whose manifest lists it."""
    store = _store(folder)
    path = store / shard_name(0)
    content, info = resealed_shard(content)
    path.write_bytes(content)
    manifest = json.loads((folder / f"whole-{MANIFEST}").read_bytes())
    if info is not None:
        manifest["shards"][0] = shard_entry(0, info)
    (store / MANIFEST).write_text(sealed(manifest))
    with suppress(GpnScaleError):
        OpenShard(path, read_shard_info(path), num_nodes=3).check_all()
    _use_store(store)


def shard_seeds(folder: Path) -> list[bytes]:
    """Return a shard."""
    return [(_store(folder) / shard_name(0)).read_bytes()]


def read_node_array(content: bytes, folder: Path) -> None:
    """Read an array of nodes with its own checksum, and as an array of a graph folder."""
    graph = folder / "graph"
    if not graph.is_dir():
        save_graph(small_graph(), graph)
        manifest = json.loads((graph / GRAPH_MANIFEST).read_bytes())
        del manifest["checksum"], manifest["arrays"]["labels"]["checksum"]
        manifest["arrays"]["labels"]["file"] = "labels.npy"
        (graph / GRAPH_MANIFEST).write_text(json.dumps(manifest))
    (graph / "labels.npy").write_bytes(content)
    with suppress(GpnScaleError):
        open_graph(graph).fingerprint()
    (folder / CLUSTERS).write_bytes(content)
    read_node_file(folder / CLUSTERS, checksum(content), "<i4", 40, below=2)


def node_array_seeds(folder: Path) -> list[bytes]:
    """Return arrays of 40 integers, also of an earlier version of the format."""
    seeds = []
    for version in ((1, 0), (2, 0)):
        with (folder / "seed.npy").open("wb") as file:
            np.lib.format.write_array(file, np.repeat([0, 1], 20).astype("<i4"), version)
        seeds.append((folder / "seed.npy").read_bytes())
    return seeds


def read_graph_folder(content: bytes, folder: Path) -> None:
    """Open a graph folder with this `graph.json`, of which no checksums are left."""
    graph = folder / "graph"
    if not graph.is_dir():
        save_graph(small_graph("sparse"), graph)
    (graph / GRAPH_MANIFEST).write_bytes(content)
    opened = open_graph(graph)
    assert opened.fingerprint()
    assert opened.structure_fingerprint()


def graph_folder_seeds(folder: Path) -> list[bytes]:
    """Return a `graph.json` without checksums."""
    save_graph(small_graph("sparse"), folder / "graph")
    manifest = json.loads((folder / "graph" / GRAPH_MANIFEST).read_bytes())
    del manifest["checksum"]
    for entry in manifest["arrays"].values():
        del entry["checksum"]
    return [json.dumps(manifest).encode()]


def read_model_file(content: bytes, folder: Path) -> None:
    """Load a model and predict with it."""
    path = folder / "model.safetensors"
    path.write_bytes(content)
    classifier = GPNClassifier.load(path, device="cpu")
    is_raw = classifier.contract.preparation is not None
    prediction = classifier.predict(raw_graph() if is_raw else small_graph())
    assert np.isfinite(prediction.probabilities).all()


def model_seeds(folder: Path) -> list[bytes]:
    """Return a GPN, a GPN+ and a model of prepared columns, without their checksums."""
    seeds = []
    for kind, graph in (("GPN", small_graph()), ("GPN+", small_graph()), ("GPN", raw_graph())):
        classifier = GPNClassifier(replace(CONFIG, model=kind), device="cpu").fit(graph)
        classifier.save(folder / "seed.safetensors")
        seeds.append(without_checksum((folder / "seed.safetensors").read_bytes()))
    return seeds


def read_checkpoint_file(content: bytes, folder: Path) -> None:
    """Restore a checkpoint and train on from it."""
    path = folder / "checkpoint.safetensors"
    path.write_bytes(content)
    config = replace(CONFIG, model="GPN")
    trainer = GPNClassifier(config, device="cpu").trainer(small_graph())
    restore_checkpoint(path, trainer, config, "graph")
    next(trainer.records(), None)


def checkpoint_seeds(folder: Path) -> list[bytes]:
    """Return checkpoints of the start and of an epoch, without their checksums."""
    config = replace(CONFIG, model="GPN")
    trainer = GPNClassifier(config, device="cpu").trainer(small_graph())
    path, seeds, records = folder / "seed.safetensors", [], trainer.records()
    for _ in range(3):
        save_checkpoint(path, trainer, config, "graph")
        seeds.append(without_checksum(path.read_bytes()))
        next(records)
    return seeds


def read_json_document(content: bytes, _: Path) -> None:
    """Parse a document; use it as a configuration and as a preparation if it is an object."""
    value = parse_json(content, "document")
    json.dumps(value, allow_nan=False)
    if isinstance(value, dict):
        with suppress(GpnScaleError):
            RunConfig.from_dict(value)
        with suppress(GpnScaleError):
            Preparation.from_dict(value)


def json_seeds(_: Path) -> list[bytes]:
    """Return a configuration, a preparation and a document of all kinds of values."""
    nodes = {"id": [0, 1, 2], "kind": ["a", "b", None], "day": ["2024-01-31", None, "2023-05-05"]}
    nodes |= {"age": [1.5, None, 7], "text": ["one two three", "four five six", "seven eight nine"]}
    preparation = import_tables(nodes, {"source": [0], "target": [1]}).graph.preparation
    assert preparation is not None
    values = [RunConfig().to_dict(), preparation.to_dict()]
    values += [{"a": [1, -2.5e3, "\u00e9\n", None, True, {}], "b": [[[]]]}]
    return [json.dumps(value).encode() for value in values]


def read_pickle(content: bytes, _: Path) -> None:
    """Read a pickle without running it."""
    assert read_plain_pickle(content, "pickle") is not None


def pickle_seeds(_: Path) -> list[bytes]:
    """Return pickles of arrays, matrices and containers in all protocols."""
    matrix = scipy.sparse.csr_matrix(np.eye(3, 4, dtype=np.float32))
    values: list[Any] = [{0: [1, 2], 1: []}, np.arange(6).reshape(2, 3)]
    values += [[1.5, "text", (True, None, 2**40)]]
    seeds = [pickle.dumps(value, protocol) for value in values for protocol in range(5)]
    return seeds + [pickle.dumps(matrix, protocol) for protocol in (2, 4)]


TARGETS = {
    "npz": Target(read_npz_file, npz_seeds),
    "csv": Target(read_csv_files, csv_seeds),
    "manifest": Target(read_manifest_file, manifest_seeds, edit_json),
    "shard": Target(read_shard_file, shard_seeds, edit_header),
    "node_array": Target(read_node_array, node_array_seeds),
    "graph_folder": Target(read_graph_folder, graph_folder_seeds, edit_json),
    "model": Target(read_model_file, model_seeds, edit_header),
    "checkpoint": Target(read_checkpoint_file, checkpoint_seeds, edit_header),
    "json": Target(read_json_document, json_seeds, edit_json),
    "plain_pickle": Target(read_pickle, pickle_seeds),
}
"""All targets by name."""

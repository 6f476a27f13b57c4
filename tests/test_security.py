"""SECURITY.md: no file that is read is run."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.cli.train import main as train
from gpn_scale.data.benchmark_files import BENCHMARKS
from gpn_scale.data.graph_folder import save_graph
from precompute.cli import main as precompute
from tests.data.raw_files import Marker, put_planetoid, put_shchur
from tests.data.test_datasets import path_graph
from tests.data.test_ogb import FILES, put_files


def put_family(name: str, root: Path) -> list[Path]:
    """Write the files of a dataset; return all of them."""
    if name == "ogbn-arxiv":
        put_files(root)
        return [root / "ogbn_arxiv" / file for file in FILES]
    if name in BENCHMARKS:
        paths = BENCHMARKS[name].paths(root)
        if len(paths) == 1:
            put_shchur(paths[0])
        else:
            put_planetoid(root / BENCHMARKS[name].folder, name.lower(), [503, 502])
        return paths
    if name == "archive":
        np.savez(root / "archive.npz", edge_index=[[0], [1]])
        return [root / "archive.npz"]
    if name == "tables":
        (root / name).mkdir()
        (root / name / "nodes.csv").write_text("id\na\nb\n")
        (root / name / "edges.csv").write_text("source,target\na,b\n")
    else:
        save_graph(path_graph(4), root / name)
    return [path for path in (root / name).rglob("*") if path.is_file()]


def hostile(path: Path, marker: Path) -> list[bytes]:
    """Return contents of a file that would create `marker` if it were unpickled."""
    contents = [pickle.dumps(Marker(marker), protocol=protocol) for protocol in (0, 2, 4)]
    array = np.array([Marker(marker)], dtype=object)
    if path.suffix == ".npz":
        names = zipfile.ZipFile(path).namelist()
        np.savez(path, **{name.removesuffix(".npy"): array for name in names})
    elif path.suffix == ".npy":
        np.save(path, array)
    else:
        return contents
    return [*contents, path.read_bytes()]


@pytest.mark.parametrize("command", [train, precompute])
@pytest.mark.parametrize("name", [*BENCHMARKS, "ogbn-arxiv", "archive", "tables", "folder"])
def test_no_file_of_a_data_folder_is_run(tmp_path, monkeypatch, capsys, command, name):
    monkeypatch.chdir(tmp_path)
    root, marker = tmp_path / "data", tmp_path / "marker"
    root.mkdir()
    for path in put_family(name, root):
        whole = path.read_bytes()
        for content in hostile(path, marker):
            path.write_bytes(content)
            options = ["--dataset", name, "--data-dir", str(root), "--out", str(tmp_path / "out")]
            assert command(options) == 2, path
            assert capsys.readouterr().err.startswith("error: ")
            assert not marker.exists()
        path.write_bytes(whole)

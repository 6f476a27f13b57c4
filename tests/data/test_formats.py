"""Formats of graphs: each is recognised, named, offered and described by its entry alone."""

import numpy as np
import pytest

from gpn_scale.cli.arguments import training_parser
from gpn_scale.cli.evaluate_options import evaluation_parser
from gpn_scale.data import formats
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import dataset_help, load_graph
from gpn_scale.data.formats import (
    FORMATS,
    GraphFormat,
    describe_formats,
    graph_at,
    graph_called,
    graph_files,
    names_in,
)
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.errors import GraphError
from precompute.arguments import ppr_parser

NPZ, SAVED, TABLES = FORMATS


def path_graph(num_nodes):
    return build_graph(np.arange(num_nodes - 1), np.arange(1, num_nodes))


def put_tables(folder):
    folder.mkdir(exist_ok=True)
    (folder / "nodes.csv").write_text("id\na\nb\n")
    (folder / "edges.csv").write_text("source,target\na,b\n")


def read_pairs(path, name):
    return build_graph(*np.loadtxt(path, dtype=np.int64, ndmin=2).T, name=name)


PAIRS = GraphFormat(
    suffix=".pairs",
    recognises=lambda path: path.suffix == ".pairs" and path.is_file(),
    read=read_pairs,
    description="a file {}.pairs with two ids in every line",
)


@pytest.fixture
def folder(tmp_path):
    """A graph of each format, and files that are none."""
    write_npz(path_graph(4), tmp_path / "a.v1.npz")
    save_graph(path_graph(3), tmp_path / "b.v2")
    put_tables(tmp_path / "c")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.npz").mkdir()
    (tmp_path / "text.txt").touch()
    return tmp_path


def test_a_path_is_recognised_by_one_format_and_names_its_graph(folder):
    expected = {"a.v1.npz": (NPZ, "a.v1", 4), "b.v2": (SAVED, "b.v2", 3), "c": (TABLES, "c", 2)}
    for file_name, (own, name, num_nodes) in expected.items():
        path = folder / file_name
        assert [each for each in FORMATS if each.recognises(path)] == [own]
        graph = graph_at(path)
        assert (graph.name, graph.num_nodes) == (name, num_nodes)
    for file_name in ("empty", "empty.npz", "text.txt", "nowhere", "a\0b", "x" * 5000):
        assert graph_at(folder / file_name) is None


def test_a_folder_is_named_after_the_place_it_is_at(folder, monkeypatch):
    monkeypatch.chdir(folder / "c")
    assert graph_at(folder / "c" / ".").name == "c"
    assert graph_at(type(folder)(".")).name == "c"


def test_of_graphs_with_one_name_the_first_format_counts(tmp_path):
    assert graph_called("mine", tmp_path) is None
    put_tables(tmp_path / "mine")
    assert graph_called("mine", tmp_path).num_nodes == 2
    save_graph(path_graph(3), tmp_path / "mine")
    assert graph_called("mine", tmp_path).num_nodes == 3
    write_npz(path_graph(4), tmp_path / "mine.npz")
    assert graph_called("mine", tmp_path).num_nodes == 4
    assert graph_called("mine.npz", tmp_path).name == "mine"


def test_all_graphs_of_a_folder_are_listed_once(folder):
    write_npz(path_graph(4), folder / "c.npz")
    assert names_in(folder) == ["a.v1", "b.v2", "c"]
    assert names_in(folder / "nowhere") == []


def test_every_format_is_described():
    text = describe_formats("DIR/{X}")
    assert text.count("DIR/{X}") == len(FORMATS)
    assert text.startswith("a file DIR/{X}.npz, a folder DIR/{X} of a saved graph (graph.json) or ")
    assert describe_formats("DIR/X") in dataset_help()


def test_a_new_format_is_one_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, PAIRS))
    (tmp_path / "mine.pairs").write_text("0 1\n1 2\n")
    for name in ("mine", "mine.pairs", str(tmp_path / "mine.pairs")):
        graph = load_graph(name, tmp_path)
        assert (graph.name, graph.num_nodes, graph.num_edges) == ("mine", 3, 4)
    with pytest.raises(GraphError, match=r"did you mean 'mine'\?.* file .*/mien\.pairs with two"):
        load_graph("mien", tmp_path)
    with pytest.raises(GraphError, match=r"a path must be that of .* or a file X\.pairs with two"):
        load_graph("no/where", tmp_path)
    for parser in (training_parser(), evaluation_parser(), ppr_parser()):
        assert "a file DIR/X.pairs with two" in " ".join(parser.format_help().split())


def test_a_graph_and_its_copies_know_where_it_was_read(tmp_path):
    save_graph(build_graph([0], [1]), tmp_path / "pair")
    graph = graph_at(tmp_path / "pair")
    assert graph.source == str(tmp_path / "pair")
    save_graph(graph, tmp_path / "copy")
    assert open_graph(tmp_path / "copy").source == str(tmp_path / "pair")
    assert graph_at(tmp_path / "copy").source == str(tmp_path / "copy")


def test_files_to_watch_are_those_that_change_with_the_graph(tmp_path):
    graph = build_graph([0], [1], features=[[1.0], [2.0]])
    write_npz(graph, tmp_path / "mine.npz")
    save_graph(graph, tmp_path / "saved")
    files = [file for name in ("mine", "saved") for file in graph_files(name, tmp_path)]
    assert [file for file in files if file.exists()] == [
        tmp_path / "mine.npz",
        tmp_path / "saved" / "graph.json",
    ]
    given = graph_files(str(tmp_path / "mine.npz"), tmp_path / "elsewhere")
    assert tmp_path / "mine.npz" in given
    assert tmp_path / "mine" / "edges.parquet" in graph_files("mine", tmp_path)

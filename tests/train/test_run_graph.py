"""How a graph is related to that of a run, and which split it gets."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DataConfig, PPRConfig, RunConfig, SplitConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.contract import DataContract
from gpn_scale.data.graph import Split
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import RunError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import (
    has_validation_nodes,
    prepared_for_run,
    read_splits,
    related_graph,
    training_fingerprint,
    write_splits,
)
from precompute.build import build_store
from precompute.resources import Resources
from precompute.update import update_store
from tests.later_graphs import later_graph

CONFIG = RunConfig(
    data=DataConfig(dataset="mine", left_out_classes=1), split=SplitConfig(train=0.3, val=0.3)
)

SUBSETS = ("train", "val", "test")


@pytest.fixture(scope="module")
def graph():
    labels, rng = np.arange(60) % 3, np.random.default_rng(1)
    features = rng.normal(size=(60, 2)).astype(np.float32)
    edges = rng.integers(0, 60, (2, 90))
    return build_graph(*edges, num_nodes=60, name="mine", labels=labels, features=features)


@pytest.fixture(scope="module")
def run(graph, tmp_path_factory):
    """Predictions and report of a run on the graph, as far as they matter here."""
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    trained_on = prepare_graph(graph, CONFIG)
    half = np.full((60, 2), 0.5, np.float32)
    values = {"alpha_0": half[:, 0], "alpha_0_no_network": half[:, 0]}
    prediction = Prediction(probabilities=half, probabilities_no_network=half, **values)
    write_predictions(directory.predictions, prediction, trained_on)
    report = {"graph": {"fingerprint": trained_on.fingerprint()}}
    directory.report.write_text(json.dumps(report))
    return directory, DataContract.of(trained_on)


def related(run, graph, dataset="mine", config=CONFIG, stores=()):
    return related_graph(run[0], graph, config, run[1], dataset=dataset, stores=stores)


def test_the_same_graph_is_that_of_training(run, graph):
    got = related(run, graph)
    assert (got.relation, got.notes) == ("training", ())
    assert got.graph.fingerprint() == training_fingerprint(run[0])


@pytest.fixture
def store(graph, tmp_path):
    """The store of the run, updated to the later graph."""
    one_thread = Resources(threads=1, memory_bytes=1 << 30)
    rows = PPRConfig(k=4, clusters=0)
    build_store(graph, rows, tmp_path / "store", resources=one_thread)
    update_store(tmp_path / "store", later_graph(graph), resources=one_thread)
    return tmp_path / "store"


@pytest.mark.parametrize("dataset", ["mine", "mine_today"])
def test_a_later_version_keeps_the_roles_of_training(run, graph, dataset, store):
    later = later_graph(graph)
    got = related(run, later, dataset, stores=[store])
    trained_on = prepare_graph(graph, CONFIG)
    assert got.relation == "later"
    assert got.graph.split.train.tolist() == trained_on.split.train.tolist()
    assert got.graph.split.val.tolist() == trained_on.split.val.tolist()
    new = np.arange(60, 64)
    known = new[later.labels[new] < 2]
    assert np.isin(known, got.graph.split.test).all()
    hidden = np.flatnonzero(later.labels == 2)
    assert got.graph.marks["left_out_classes"].tolist() == hidden.tolist()
    assert got.graph.num_classes == 2
    assert f"{dataset} is a later version of the training graph, 4 nodes" in got.notes[0]
    assert has_validation_nodes(got.graph)


def test_a_split_of_its_own_counts_if_training_has_used_such_a_one(run, graph):
    later = later_graph(graph)
    split = Split(train=np.arange(30), val=np.arange(30, 40), test=np.arange(40, 64))
    given = later.with_split(split)
    public = RunConfig(data=CONFIG.data, split=SplitConfig(kind="public"))
    got = related(run, given, config=public).graph
    assert got.split.val.tolist() == [node for node in range(30, 40) if later.labels[node] < 2]
    carried = related(run, given).graph
    assert carried.split.val.tolist() == prepare_graph(graph, CONFIG).split.val.tolist()


def test_another_name_needs_a_store_that_was_updated(run, graph, store, tmp_path):
    later = later_graph(graph)
    assert related(run, later, "mine_today").relation == "other"
    assert related(run, later, "mine_today", stores=[tmp_path / "none"]).relation == "other"
    built = tmp_path / "built"
    build_store(later, PPRConfig(k=4, clusters=0), built)
    assert related(run, later, "mine_today", stores=[built]).relation == "other"
    assert related(run, later, "mine_today", stores=[store]).relation == "later"


@pytest.mark.parametrize(
    ("dataset", "notes"),
    [("mine", 1), ("another", 0)],
)
def test_another_graph_stays_as_it_is(run, graph, dataset, notes):
    other = build_graph(
        [0], [1], num_nodes=70, labels=(np.arange(70) + 1) % 3, features=np.ones((70, 2))
    )
    got = related(run, other, dataset)
    assert got.relation == "other"
    assert got.graph is other
    assert len(got.notes) == notes
    assert all("predicted as a different graph" in note for note in got.notes)
    fewer = build_graph([0], [1], num_nodes=20, labels=np.arange(20) % 3, features=np.ones((20, 2)))
    assert related(run, fewer, dataset).relation == "other"
    assert not has_validation_nodes(fewer)


def test_a_run_without_files_takes_its_dataset_for_that_of_training(graph, run, tmp_path):
    bare = (RunDirectory(tmp_path), run[1])
    assert related(bare, graph).relation == "training"
    assert related(bare, later_graph(graph), "other").relation == "other"


@given(data=st.data(), count=st.integers(1, 20))
def test_splits_are_read_as_they_were_written(tmp_path_factory, data, count):
    path = tmp_path_factory.mktemp("splits") / "split.npy"
    roles = st.lists(st.integers(0, 4), min_size=count, max_size=count).map(np.array)
    own, earlier = data.draw(roles), data.draw(roles)
    splits = [
        Split(**{name: np.flatnonzero(role == code) for code, name in enumerate(SUBSETS)})
        for role in (own, earlier)
    ]
    marked = np.flatnonzero(earlier == 3)
    write_splits(path, count, *splits, marked)
    *read, read_marked = read_splits(path, count)
    for got, expected in zip(read, splits, strict=True):
        for name in SUBSETS:
            assert getattr(got, name).tolist() == getattr(expected, name).tolist()
    assert read_marked.tolist() == marked.tolist()
    with pytest.raises(RunError, match="the graph has changed since"):
        read_splits(path, count + 1)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x93NUMPY\x01"])
def test_damaged_splits_are_refused(tmp_path, content):
    (tmp_path / "split.npy").write_bytes(content)
    with pytest.raises(RunError, match=r"split\.npy cannot be read .*: train again"):
        read_splits(tmp_path / "split.npy", 5)


def test_a_run_with_a_split_of_its_own_gets_it_again(graph, tmp_path):
    directory = RunDirectory(tmp_path)
    split = Split(train=np.arange(20), val=np.arange(20, 30), test=np.arange(30, 60))
    nothing = np.empty(0, np.int64)
    write_splits(
        directory.split, 60, split, Split(train=nothing, val=nothing, test=nothing), nothing
    )
    prepared = prepared_for_run(directory, graph, CONFIG)
    assert prepared.split.train.tolist() == [n for n in range(20) if n % 3 < 2]
    assert prepared.marks["left_out_classes"].tolist() == [n for n in range(30, 60) if n % 3 == 2]

"""Prediction of a graph that has changed since training, with the same model: nothing is trained.

The updated store must give what a store of the new graph gives, up to its bound, and the interval
of alpha_0 must contain that of power iteration on the new graph.
"""

import re
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.report import main as report
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Split
from gpn_scale.data.npz import write_npz
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import (
    ELSEWHERE_CONDITION,
    LATER_CONDITION,
    KnownCalibration,
)
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.ppr.store import PPRStore
from precompute.cli import main as precompute
from tests.later_graphs import later_graph

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"
ROWS = ["--k", "8", "--clusters", "4", "--steps", "10", "--teleport", "0.1", "--threads", "1"]
EVERYONE = range(304)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on the graph `mine`, whose store was updated to `later`, and a store of `later`."""
    folder = tmp_path_factory.mktemp("later")
    graph = load_graph(SMALL)
    write_npz(graph, folder / "mine.npz")
    write_npz(later_graph(graph), folder / "later.npz")
    where = ["--data-dir", str(folder)]
    store = str(folder / "store")
    assert precompute(["--dataset", "mine", *where, *ROWS, "--out", store]) == 0
    options = ["--mode", "minibatch", "--ppr", store, "--epochs", "20", "--threads", "1"]
    options += ["--set", "opinion.epochs=20", "--out", str(folder / "run")]
    assert train(["--dataset", "mine", *where, *options]) == 0
    shutil.copytree(folder / "store", folder / "outdated")
    assert precompute(["--dataset", "later", *where, *ROWS, "--out", str(folder / "rebuilt")]) == 0
    update = ["update", store, "--dataset", "later", *where, "--tolerance", "0.2", "--threads", "1"]
    assert precompute(update) == 0
    (folder / "nodes.txt").write_text("".join(f"{node}\n" for node in EVERYONE))
    return folder


def predicted(folder, out, *more):
    """The table of predictions that the command writes."""
    run = ["--run", str(folder / "run"), "--out", str(out), "--overwrite", "--threads", "1"]
    assert predict([*run, *more]) == 0
    return pq.read_table(out).to_pandas()


@pytest.fixture(scope="module")
def exact(folder, tmp_path_factory):
    """All nodes of the new graph by power iteration."""
    out = tmp_path_factory.mktemp("exact") / "all.parquet"
    return predicted(folder, out, "--dataset", "later")


@pytest.fixture(scope="module")
def from_rows(folder, tmp_path_factory):
    """The same by the updated store, and by the rebuilt one."""
    nodes = ["--dataset", "later", "--nodes", str(folder / "nodes.txt")]
    place = tmp_path_factory.mktemp("rows")
    updated = predicted(folder, place / "updated.parquet", *nodes)
    rebuilt = predicted(folder, place / "r.parquet", *nodes, "--ppr", str(folder / "rebuilt"))
    return updated, rebuilt


def test_rows_that_stayed_have_moved(folder):
    moved = PPRStore.open(folder / "store").moved(np.array(EVERYONE))
    assert 0.01 < moved.max() <= 0.2
    assert (moved == 0).sum() < 200


def test_intervals_contain_alpha_0_of_power_iteration_on_the_new_graph(exact, from_rows):
    updated, _ = from_rows
    assert (updated["alpha_0_lower"] <= exact["alpha_0"]).all()
    assert (exact["alpha_0"] <= updated["alpha_0_upper"]).all()


def test_predictions_are_close_to_those_of_a_rebuilt_store(folder, exact, from_rows):
    updated, rebuilt = from_rows
    assert (updated["predicted_class"] == rebuilt["predicted_class"]).mean() > 0.97
    moved = PPRStore.open(folder / "store").moved(np.array(EVERYONE))
    same = moved == 0
    wider = (updated["alpha_0_upper"] - updated["alpha_0_lower"])[~same]
    assert (wider > (rebuilt["alpha_0_upper"] - rebuilt["alpha_0_lower"])[~same]).mean() > 0.9
    columns = ["alpha_0", "label_evidence", "p_known", "probability_0"]
    for name in columns:
        assert updated[name].corr(rebuilt[name], method="spearman") > 0.97, name
        assert updated[name].corr(exact[name], method="spearman") > 0.9, name


def test_p_values_are_those_of_the_validation_nodes_in_the_new_graph(folder, exact):
    """A second way to the temperature and the p-values of parts: the library's pieces by hand."""
    graph, mine = load_graph("later", folder), pq.read_table(folder / "run/predictions.parquet")
    split = mine["split"].to_pandas()
    val = np.flatnonzero(split == "val")
    trained = GPNClassifier.load(folder / "run" / "model.safetensors").trained
    train_nodes = np.flatnonzero(split == "train")
    graph = graph.with_split(Split(train=train_nodes, val=val, test=[]))
    raw = predict_all(trained, graph)
    calibration = KnownCalibration.fitted(raw.rows(val), graph.labels[val])
    calibration.temper(raw)
    surprise = calibration.surprise(raw)
    np.testing.assert_allclose(exact["p_labels"], np.exp(-surprise["labels"]), rtol=1e-5)
    np.testing.assert_allclose(exact["probability_1"], raw.probabilities[:, 1], atol=1e-5)


def test_label_evidence_and_roles_follow_the_graph(folder, exact):
    before = pq.read_table(folder / "run" / "predictions.parquet").to_pandas()
    for name in ("train", "val"):
        assert np.flatnonzero(exact["split"] == name).tolist() == (
            np.flatnonzero(before["split"] == name).tolist()
        )
    assert (exact["split"][300:] == "test").all()
    assert (exact["label_evidence"][300:] > 0).all()  # edges reach training nodes


def test_the_condition_of_p_values_is_shown(folder, tmp_path, capsys):
    predicted(folder, tmp_path / "x.parquet", "--dataset", "later")
    text = capsys.readouterr().out
    assert "later is a later version of the training graph, 4 nodes have joined" in text
    assert LATER_CONDITION in text
    assert ELSEWHERE_CONDITION not in text


def test_files_that_change_under_the_same_name_are_followed(folder, exact, tmp_path, capsys):
    moved = tmp_path / "data"
    moved.mkdir()
    shutil.copy(folder / "later.npz", moved / "mine.npz")
    got = predicted(folder, tmp_path / "x.parquet", "--data-dir", str(moved))
    assert "mine is a later version of the training graph" in capsys.readouterr().out
    np.testing.assert_allclose(got["p_known"], exact["p_known"], rtol=1e-5)
    write_npz(load_graph(SMALL.replace("nodes=300", "nodes=310")), moved / "mine.npz")
    got = predicted(folder, tmp_path / "x.parquet", "--data-dir", str(moved))
    text = capsys.readouterr().out
    assert "mine is neither the training graph nor a later version of it" in text
    assert ELSEWHERE_CONDITION in text
    assert got["split"].isna().all()


def test_lists_are_made_of_a_later_graph(folder, exact, tmp_path, capsys):
    run = ["--run", str(folder / "run"), "--threads", "1", "--out", str(tmp_path)]
    assert triage([*run, "--dataset", "later", "--review", "304", "--include-labelled"]) == 0
    text = capsys.readouterr().out
    assert "later is a later version of the training graph" in text
    assert LATER_CONDITION in text
    listed = pd.read_csv(tmp_path / "review.csv").set_index("id").sort_index()
    np.testing.assert_allclose(listed["p_known"], exact["p_known"], atol=1e-4)


def test_lists_of_any_other_graph_tell_what_p_values_mean_there(folder, tmp_path, capsys):
    other = load_graph(SMALL.replace("nodes=300", "nodes=310"))
    write_npz(other, tmp_path / "other.npz")
    run = ["--run", str(folder / "run"), "--threads", "1", "--out", str(tmp_path)]
    assert triage([*run, "--dataset", "other", "--data-dir", str(tmp_path)]) == 0
    assert ELSEWHERE_CONDITION in capsys.readouterr().out


def test_the_page_of_a_run_is_not_drawn_for_a_later_graph(folder, tmp_path, capsys):
    shutil.copy(folder / "later.npz", tmp_path / "mine.npz")
    assert report(["--run", str(folder / "run"), "--data-dir", str(tmp_path)]) == 2
    text = capsys.readouterr().err
    assert "has changed since" in text
    assert "gpn-triage accept the changed graph" in text


@pytest.mark.parametrize(
    ("store", "dataset", "message"),
    [
        ("outdated", "later", r"update the store with update\(graph\).*precompute update STORE"),
        (
            "store",
            "mine",
            "has been updated to a later version of this graph: put that in its place",
        ),
    ],
)
def test_graphs_and_stores_of_different_versions_are_refused(
    folder, tmp_path, capsys, store, dataset, message
):
    (tmp_path / "nodes.txt").write_text("0\n")
    run = ["--run", str(folder / "run"), "--dataset", dataset, "--ppr", str(folder / store)]
    run += ["--nodes", str(tmp_path / "nodes.txt"), "--out", str(tmp_path / "x.csv")]
    assert predict(run) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert re.search(message, errors)
    assert not (tmp_path / "x.csv").exists()

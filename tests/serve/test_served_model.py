"""The object that requests are answered from, and what makes it change."""

import shutil
import threading

import numpy as np
import pytest

from gpn_scale.errors import GpnScaleError, RunError
from gpn_scale.evaluation.reasons import reason_kind
from gpn_scale.serve import served_model
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.triage.label_next import unused_nodes
from gpn_scale.triage.node_reasons import UsualValues
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import write_promise
from tests.serve.conftest import source_of


def test_lists_are_those_of_the_prediction(model):
    prediction = model.classifier.predict(model.graph)
    assert model.usual() == UsualValues.of(model.graph, prediction)
    nodes = unused_nodes(model.graph)
    trust = model.table.column("trust")
    assert sorted(model.unused_by_trust()) == nodes.tolist()
    assert (np.diff(trust[model.unused_by_trust()]) >= 0).all()
    assert (np.diff(model.graph.out_degree[model.ordered("degree")]) >= 0).all()
    assert model.ordered("id").tolist() == model.ids.in_order().tolist()
    assert model.kinds == tuple(map(reason_kind, model.table.reasons))
    assert model.classes == ("bad", "good")


def test_a_value_is_computed_once_and_others_do_not_wait_for_it(model):
    calls, go = [], threading.Event()
    slow = threading.Thread(target=model.once, args=("test slow", go.wait))
    slow.start()
    assert model.once("test quick", lambda: calls.append(1) or 7) == 7
    assert model.once("test quick", lambda: calls.append(1) or 8) == 7
    go.set()
    slow.join()
    assert calls == [1]


def test_the_stamp_changes_with_model_promise_graph_and_store(own_run, tmp_path):
    store, graph = tmp_path / "store", tmp_path / "bank.npz"
    source = source_of(own_run, tmp_path / "served", store=store, graph_files=(graph,))
    stamps = [source.stamp()]
    directory = RunDirectory(own_run)
    watched = (directory.model, directory.promise, directory.report, store / "manifest.json", graph)
    for path in watched:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"changed {path}")
        stamps.append(source.stamp())
    assert len(set(stamps)) == 1 + len(watched)
    assert source.stamp() == stamps[-1]


def test_a_promise_is_read_and_a_wrong_one_refused(own_run, served_source, tmp_path):
    shutil.copytree(served_source.folder, tmp_path / "served")
    source, directory = source_of(own_run, tmp_path / "served"), RunDirectory(own_run)
    counts = {"held_out_nodes": 200, "answered_nodes": 150, "answered_errors": 3}
    promise = Promise(error=0.05, confidence=0.9, threshold=0.4, **counts)
    write_promise(directory.promise, promise, directory.model)
    graph = source.load_graph()
    assert source.opened(graph).promise == promise
    directory.promise.write_text("{}")
    with pytest.raises(RunError, match=r"promise\.json cannot be read"):
        source.opened(graph)


def test_a_store_that_does_not_fit_is_refused(own_run, tmp_path):
    source = source_of(own_run, tmp_path / "served", store=tmp_path / "absent")
    with pytest.raises(GpnScaleError, match="is not a PPR store"):
        source.opened(source.load_graph())


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(served_source, monkeypatch):
    fingerprints = iter(["old", "new", "new"])
    monkeypatch.setattr(served_model, "model_fingerprint", lambda _: next(fingerprints))
    fingerprint, _ = served_source._load(RunDirectory(served_source.run).model)
    assert fingerprint == "new"

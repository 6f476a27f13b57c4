"""Files of the service are made once, and made again if anything about them is wrong."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES
from gpn_scale.serve.served_files import served_files, served_key
from gpn_scale.train.run_directory import RunDirectory


@pytest.fixture(scope="module")
def loaded(served_run, served_source):
    classifier = GPNClassifier.load(RunDirectory(served_run).model)
    return classifier, classifier.aligned(served_source.load_graph()).graph


@pytest.fixture
def opened(loaded, tmp_path, monkeypatch):
    """Opens the files of a key, and counts the predictions of all nodes."""
    classifier, graph = loaded
    counts = []
    predict = GPNClassifier.predict_with_evidence
    monkeypatch.setattr(
        GPNClassifier,
        "predict_with_evidence",
        lambda self, *args, **more: counts.append(1) or predict(self, *args, **more),
    )

    def files(key="key"):
        memory = {"memory_bytes": DEFAULT_MEMORY_BYTES}
        return served_files(tmp_path / "served", key, classifier, graph, **memory)

    files.counts, files.folder = counts, tmp_path / "served"
    return files


def test_nodes_are_predicted_once(opened, loaded):
    classifier, graph = loaded
    first, second = opened(), opened()
    assert len(opened.counts) == 1
    np.testing.assert_array_equal(first.table.column("alpha_0"), classifier.predict(graph).alpha_0)
    np.testing.assert_array_equal(second.latent, first.latent)
    nodes = np.array([5, 100])
    np.testing.assert_allclose(
        first.latent[nodes], classifier.trained.latent(graph.features, nodes), atol=1e-5
    )
    names = graph.node_names[first.order]
    assert (names[1:] > names[:-1]).all()
    assert isinstance(second.values, np.memmap)
    assert not second.latent.flags.writeable


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["key.arrow", "key_latent.npy", "key_values.npy", "key_order.npy"])
@pytest.mark.parametrize("change", [damage, lambda path: path.unlink(), lambda p: p.write_text("")])
def test_a_damaged_or_missing_file_is_made_again(opened, name, change):
    before = opened().table.column("alpha_0").copy()
    change(opened.folder / name)
    np.testing.assert_array_equal(opened().table.column("alpha_0"), before)
    assert len(opened.counts) == 2


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"reasons": [], "hashes": {}}', "nonsense"])
def test_a_record_that_is_not_believed_is_made_again(opened, record):
    opened()
    (opened.folder / "key.json").write_text(record)
    opened()
    assert len(opened.counts) == 2
    assert json.loads((opened.folder / "key.json").read_text())["reasons"]


def test_files_of_another_key_are_replaced_and_foreign_ones_stay(opened):
    old = opened()
    (opened.folder / "notes.txt").write_text("mine")
    opened("other")
    assert not list(opened.folder.glob("key*"))
    assert (opened.folder / "notes.txt").exists()
    assert old.table.column("alpha_0")[0] > 0  # still mapped


def test_the_key_depends_on_model_graph_and_names(loaded):
    graph = loaded[1]
    others = [
        served_key("m", graph),
        served_key("n", graph),
        served_key("m", replace(graph, labels=graph.labels[::-1].copy())),
        served_key("m", replace(graph, node_names=graph.node_names[::-1].copy())),
        served_key("m", replace(graph, class_names=None)),
    ]
    assert len(set(others)) == 5
    assert served_key("m", graph) == others[0]


def test_what_cannot_be_written_is_one_sentence(loaded, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        served_files(tmp_path / "file", "key", *loaded, memory_bytes=DEFAULT_MEMORY_BYTES)

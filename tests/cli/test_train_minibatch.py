"""Minibatch training from the command line: what it writes, resuming, and refusals."""

import json
import re

import numpy as np
import pytest
import torch

from gpn_scale.cli import train as launcher
from gpn_scale.cli.train import main
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.train import objective
from gpn_scale.train.checkpoint import load_tensors
from gpn_scale.train.metrics_log import read_metrics
from precompute.cli import main as precompute

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"
BATCHES = ["--set", "minibatch.batch_size=4", "--set", "minibatch.tail_nodes=32"]
QUICK = ["--set", "train.warmup_steps=1", "--set", "train.patience=1000"]


def rows_of(out, *more, dataset=SMALL):
    assert precompute(["--dataset", dataset, "--out", str(out), "--threads", "1", *more]) == 0
    return out


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("rows") / "store"
    return rows_of(out, "--k", "8", "--clusters", "4", "--steps", "10")


def run(out, *more, dataset=SMALL, epochs=3):
    options = ["--dataset", dataset, "--mode", "minibatch", "--out", str(out)]
    return main([*options, "--epochs", str(epochs), *BATCHES, *QUICK, *more])


def tensors_of(path, file="model.safetensors"):
    return load_tensors(path / file)[0]


def assert_one_sentence(capsys, message):
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    assert re.search(message, errors), errors


def test_a_run_reports_how_its_batches_were_made(tmp_path, store, capsys):
    assert run(tmp_path / "run", "--ppr", str(store)) == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["mode"] == "minibatch"
    assert report["epochs"] == 3
    assert report["seconds"]["precompute"] > 0
    facts = report["minibatch"]
    assert facts["k"] == 8
    assert facts["clusters"] == 4
    assert facts["tail"] == "clustered"
    assert facts["batch_size"] == 4
    assert facts["steps_per_epoch"] > 1
    assert 0.0 < facts["mean_missing_mass"] < 1.0
    assert 0.0 <= facts["repeated_encodings"] < 1.0
    assert "Rows keep up to 8 entries" in (tmp_path / "run" / "report.md").read_text()
    assert "test accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("stop_after", [1, 6])
def test_a_stopped_run_resumes_to_the_same_weights(tmp_path, store, monkeypatch, stop_after):
    more = ["--ppr", str(store), "--checkpoint-seconds", "0"]
    assert run(tmp_path / "whole", *more, epochs=4) == 0
    with monkeypatch.context() as patched:
        asked = iter(range(stop_after - 1))

        def stop():
            return 15 if next(asked, None) is None else None

        class Requests:
            __enter__ = staticmethod(lambda: stop)
            __exit__ = staticmethod(lambda *_: None)

        patched.setattr(launcher, "stop_requests", Requests)
        assert run(tmp_path / "parts", *more, epochs=4) == 128 + 15
    _, facts = load_tensors(tmp_path / "parts" / "checkpoint.safetensors")
    steps = json.loads((tmp_path / "whole" / "report.json").read_text())["minibatch"]
    assert facts["epoch"] * steps["steps_per_epoch"] + facts["step"] == stop_after
    tracked = tensors_of(tmp_path / "parts", "checkpoint.safetensors")["model.clusters.mean_PC"]
    assert (tracked > 0).all()
    resumed = [*more, "--resume", "--set", "minibatch.workers=0"]
    assert run(tmp_path / "parts", *resumed, epochs=4) == 0
    one, other = (tensors_of(tmp_path / name) for name in ("whole", "parts"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    one, other = (
        tensors_of(tmp_path / name, "checkpoint.safetensors") for name in ("whole", "parts")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    logs = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("whole", "parts")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("pause", "kept"),
    [("0", r"the last good checkpoint is \S*checkpoint.safetensors, epoch 2$"), ("999", "no che")],
)
def test_a_loss_that_is_not_finite_tells_where_and_where_to_go_back_to(
    tmp_path, store, capsys, monkeypatch, pause, kept
):
    real, calls = objective.bayesian_loss, []

    def spoilt(*arguments, **options):
        calls.append(1)
        loss = real(*arguments, **options)
        return loss * np.nan if len(calls) == 2 * steps + 2 else loss

    monkeypatch.setattr(objective, "bayesian_loss", spoilt)
    monkeypatch.setattr(launcher, "ProgressMeter", Silent)
    steps = 3
    size = ["--set", "minibatch.batch_size=5"]
    more = ["--ppr", str(store), "--checkpoint-seconds", pause, *size]
    assert run(tmp_path / "run", *more) == 2
    assert_one_sentence(
        capsys, rf"training loss is nan in step 2 of {steps} of epoch 3 \(main\), .*{kept}"
    )


class Silent:
    """A progress meter that says nothing."""

    def __init__(self, *_, **__):
        self.update = lambda *_, **__: None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_rows_are_made_where_none_are_given(tmp_path, capfd):
    assert run(tmp_path / "run", epochs=1) == 0
    assert "computing rows of 128 entries" in capfd.readouterr().err
    assert (tmp_path / "run" / "store" / "manifest.json").exists()


def test_the_store_must_be_one_and_is_for_minibatches_only(tmp_path, store, capsys):
    assert run(tmp_path / "run", "--ppr", str(tmp_path / "none")) == 2
    assert_one_sentence(capsys, r"none is not a PPR store .*: build one .*gpn-precompute")
    assert run(tmp_path / "run", "--ppr", str(store), "--mode", "exact") == 2
    assert_one_sentence(capsys, "--ppr has no effect in exact mode: omit --ppr")
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]


def test_a_store_of_another_graph_or_diffusion_is_refused(tmp_path, store, capsys):
    other = SMALL.replace("nodes=300", "nodes=310")
    assert run(tmp_path / "run", "--ppr", str(store), dataset=other) == 2
    assert_one_sentence(capsys, r"is not the requested store: graph fingerprint: .*--overwrite")
    more = ["--ppr", str(store), "--set", "diffusion.teleport=0.3"]
    assert run(tmp_path / "run", *more) == 2
    assert_one_sentence(
        capsys,
        r"rows with teleport=0.2, the model diffuses with teleport=0.3: build the store with "
        r"teleport=0.3, or train with diffusion.teleport=0.2 .*--set diffusion.teleport=0.2",
    )


def test_rows_without_self_loops_train_a_model_without_them(tmp_path, store, capsys):
    more = ["--ppr", str(store), "--set", "diffusion.self_loops=false"]
    assert run(tmp_path / "run", *more) == 2
    assert "build the store with self_loops=False" in capsys.readouterr().err
    again = rows_of(tmp_path / "store", "--self-loops", "off", "--k", "8", "--clusters", "4")
    assert run(tmp_path / "run", *more[2:], "--ppr", str(again)) == 0


def test_training_nodes_without_rows_are_refused(tmp_path, capsys):
    (tmp_path / "roots").write_text("0\n1\n2\n")
    few = rows_of(tmp_path / "few", "--k", "8", "--roots", str(tmp_path / "roots"))
    capsys.readouterr()
    assert run(tmp_path / "run", "--ppr", str(few)) == 2
    assert_one_sentence(capsys, r"node \d+ is not among the 3 roots .* --roots all --overwrite\)")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("minibatch.batch_size=0", "batch_size is 0, expected at least 1, or auto"),
        ("minibatch.batch_size=299", r"is 299, expected auto or at most the \d+ nodes to train on"),
        ("minibatch.batch_size=few", "batch_size is 'few', expected a whole number or auto"),
        ("minibatch.tail=fancy", "minibatch.tail is 'fancy', expected clustered or"),
    ],
)
def test_batches_that_cannot_be_are_refused(tmp_path, store, capsys, value, message):
    assert run(tmp_path / "run", "--ppr", str(store), "--set", value) == 2
    assert_one_sentence(capsys, message)


def test_another_batch_size_does_not_resume(tmp_path, store, capsys):
    assert run(tmp_path / "run", "--ppr", str(store)) == 0
    capsys.readouterr()
    more = ["--ppr", str(store), "--resume", "--set", "minibatch.batch_size=5"]
    assert run(tmp_path / "run", *more) == 2
    assert_one_sentence(capsys, "minibatch.batch_size=4, now it is 5")


@pytest.mark.parametrize("rows", [("--k", "8", "--clusters", "6"), ("--k", "7", "--clusters", "4")])
def test_another_store_does_not_resume(tmp_path, store, capsys, rows):
    assert run(tmp_path / "run", "--ppr", str(store)) == 0
    other = rows_of(tmp_path / "store", *rows)
    capsys.readouterr()
    assert run(tmp_path / "run", "--ppr", str(other), "--resume") == 2
    assert_one_sentence(capsys, "trained on another graph, split or store")


@pytest.fixture
def folder(small_graph, tmp_path):
    """The small graph as a folder of arrays, tmp_path/mine."""
    save_graph(small_graph, tmp_path / "mine")
    return tmp_path / "mine"


def edit(folder, change=None):
    """Change the description of a graph, without checksums, as earlier versions wrote it."""
    path = folder / "graph.json"
    manifest = json.loads(path.read_text())
    for each in (manifest, *manifest["arrays"].values()):
        each.pop("checksum", None)
    if change is not None:
        change(manifest)
    path.write_text(json.dumps(manifest))


def test_features_shorter_than_the_graph_says_are_refused(folder, small_graph, store, capsys):
    (path,) = folder.glob("x-*.npy")
    options = {"dataset": str(folder)}
    whole = path.read_bytes()
    path.write_bytes(whole[:-64])
    assert run(folder.parent / "run", "--ppr", str(store), **options) == 2
    assert_one_sentence(capsys, r"x-\w+\.npy is damaged: its checksum is.*: save the graph again")
    np.save(path, small_graph.features[:-1])
    edit(folder)
    assert run(folder.parent / "run", "--ppr", str(store), **options) == 2
    assert_one_sentence(capsys, r"holds <f4 of shape \[299, 8\], graph.json says .*\[300, 8\]")
    edit(folder, lambda manifest: manifest["arrays"]["x"].update(shape=[299, 8]))
    assert run(folder.parent / "run", "--ppr", str(store), **options) == 2
    assert_one_sentence(capsys, r"features has shape \(299, 8\), expected \(300, 8\)")


@pytest.mark.parametrize("kind", ["public", "stratified"])
def test_a_class_without_training_nodes_is_refused(tmp_path, capsys, kind):
    labels = np.repeat([0, 1, 2], 4)
    labels = np.where(labels == 1, -1, labels) if kind == "stratified" else labels
    graph = build_graph(
        np.arange(11), np.arange(1, 12), labels=labels, features=np.eye(12), num_classes=3
    )
    split = {"train": [0, 8], "val": [1, 5, 9], "test": [2, 6, 10]}
    np.savez(
        tmp_path / "g.npz",
        edge_index=np.stack([np.arange(11), np.arange(1, 12)]),
        x=graph.features,
        y=graph.labels,
        **(
            {f"{subset}_idx": np.array(ids) for subset, ids in split.items()}
            if kind == "public"
            else {}
        ),
    )
    dataset = str(tmp_path / "g.npz")
    assert run(tmp_path / "run", "--ppr", str(tmp_path / "none"), dataset=dataset) == 2
    assert_one_sentence(capsys, "class 1 has no ")


def test_a_run_brings_its_rows_to_a_resumed_and_to_a_repeated_one(tmp_path, store, monkeypatch):
    rows, first = str(store), tmp_path / "first"
    constant = ["--set", "train.schedule=constant", "--set", "opinion.schedule=constant"]
    assert run(tmp_path / "whole", "--ppr", rows, epochs=4) == 0
    assert run(first, "--ppr", rows, *constant, epochs=2) == 0
    assert run(tmp_path / "long", "--ppr", rows, *constant, epochs=4) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["--resume", "--out", "first", "--epochs", "4"]) == 0
    assert main(["--config", "whole/config.json", "--out", "again"]) == 0
    for one, other in (("first", "long"), ("again", "whole")):
        weights, expected = tensors_of(tmp_path / one), tensors_of(tmp_path / other)
        assert weights.keys() == expected.keys()
        assert all(torch.equal(weights[name], expected[name]) for name in expected)
        assert not (tmp_path / one / "store").exists()
    other = ["--set", "diffusion.teleport=0.3"]
    assert main(["--config", "whole/config.json", *other, "--epochs", "1", "--out", "new"]) == 0
    assert (tmp_path / "new" / "store" / "manifest.json").exists(), "rows of another diffusion"


def test_rows_of_the_roots_that_training_needs_are_enough(tmp_path):
    rows = rows_of(tmp_path / "rows", "--k", "8", "--roots", "train", "--split-seed", "3")
    assert run(tmp_path / "run", "--ppr", str(rows), "--split-seed", "3") == 0
    left_out = ["--split-seed", "3", "--left-out-classes", "1"]
    assert run(tmp_path / "left_out", "--ppr", str(rows), *left_out) == 0


def test_rows_of_another_teleport_name_the_flags_with_values(tmp_path, small_graph, capsys):
    write_npz(small_graph, tmp_path / "mine.npz")
    data = ["--data-dir", str(tmp_path)]
    rows = rows_of(tmp_path / "rows", *data, "--k", "8", "--teleport", "0.25", dataset="mine")
    capsys.readouterr()
    assert run(tmp_path / "run", "--ppr", str(rows), *data, dataset="mine") == 2
    expected = r"--overwrite --teleport 0\.1, --set diffusion\.teleport=0\.25\)$"
    assert_one_sentence(capsys, expected)
    more = ["--self-loops", "off", "--teleport", "0.1"]
    rows = rows_of(tmp_path / "no_loops", *data, "--k", "8", *more, dataset="mine")
    capsys.readouterr()
    assert run(tmp_path / "run", "--ppr", str(rows), *data, dataset="mine") == 2
    assert_one_sentence(capsys, r"--self-loops on, --set diffusion\.self_loops=False\)$")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["minibatch.batch_size=100000"], r"minibatch\.batch_size is 100000, expected auto or at "),
        (["encoder.hidden=1000000", "encoder.layers=9"], "the model would have .* parameters"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_rows_are_computed(
    tmp_path, capsys, changes, message
):
    more = [text for change in changes for text in ("--set", change)]
    assert run(tmp_path / "run", *more) == 2
    assert_one_sentence(capsys, message)
    assert not (tmp_path / "run" / "store").exists()

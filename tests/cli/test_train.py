import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli import train as train_module
from gpn_scale.cli.arguments import field_docs
from gpn_scale.cli.train import main
from gpn_scale.config import field_types_by_key
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.estimator import GPNClassifier
from gpn_scale.nn import flow as flow_module
from gpn_scale.nn.radial_compiled import layer_by_layer
from gpn_scale.train.checkpoint import load_tensors
from gpn_scale.train.metrics_log import read_metrics
from gpn_scale.train.run_directory import RunDirectory

REPOSITORY = Path(__file__).parents[2]
SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"
RUN_FILES = {
    "written.json",
    "config.json",
    "inputs.json",
    "checkpoint.safetensors",
    "checkpoint_opinion.safetensors",
    "model.safetensors",
    "metrics.jsonl",
    "tensorboard",
    "report.json",
    "report.md",
    "report.html",
    "plots",
    "predictions.parquet",
    ".lock",
}


def run(out, *more, dataset=SMALL, epochs=3):
    return main(["--dataset", dataset, "--out", str(out), "--epochs", str(epochs), *more])


def same_weights(first: Path, second: Path) -> bool:
    one, other = (load_tensors(path / "model.safetensors")[0] for path in (first, second))
    return one.keys() == other.keys() and all(bool((one[k] == other[k]).all()) for k in one)


@pytest.fixture
def graph_file(small_graph, tmp_path):
    """The small graph as tmp_path/mine.npz, with its public split."""
    write_npz(small_graph, tmp_path / "mine.npz")
    return tmp_path


def test_a_directory_where_another_process_trains_is_refused(tmp_path, capsys):
    with RunDirectory(tmp_path / "run").reserved():
        for option in ((), ("--resume",), ("--overwrite",)):
            assert run(tmp_path / "run", *option) == 2
            message = "is in use: another process is training there; wait until it has ended, or"
            assert message in capsys.readouterr().err
        assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
    assert run(tmp_path / "run", epochs=1) == 0


def test_a_run_writes_everything_and_says_so(tmp_path, capsys):
    assert run(tmp_path / "run") == 0
    assert {path.name for path in (tmp_path / "run").iterdir()} == RUN_FILES
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["mode"] == "exact"
    assert report["epochs"] == 8
    parts = {"train_features", "train_opinion"}
    assert set(report["seconds"]) == {"precompute", "train", "inference", *parts}
    assert report["parts"]["opinion"]["epochs"] == 3
    assert report["calibration"]["temperature"] > 0
    assert set(report["ood"]["marks"]) == {"isolated", "foreign_features", "unseen_class"}
    output = capsys.readouterr()
    assert "test accuracy" in output.out
    assert str(tmp_path / "run" / "predictions.parquet") in output.out
    assert "epoch 8/8" in output.err
    lines = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [line["part"] for line in lines] == ["features"] * 8 + ["opinion"] * 3
    assert pq.read_table(tmp_path / "run" / "predictions.parquet").num_rows == 300


def test_the_model_file_predicts_what_was_written(graph_file, small_graph):
    assert run(graph_file / "run", "--data-dir", str(graph_file), dataset="mine") == 0
    prediction = GPNClassifier.load(graph_file / "run" / "model.safetensors").predict(small_graph)
    table = pq.read_table(graph_file / "run" / "predictions.parquet")
    np.testing.assert_array_equal(table["alpha_0"].to_numpy(), prediction.alpha_0)
    config = json.loads((graph_file / "run" / "config.json").read_text())
    assert config["split"]["kind"] == "public"
    assert config["encoder"]["standardise"] is True


def few_labels(folder):
    """The small graph as folder/mine.npz, with 40 labels and without split and marks."""
    graph = load_graph(SMALL)
    labels = graph.labels.copy()
    labels[np.flatnonzero(labels >= 0)[40:]] = -1
    write_npz(replace(graph, labels=labels, marks={}), folder / "mine.npz")
    return ["--data-dir", str(folder)]


def test_only_training_compiles_the_flows_and_says_so(graph_file, small_graph, monkeypatch, capsys):
    asked = []

    def compiled_layers(device):
        asked.append(device)
        return layer_by_layer

    for module in (flow_module, train_module):
        monkeypatch.setattr(module, "has_compiler", lambda: True)
    monkeypatch.setattr(flow_module, "compiled_layers", compiled_layers)
    data = ["--data-dir", str(graph_file), "--set", "split.kind=public"]
    options = [*data, "--set", "flow.compiled=true", "--set", "encoder.latent=4"]
    assert run(graph_file / "run", *options, dataset="mine") == 0
    assert "note: flow.compiled is set: the first training step" in capsys.readouterr().err
    assert len(asked) == 1
    loaded = GPNClassifier.load(RunDirectory(graph_file / "run").model)
    assert loaded.config.flow.compiled
    loaded.predict(small_graph)
    assert len(asked) == 1


def test_few_labels_are_split_shown_and_warned_about(tmp_path, capsys):
    assert run(tmp_path / "run", *few_labels(tmp_path), dataset="mine") == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    split = report["config"]["split"]
    assert (split["kind"], split["train"], split["val"]) == ("stratified", 0.6, 0.2)
    labels = report["graph"]["labels"]
    assert sum(count["labelled"] for count in labels) == 40
    assert report["graph"]["summary"]["unlabelled"] == 260
    assert "classes have fewer than 20 labelled nodes" in report["warnings"][0]
    output = capsys.readouterr()
    assert output.out.startswith("mine: 300 nodes, ")
    assert "split at random 60 / 20 / 20 % (seed 1)" in output.out
    assert "their temperature" in report["warnings"].pop()
    for sentence in report["warnings"]:
        assert f"warning: {sentence}" in output.err
        assert sentence in output.out
        assert sentence in html.unescape((tmp_path / "run" / "report.html").read_text())
    assert "95 % interval" in output.out
    assert "ece" not in report["intervals"]["test"]
    assert report["metrics"]["test"]["ece"] is not None


def test_a_public_split_refuses_fields_of_another(graph_file, capsys):
    options = ["--data-dir", str(graph_file), "--set", "split.train=0.3"]
    assert run(graph_file / "run", *options, dataset="mine") == 2
    assert "--set split.kind=stratified" in capsys.readouterr().err
    seeded = ["--data-dir", str(graph_file), "--split-seed", "1"]
    assert run(graph_file / "run", *seeded, dataset="mine") == 0


def test_a_configuration_trains_the_same_weights_again(graph_file, monkeypatch):
    first, second = graph_file / "a", graph_file / "b"
    options = ["--data-dir", str(graph_file), "--seed", "3", "--left-out-classes", "1"]
    assert run(first, *options, "--set", "encoder.hidden=20", dataset="mine") == 0
    (graph_file / "elsewhere").mkdir()
    monkeypatch.chdir(graph_file / "elsewhere")
    assert main(["--config", str(first / "config.json"), "--out", str(second)]) == 0
    assert same_weights(first, second)
    assert (first / "config.json").read_bytes() == (second / "config.json").read_bytes()
    changed = ["--config", str(first / "config.json"), "--seed", "4"]
    assert main([*changed, "--out", str(graph_file / "c")]) == 0
    assert not same_weights(first, graph_file / "c")


def test_a_run_that_is_resumed_elsewhere_needs_no_option_again(graph_file, monkeypatch):
    whole, parts = graph_file / "whole", graph_file / "parts"
    options = ["--data-dir", str(graph_file), "--seed", "3", "--set", "train.patience=1000"]
    assert run(whole, *options, dataset="mine", epochs=6) == 0
    assert run(parts, *options, dataset="mine", epochs=2) == 0
    (graph_file / "elsewhere").mkdir()
    monkeypatch.chdir(graph_file / "elsewhere")
    assert main(["--resume", "--out", "../parts", "--epochs", "6"]) == 0
    assert same_weights(whole, parts)


def test_a_second_run_without_a_directory_gets_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = ["--dataset", SMALL, "--epochs", "2"]
    assert main(options) == 0
    capsys.readouterr()
    assert main(options) == 0
    first_line = capsys.readouterr().err.splitlines()[0]
    assert first_line == "runs/synthetic already holds a run; writing this one to runs/synthetic_2"
    assert same_weights(tmp_path / "runs" / "synthetic", tmp_path / "runs" / "synthetic_2")


def test_left_out_classes(tmp_path):
    assert run(tmp_path / "run", "--left-out-classes", "1") == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["graph"]["classes"] == 2
    assert "left_out_classes" in report["ood"]["marks"]


def test_more_epochs_by_resuming_are_the_same_as_all_at_once(tmp_path):
    assert run(tmp_path / "whole", epochs=6) == 0
    assert run(tmp_path / "parts", epochs=2) == 0
    assert run(tmp_path / "parts", "--resume", epochs=6) == 0
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    epochs = {"features": list(range(1, 12)), "opinion": list(range(1, 7))}
    lines = read_metrics(tmp_path / "parts" / "metrics.jsonl")
    for part, expected in epochs.items():
        assert [line["epoch"] for line in lines if line["part"] == part] == expected


def seconds_of(folder):
    return json.loads((folder / "report.json").read_text())["seconds"]


def test_resuming_adds_up_times(tmp_path):
    for epochs in (6, 6, 8):  # the second call has nothing left to train
        facts = [load_tensors(file)[1] for file in sorted(tmp_path.glob("checkpoint*"))]
        before = [each["seconds"] for each in facts] or [0.0, 0.0]
        assert run(tmp_path, "--resume", epochs=epochs) == 0
        seconds = seconds_of(tmp_path)
        parts = [seconds["train_features"], seconds["train_opinion"]]
        assert all(now > then for now, then in zip(parts, before, strict=True))
        assert seconds["train"] == pytest.approx(sum(parts))


def test_resuming_what_is_not_there_starts_it(tmp_path):
    assert run(tmp_path / "run", "--resume") == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_resumes_to_the_same_weights(tmp_path, number):
    options = ["--dataset", SMALL, "--epochs", "150", "--threads", "1"]
    options += ["--checkpoint-seconds", "0", "--set", "train.patience=1000"]
    command = [sys.executable, "launch/train.py", *options, "--out", str(tmp_path / "stopped")]
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as process:
        while len(read_metrics(metrics)) < 20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        errors = process.communicate()[1]
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert "continue with --resume" in errors
        assert "Traceback" not in errors
    assert not (tmp_path / "stopped" / "model.safetensors").exists()
    spent = load_tensors(tmp_path / "stopped" / "checkpoint.safetensors")[1]["seconds"]
    assert main([*options, "--out", str(tmp_path / "stopped"), "--resume"]) == 0
    assert seconds_of(tmp_path / "stopped")["train_features"] > spent > 0
    assert main([*options, "--out", str(tmp_path / "whole")]) == 0
    assert same_weights(tmp_path / "whole", tmp_path / "stopped")
    logs = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("whole", "stopped")]
    assert logs[0] == logs[1]


def test_another_run_is_not_written_over(tmp_path, capsys):
    assert run(tmp_path) == 0
    report = (tmp_path / "report.json").read_text()
    assert run(tmp_path) == 2
    assert "already holds a run" in capsys.readouterr().err
    assert (tmp_path / "report.json").read_text() == report
    (tmp_path / "notes.txt").write_text("mine")
    assert run(tmp_path, "--overwrite", epochs=2) == 0
    assert json.loads((tmp_path / "report.json").read_text())["epochs"] == 7
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["plots/mine.svg", "tensorboard/mine.txt", "report.md"])
def test_files_that_no_run_has_written_are_not_overwritten(tmp_path, capsys, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    for flags in ([], ["--overwrite"], ["--resume"]):
        assert run(tmp_path, *flags) == 2
        assert f"holds {name.split('/')[0]}" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"


def test_a_bad_option_costs_no_earlier_run(tmp_path, capsys):
    assert run(tmp_path) == 0
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert run(tmp_path, "--overwrite", "--set", "train.lerning_rate=1") == 2
    assert "did you mean train.learning_rate" in capsys.readouterr().err
    assert run(tmp_path, "--resume", "--seed", "9") == 2
    assert "train.rng_seed=1, now it is 9" in capsys.readouterr().err
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def bad_graph(**arrays):
    settings = {"edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 1])}
    settings |= {"x": np.eye(3), **arrays}
    return {key: value for key, value in settings.items() if value is not None}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_index": np.array([[0, 1], [1, 9]])}, r"edge 1 \(1 -> 9\) names a node outside"),
        ({"x": np.full((3, 3), np.nan)}, "features hold NaN or infinity at node 0"),
        ({"y": np.array([0, 1, -5])}, "node 2 has label -5, expected a class"),
        ({"y": np.array([0, 0, 0])}, r"1 class\(es\) to learn, expected at least 2"),
        (
            {
                "train_idx": np.array([0]),
                "val_idx": np.array([1]),
                "test_idx": np.array([2]),
            },
            "class 1 has no node in the training set",
        ),
        ({"edge_index": None}, "has no array 'edge_index'"),
    ],
)
def test_a_bad_graph_gives_one_sentence(tmp_path, capsys, arrays, message):
    np.savez(tmp_path / "bad.npz", **bad_graph(**arrays))
    assert run(tmp_path / "run", "--data-dir", str(tmp_path), dataset="bad") == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert re.search(message, errors)


def test_no_edges_and_isolated_nodes_work(tmp_path):
    np.savez(
        tmp_path / "g.npz",
        edge_index=np.zeros((2, 0), int),
        y=np.repeat([0, 1], 20),
        x=np.repeat(np.eye(2), 20, axis=0),
    )
    more = ["--data-dir", str(tmp_path), "--set", "split.train=0.3"]
    assert run(tmp_path / "run", *more, dataset="g") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dataset", "CoraMl"], "CoraML"),
        (["--left-out-classes", "many"], "expected a number or 'paper'"),
        (["--left-out-classes", "paper"], "paper leaves out classes only in CoraML"),
        (["--left-out-classes", "5"], "leav"),
        (["--device", "abacus"], "device 'abacus' cannot be used"),
        (["--set", "diffusion.teleport=2"], "diffusion.teleport is 2.0, expected"),
        (["--threads", "0"], "--threads is 0, expected at least 1"),
    ],
)
def test_bad_options_give_one_sentence(tmp_path, capsys, options, message):
    assert run(tmp_path / "run", "--data-dir", str(tmp_path), *options) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_an_out_that_cannot_be_made_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "run") == 2
    assert "cannot be created (Not a directory): choose another" in capsys.readouterr().err


def test_an_out_that_cannot_be_written_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert run(tmp_path / "run") == 2
    assert "is not writable: choose another directory" in capsys.readouterr().err


def test_help_explains_every_field(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "diffusion.teleport\n      Probability of returning to the root" in text
    assert "(default: 0.1)" in text
    assert field_docs().keys() == field_types_by_key().keys()

"""Runs in MLflow's own store, read back by MLflow."""

import json

import pytest

from gpn_scale.cli.train import main as train
from gpn_scale.errors import RunError
from gpn_scale.interop import tracking
from gpn_scale.interop.tracking import log_run

mlflow = pytest.importorskip("mlflow")
GRAPH = "synthetic:nodes=200,classes=2,features=4"
OPTIONS = ["--dataset", GRAPH, "--epochs", "3", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "small"
    assert train([*OPTIONS, "--out", str(out)]) == 0
    return out


@pytest.fixture
def uri(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return f"file:{tmp_path}/mlruns"


def test_settings_curves_figures_and_files_are_logged(run, uri):
    run_id = log_run(run, experiment="tests", tracking_uri=uri)
    client = mlflow.MlflowClient(uri)
    logged = client.get_run(run_id)
    assert logged.info.status == "FINISHED"
    assert logged.info.run_name == "small"
    assert client.get_experiment(logged.info.experiment_id).name == "tests"
    assert logged.data.params["data.dataset"] == GRAPH
    assert logged.data.params["train.epochs"] == "3"
    report = json.loads((run / "report.json").read_text())
    accuracy = report["metrics"]["test"]["accuracy"]
    assert logged.data.metrics["test/accuracy"] == pytest.approx(accuracy)
    assert "seconds/train" in logged.data.metrics
    assert any(name.startswith("ood/") for name in logged.data.metrics)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for prefix, part in (("", "features"), ("opinion/", "opinion")):
        expected = [(e["epoch"], e["loss"]) for e in lines if e["part"] == part]
        history = client.get_metric_history(run_id, f"{prefix}loss")
        assert [(m.step, m.value) for m in history] == expected
    files = {file.path for file in client.list_artifacts(run_id)}
    assert {"config.json", "report.html", "model.safetensors", "predictions.parquet"} <= files
    assert not {"checkpoint.safetensors", "served", ".lock"} & files


def test_files_can_be_left_out_and_an_experiment_is_used_again(run, uri):
    first = log_run(run, name="first", tracking_uri=uri, files=False)
    second = log_run(run, tracking_uri=uri, files=False)
    client = mlflow.MlflowClient(uri)
    ids = {client.get_run(each).info.experiment_id for each in (first, second)}
    assert len(ids) == 1
    assert client.list_artifacts(first) == []
    assert client.get_run(first).info.run_name == "first"


def test_more_values_than_a_request_may_have_are_sent_in_several(run, uri, monkeypatch):
    monkeypatch.setattr(tracking, "MOST_PARAMETERS", 7)
    monkeypatch.setattr(tracking, "MOST_METRICS", 5)
    whole = mlflow.MlflowClient(uri).get_run(log_run(run, tracking_uri=uri, files=False)).data
    assert len(whole.params) > 40
    assert len(whole.metrics) > 20


def test_numbers_of_the_report_have_names_that_mlflow_takes():
    report = {"ood": {"by mark": {"Straße (neu)": 0.5, "nan": None}}, "best_epoch": 3}
    assert list(tracking._results(report)) == [("ood/by mark/Stra_e _neu_", 0.5, 3)]


def test_a_store_that_refuses_is_named(run, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    with pytest.raises(RunError, match=r"MLflow refused the run .*: check tracking_uri"):
        log_run(run, tracking_uri="nowhere://")


def test_an_unfinished_run_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"no finished run \(report.json is missing\): train first"):
        log_run(tmp_path)


def test_without_mlflow_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"pip install 'gpn-scale\[mlflow\]'"):
        tracking.check_mlflow()


def test_training_logs_its_run_if_it_is_asked_to(tmp_path, uri, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert train([*OPTIONS, "--out", str(tmp_path / "run"), "--mlflow", "asked"]) == 0
    printed = capsys.readouterr().out
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("asked").experiment_id
    (logged,) = client.search_runs([experiment])
    assert f"logged to MLflow, experiment 'asked': run {logged.info.run_id}" in printed


def test_training_is_refused_at_once_without_mlflow(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    assert train([*OPTIONS, "--out", str(tmp_path / "run"), "--mlflow", "asked"]) == 2
    assert "gpn-scale[mlflow]" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

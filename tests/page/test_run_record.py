import json

import numpy as np
import pytest

from gpn_scale import __version__
from gpn_scale.config import RunConfig
from gpn_scale.errors import RunError
from gpn_scale.page.run_record import read_run
from gpn_scale.train.run_directory import RunDirectory
from tests.page.samples import run_facts


@pytest.fixture
def directory(tmp_path):
    """A directory with the files of a run of 1,000 epochs."""
    directory = RunDirectory(tmp_path)
    directory.config.write_text(json.dumps(RunConfig(model="GPN").to_dict()))
    lines = [
        {
            "epoch": e,
            "loss": 1 / e,
            "val_cross_entropy": 2 / e,
            "val_accuracy": 0.5,
            "best_epoch": e,
        }
        for e in range(1, 1001)
    ]
    directory.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run_facts().report.write(directory.report, directory.report_markdown)
    directory.model.write_text("")
    return directory


def changed(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_run_is_read_back(directory):
    record = read_run(directory)
    assert record.config == RunConfig(model="GPN")
    assert record.report == run_facts().report
    assert record.training.best_epoch == 1000
    epoch = record.training.epoch
    assert (epoch[0], epoch[-1], len(epoch)) == (1, 1000, 600)
    np.testing.assert_allclose(record.training.loss, 1 / epoch)


@pytest.mark.parametrize("name", ["report", "model"])
def test_a_run_without_report_or_model_is_not_finished(directory, name):
    getattr(directory, name).unlink()
    assert read_run(directory).report is None


def test_no_epoch_is_an_empty_curve(directory):
    directory.metrics.unlink()
    training = read_run(directory).training
    assert (len(training.epoch), training.best_epoch) == (0, 0)


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunError, match=r"holds no run: config.json is missing") as error:
        read_run(RunDirectory(tmp_path))
    assert error.value.arguments == ("run",)


def test_runs_of_other_versions_are_refused(directory):
    changed(directory.report, version="0.0.1")
    with pytest.raises(RunError, match=rf"version 0.0.1, this is version {__version__}: train"):
        read_run(directory)
    changed(directory.report, version=__version__, colour="red")
    with pytest.raises(RunError, match=r"damaged or of another version \(field 'colour'\)"):
        read_run(directory)
    directory.report.unlink()
    changed(directory.config, colour="red")
    with pytest.raises(RunError, match="is not a configuration of version"):
        read_run(directory)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config", "{", r"config.json cannot be read"),
        ("config", "[]", r"config.json holds list, expected an object"),
        ("metrics", "5\n", r"metrics.jsonl, line 1, is not the record of an epoch"),
    ],
)
def test_damaged_files_are_refused(directory, name, content, message):
    getattr(directory, name).write_text(content)
    with pytest.raises(RunError, match=message):
        read_run(directory)


def test_a_report_from_before_warm_starts_is_read(directory):
    values = json.loads(directory.report.read_text())
    assert values.pop("warm_start") == {}
    directory.report.write_text(json.dumps(values))
    assert read_run(directory).report.warm_start == {}

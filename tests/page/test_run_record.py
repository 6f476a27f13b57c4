import copy
import json
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale import __version__
from gpn_scale.block_checksums import file_hash
from gpn_scale.checked_json import (
    CHECKSUM,
    json_checksum,
    read_checked_json,
    write_checked_json,
)
from gpn_scale.errors import RunError
from gpn_scale.page.overview_section import overview
from gpn_scale.page.run_record import read_run
from gpn_scale.page.training_sections import details
from gpn_scale.train.run_directory import RunDirectory
from tests.page.samples import run_facts


@pytest.fixture
def directory(tmp_path):
    """A directory with the files of a run of 1,000 epochs."""
    directory = RunDirectory(tmp_path)
    directory.config.write_text(json.dumps(run_facts().config.to_dict()))
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
    values = read_checked_json(path) | values
    if path.name == "report.json":
        write_checked_json(path, values)
    else:
        path.write_text(json.dumps(values))


def test_a_run_is_read_back(directory):
    record = read_run(directory)
    assert record.config == run_facts().config
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


WRONG = [None, "x", {"a": None}]


def paths_in(value, path=()):
    """All places of a document: keys of objects and positions of lists."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from paths_in(value[key], (*path, key))


def test_wrong_types_in_a_report_are_refused_or_drawn(directory):
    """A report with one wrong value, with a right checksum, is refused or makes a page."""
    whole, refusals, facts = read_checked_json(directory.report), 0, run_facts()
    directory.metrics.unlink()
    for place in paths_in(whole):
        if place[0] in ("version", "config") or "val" in place:
            continue
        for wrong in WRONG:
            values = copy.deepcopy(whole)
            inner = values
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = wrong
            text = json.dumps(values | {CHECKSUM: json_checksum(values)})
            directory.report.write_text(text)  # not flushed to disk, which takes time
            try:
                record = read_run(directory)
            except RunError:
                refusals += 1
            else:
                shown = replace(facts, report=record.report)
                assert details(shown).body
                assert overview(shown).body
    assert refusals > 80


def test_a_damaged_report_is_refused(directory):
    text = directory.report.read_text()
    directory.report.write_text(text.replace('"accuracy": 0.8', '"accuracy": 0.9'))
    with pytest.raises(RunError, match=r"report.json is damaged: its checksum is"):
        read_run(directory)
    directory.report.write_text("[" * 9000)
    with pytest.raises(RunError, match="nested more than 64 deep"):
        read_run(directory)


def test_another_configuration_than_that_of_the_report_is_refused(directory):
    changed(directory.config, mode="minibatch")
    with pytest.raises(RunError, match=r"is not the configuration that report.json was made with"):
        read_run(directory)


def test_files_that_changed_since_the_report_are_refused(directory):
    changed(directory.report, files={"metrics.jsonl": file_hash(directory.metrics)})
    assert read_run(directory).training.best_epoch == 1000
    directory.metrics.write_text(directory.metrics.read_text().replace("0.5", "0.6", 1))
    with pytest.raises(RunError, match=r"metrics.jsonl is damaged: its checksum is another"):
        read_run(directory)
    directory.metrics.unlink()
    with pytest.raises(RunError, match=r"metrics.jsonl cannot be read"):
        read_run(directory)


def test_a_report_from_before_warm_starts_is_read(directory):
    values = read_checked_json(directory.report)
    assert (values.pop("warm_start"), values.pop("files")) == ({}, {})
    directory.report.write_text(json.dumps(values))
    report = read_run(directory).report
    assert (report.warm_start, report.files) == ({}, {})


def test_a_wrong_comparison_with_the_start_is_refused_or_drawn(directory):
    whole = {"run": "r", "model": "m", "nodes": {"test": 4}}
    whole |= {"before": {"test": {"accuracy": 0.5}}, "after": {"test": {"accuracy": 0.75}}}
    changed(directory.report, warm_start=whole)
    assert "75" in str(overview(replace(run_facts(), report=read_run(directory).report)).body)
    for place in (("more",), *paths_in(whole)):
        values = copy.deepcopy(whole)
        inner = values
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = None
        changed(directory.report, warm_start=values)
        with pytest.raises(RunError, match=r"report.json is damaged \(report.json.warm_start"):
            read_run(directory)

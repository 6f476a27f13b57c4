"""Directories of runs: which may be written, and what is removed."""

import os

import pytest

from gpn_scale.errors import RunError
from gpn_scale.train.run_directory import RunDirectory


def test_a_new_directory_is_created(tmp_path):
    directory = RunDirectory(tmp_path / "deep" / "run")
    directory.claim(overwrite=False, resume=False)
    assert directory.path.is_dir()
    assert not list(directory.path.iterdir())


def test_inputs_of_a_run_are_not_among_its_files(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.model in directory.files
    assert not {directory.graph, directory.store, directory.path} & set(directory.files)


def test_a_run_is_only_written_over_when_that_is_wanted(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.graph.mkdir()
    directory.claim(overwrite=False, resume=False)
    directory.metrics.write_text("")
    with pytest.raises(RunError, match=r"already holds a run \(metrics.jsonl\)") as caught:
        directory.claim(overwrite=False, resume=False)
    assert caught.value.arguments == ("existing", "out")
    directory.claim(overwrite=True, resume=False)
    directory.claim(overwrite=False, resume=True)
    assert directory.metrics.exists()


def test_clearing_removes_a_run_and_nothing_else(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.plots.mkdir()
    (directory.plots / "plot.svg").write_text("")
    directory.model.write_text("")
    directory.store.mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    directory.clear()
    assert {path.name for path in tmp_path.iterdir()} == {"store", "notes.txt"}


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be created"):
        RunDirectory(tmp_path / "file" / "run").claim(overwrite=False, resume=False)


def test_a_directory_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RunError, match="cannot be written; choose another directory"):
        RunDirectory(tmp_path).claim(overwrite=False, resume=False)

from pathlib import Path

import pytest

from gpn_scale.cli.remembered import DEFAULT_DATA_DIR, data_dir_of, remember_inputs, store_of
from gpn_scale.errors import RunError
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.train.run_directory import RunDirectory


def store_at(path):
    path.mkdir(parents=True)
    (path / MANIFEST).write_text("{}")
    return path


def test_what_is_given_counts_first(tmp_path):
    directory = RunDirectory(tmp_path)
    remember_inputs(directory, tmp_path / "graphs", store_at(tmp_path / "rows"))
    assert data_dir_of(directory, Path("other")) == Path("other")
    assert store_of(directory, Path("other")) == Path("other")


def test_what_the_run_remembers_counts_next(tmp_path, monkeypatch):
    directory = RunDirectory(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = store_at(tmp_path / "rows")
    remember_inputs(directory, Path("graphs"), Path("rows"))
    monkeypatch.chdir("/")
    assert data_dir_of(directory, None) == tmp_path / "graphs"
    assert store_of(directory, None) == rows
    (rows / MANIFEST).unlink()
    assert store_of(directory, None) is None
    own = store_at(directory.store)
    assert store_of(directory, None) == own


def test_a_run_that_remembers_nothing_has_the_defaults(tmp_path):
    directory = RunDirectory(tmp_path)
    assert data_dir_of(directory, None) == DEFAULT_DATA_DIR
    assert store_of(directory, None) is None
    remember_inputs(directory, tmp_path, None)
    assert store_of(directory, None) is None


@pytest.mark.parametrize("text", ["", "5", "{}", "[1]", "\x00"])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, text):
    directory = RunDirectory(tmp_path)
    directory.inputs.write_text(text)
    with pytest.raises(RunError, match=r"inputs\.json cannot be read .*: remove it, and name"):
        data_dir_of(directory, None)

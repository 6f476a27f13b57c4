"""Directories of runs: which may be written, and what is removed."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import disk
from gpn_scale.errors import RunError
from gpn_scale.train.run_directory import RunDirectory


def write(path, text="content"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def finished_run(path):
    """A directory with everything that a run writes."""
    directory = RunDirectory(path)
    directory.claim(overwrite=False, resume=False)
    directory.begin(overwrite=False)
    folders = (directory.plots, directory.tensorboard, directory.served, directory.written)
    for file in directory.files:
        if file not in folders:
            write(file)
    served = [directory.served / "*.arrow", directory.served / "*.lock"]
    directory.list_written([directory.plots / "reliability.svg", *served])
    write(directory.plots / "reliability.svg")
    write(directory.served / "0123.arrow")
    write(directory.served / "served.lock")
    write(directory.tensorboard / "events.out.tfevents.1.host.2.0")
    write(directory.tensorboard / "opinion" / "events.out.tfevents.1.host.2.1")
    return directory


def names(path):
    return {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}


def test_a_new_directory_is_created(tmp_path):
    directory = RunDirectory(tmp_path / "deep" / "run")
    directory.claim(overwrite=False, resume=False)
    assert directory.path.is_dir()
    assert not list(directory.path.iterdir())
    assert not directory.holds_run


def test_inputs_of_a_run_are_not_among_its_files(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.model in directory.files
    given = {directory.graph, directory.store, directory.path, directory.decisions, directory.lock}
    assert not given & set(directory.files)


def test_one_process_at_a_time_trains_in_a_directory(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    with directory.reserved():
        with pytest.raises(
            RunError, match="is in use: another process is training there"
        ) as caught:
            directory.reserved().__enter__()
        assert caught.value.arguments == ("out",)
    with directory.reserved():
        directory.claim(overwrite=False, resume=False)  # the lock itself is no run


def test_a_run_is_only_written_over_when_that_is_wanted(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.graph.mkdir()
    directory = finished_run(tmp_path)
    assert directory.holds_run
    with pytest.raises(RunError, match=r"already holds a run \(written.json\)") as caught:
        directory.claim(overwrite=False, resume=False)
    assert caught.value.arguments == ("existing", "out")
    before = names(tmp_path)
    directory.claim(overwrite=True, resume=False)
    directory.claim(overwrite=False, resume=True)
    assert names(tmp_path) == before


def test_overwriting_removes_the_run_and_nothing_else(tmp_path):
    directory = finished_run(tmp_path)
    write(directory.store / "manifest.json")
    write(tmp_path / "notes.txt")
    write(directory.decisions)
    directory.claim(overwrite=True, resume=False)
    directory.begin(overwrite=True)
    kept = {"store/manifest.json", "notes.txt", "decisions.jsonl", "written.json"}
    assert names(tmp_path) == kept
    assert not directory.plots.exists()
    assert not directory.served.exists()
    assert not directory.tensorboard.exists()


def test_temporary_files_of_a_killed_run_are_removed_with_it(tmp_path):
    directory = finished_run(tmp_path)
    write(directory.plots / ".reliability.svg.123.tmp")
    write(tmp_path / ".model.safetensors.123.tmp")
    write(tmp_path / ".written.json.123.tmp")
    write(tmp_path / ".mine.txt.123.tmp")
    directory.claim(overwrite=True, resume=False)
    directory.clear()
    assert names(tmp_path) == {".mine.txt.123.tmp"}


FOREIGN = [
    "plots/mine.svg",
    "plots/deep/mine.svg",
    "plots/notes.txt",
    "plots/.hidden",
    "served/mine.txt",
    "served/deep/mine.arrow",
    "tensorboard/mine.txt",
    "tensorboard/opinion/mine.txt",
    "report.md",
    "model.safetensors",
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_is_no_run_keeps_its_files(tmp_path, name, overwrite):
    write(tmp_path / name, "mine")
    with pytest.raises(RunError, match="not on the list of files that a run has written") as caught:
        RunDirectory(tmp_path).claim(overwrite=overwrite, resume=not overwrite)
    assert caught.value.arguments == ("out",)
    RunDirectory(tmp_path).clear()
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("name", FOREIGN[:6])
def test_a_file_that_joined_a_run_is_named_and_kept(tmp_path, name):
    directory = finished_run(tmp_path)
    write(tmp_path / name, "mine")
    with pytest.raises(RunError, match=f"holds {name}, which a new run would replace"):
        directory.claim(overwrite=True, resume=False)
    directory.clear()
    assert names(tmp_path) == {name}


def test_a_folder_with_the_name_of_a_file_is_refused(tmp_path):
    directory = finished_run(tmp_path)
    directory.page.unlink()
    write(directory.page / "mine.txt", "mine")
    with pytest.raises(RunError, match=r"holds report\.html, which a new run would replace"):
        directory.claim(overwrite=True, resume=False)
    directory.clear()
    assert names(tmp_path) == {"report.html/mine.txt"}


def test_a_run_of_an_earlier_version_is_resumed_but_not_overwritten(tmp_path):
    directory = RunDirectory(tmp_path)
    write(directory.config, "{}")
    write(directory.checkpoint)
    directory.claim(overwrite=False, resume=True)
    with pytest.raises(RunError, match=r"holds config\.json, which a new run would replace"):
        directory.claim(overwrite=True, resume=False)
    directory.begin(overwrite=False)
    directory.claim(overwrite=True, resume=False)


def test_an_interrupted_removal_is_repeated(tmp_path, monkeypatch):
    directory = finished_run(tmp_path)
    unlink, left = disk.system.unlink, [4]

    def stopping(path):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        unlink(path)

    with monkeypatch.context() as patched:
        patched.setattr(disk.system, "unlink", stopping)
        with pytest.raises(KeyboardInterrupt):
            directory.clear()
    assert names(tmp_path)
    directory.claim(overwrite=True, resume=False)
    directory.clear()
    assert not list(tmp_path.iterdir())


ENTRIES = st.lists(
    st.one_of(
        st.sampled_from(["../mine.txt", "/etc/passwd", "*", "**", "notes.txt", "store/*", "graph"]),
        st.text(max_size=12),
    ),
    max_size=6,
)


@given(entries=ENTRIES)
def test_a_made_up_list_costs_no_other_file(entries):
    with TemporaryDirectory() as folder:
        base = Path(folder) / "run"
        others = [base.parent / "mine.txt", base / "notes.txt", base / "store" / "manifest.json"]
        others += [base / "plots" / "notes.txt", base / "tensorboard" / "notes.txt"]
        for file in others:
            write(file)
        write(base / "written.json", json.dumps({"files": entries}))
        RunDirectory(base).clear()
        assert all(file.exists() for file in others)


@pytest.mark.parametrize("text", ["", "5", "{}", '{"files": 3}', '{"files": [1]}', "[" * 100_000])
def test_a_damaged_list_is_refused(tmp_path, text):
    directory = RunDirectory(tmp_path)
    write(directory.written, text)
    with pytest.raises(RunError, match=r"written\.json cannot be read .*: remove the directory"):
        directory.claim(overwrite=True, resume=False)


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be created"):
        RunDirectory(tmp_path / "file" / "run").claim(overwrite=False, resume=False)


def test_a_directory_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(RunError, match="is not writable: choose another directory"):
        RunDirectory(tmp_path).claim(overwrite=False, resume=False)

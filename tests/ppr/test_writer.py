import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpn_scale import disk
from gpn_scale.errors import StoreError
from gpn_scale.ppr.part_files import PartFiles
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from gpn_scale.ppr.writer import StoreWriter
from tests.ppr.cases import content, example


@pytest.fixture
def built(tmp_path):
    example().build(tmp_path / "s")
    return tmp_path / "s"


def test_a_shard_of_another_build_is_not_done(built, tmp_path):
    example(rows=[[(1, 0.125)]] * 5).build(tmp_path / "rows")  # same build, other content
    example(parameters={"teleport": 0.1}).build(tmp_path / "other")
    (built / "shard-00000.ppr").write_bytes((tmp_path / "rows/shard-00000.ppr").read_bytes())
    (built / "shard-00001.ppr").write_bytes((tmp_path / "other/shard-00001.ppr").read_bytes())
    first, second = verify_store(built)
    assert "shard-00000.ppr is not the shard that manifest.json names" in first
    assert "shard-00001.ppr belongs to another build" in second
    with pytest.raises(
        StoreError, match=r"1 of 3 shards are missing .*shard-00001.ppr.: .*existing='resume'"
    ):
        example().begin(built, "resume").finish(example().total_mass)
    assert example().build(built, "resume") == [1]


def test_other_clusters_make_all_shards_undone(built):
    writer = example().begin(built, "resume")
    assert all(map(writer.is_done, range(3)))
    writer.write_clusters(example().clusters[::-1].copy())
    assert not any(map(writer.is_done, range(3)))
    assert not (built / "manifest.json").exists()


def test_resuming_leaves_finished_shards_untouched(built, tmp_path):
    path = tmp_path / "stopped"
    writer = example().begin(path)
    writer.write_clusters(example().clusters)
    example().write(writer, 1)
    stamp = (path / "shard-00001.ppr").stat()
    assert example().build(path, "resume") == [0, 2]
    assert (path / "shard-00001.ppr").stat().st_mtime_ns == stamp.st_mtime_ns
    assert (path / "shard-00001.ppr").stat().st_ino == stamp.st_ino
    assert content(path) == content(built)


def test_resuming_a_finished_store_changes_nothing(built):
    before = {entry.name: entry.stat().st_ino for entry in built.iterdir()}
    assert example().build(built, "resume") == []
    assert {entry.name: entry.stat().st_ino for entry in built.iterdir()} == before


def test_several_writers_make_one_store(built, tmp_path):
    first = example().begin(tmp_path / "t")
    first.write_clusters(example().clusters)
    others = [StoreWriter.join(tmp_path / "t") for _ in range(2)]
    for index in reversed(range(3)):
        example().write(others[index % 2], index)
    first.finish(example().total_mass)
    assert content(tmp_path / "t") == content(built)


@pytest.mark.parametrize("killed", [False, True], ids=["raised", "killed"])
def test_a_build_stopped_at_any_rename_resumes_to_the_same_bytes(
    built, tmp_path, monkeypatch, killed
):
    real, left = os.replace, 0

    def stop(source, target):
        nonlocal left
        left -= 1
        if left < 0:
            if killed:  # no clean-up: the temporary file of a dead process stays behind
                name = Path(target).name
                Path(target).with_name(f".{name}.99999.tmp").write_bytes(b"half")
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", stop)
    for count in range(len(content(built))):
        left, path = count, tmp_path / str(count)
        with pytest.raises(KeyboardInterrupt):
            example().build(path)
        with pytest.raises(StoreError):
            PPRStore.open(path)
        left = 100
        example().build(path, "resume")
        assert content(path) == content(built)
        left = count
        with pytest.raises(KeyboardInterrupt):
            example(parameters={"teleport": 0.5}).build(path, "overwrite")
        left = 100
        example().build(path, "overwrite")
        assert content(path) == content(built)


@pytest.mark.parametrize("existing", ["refuse", "resume", "overwrite"])
def test_a_directory_of_something_else_is_not_touched(tmp_path, existing):
    for name in ("notes.txt", "build.json", "shard-00000.ppr"):
        (tmp_path / name).write_text("{}")
    before = content(tmp_path)
    with pytest.raises(
        StoreError,
        match=r"not empty and not a PPR store .it contains build.json.*another directory",
    ):
        example().begin(tmp_path, existing)
    assert content(tmp_path) == before
    with pytest.raises(StoreError, match=r"cannot hold a store .*: choose another directory"):
        example().begin(tmp_path / "notes.txt", existing)


def test_what_is_there_is_kept_unless_existing_says_otherwise(built):
    before = content(built)
    wanted = r"already holds a store \(complete\): pass existing='resume' .* existing='overwrite'"
    with pytest.raises(StoreError, match=wanted) as caught:
        example().begin(built)
    assert caught.value.arguments == ("existing", "out")
    assert content(built) == before
    (built / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"already holds a store \(unfinished\)"):
        example().begin(built)


def test_overwriting_removes_the_files_of_the_store_only(built):
    (built / "notes.txt").write_text("mine")
    other = example(roots=[1], rows=[[]], num_clusters=0)
    assert other.build(built, "overwrite") == [0]
    names = {"build.json", "manifest.json", "roots.npy", "shard-00000.ppr", "notes.txt"}
    assert content(built).keys() == names
    assert PPRStore.open(built).roots.tolist() == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"teleport": 0.2, "normalisation": "rw"}}, "steps: stored None, wanted no"),
        ({"parameters": {"teleport": 0.3, "normalisation": "rw"}}, "teleport: stored 0.2, want"),
        ({"rows_per_shard": 3}, "rows per shard: stored 2, wanted 3"),
        ({"num_clusters": 2}, "num clusters: stored 3, wanted 2"),
        ({"roots": [0, 1, 2, 3, 4]}, "roots: stored '[0-9a-f]{32}', wanted '[0-9a-f]{32}'"),
        ({"num_nodes": 8}, "num nodes: stored 7, wanted 8"),
    ],
    ids=str,
)
def test_another_build_is_not_resumed(built, changes, message):
    before = content(built)
    expected = f"belongs to another build: .*{message}.*existing='overwrite'"
    with pytest.raises(StoreError, match=expected):
        example(**changes).begin(built, "resume")
    assert content(built) == before


def test_a_number_of_another_type_is_another_build(tmp_path):
    example(parameters={"a": 1}).begin(tmp_path)
    with pytest.raises(StoreError, match=r"parameter a: stored 1, wanted 1\.0"):
        example(parameters={"a": 1.0}).begin(tmp_path, "resume")


def test_a_build_that_nothing_tells_of_is_not_resumed(built):
    (built / "manifest.json").unlink()
    text = (built / "build.json").read_text()
    (built / "build.json").write_text(text[:-2])
    with pytest.raises(
        StoreError, match=r"cannot be resumed \(.*build.json is corrupt.*existing='overwr"
    ):
        example().begin(built, "resume")
    with pytest.raises(StoreError, match=r"build.json is corrupt"):
        StoreWriter.join(built)
    example().build(built, "overwrite")


def test_joining_needs_a_build(tmp_path):
    with pytest.raises(StoreError, match=r"build.json is missing"):
        StoreWriter.join(tmp_path)


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        ([1, 1], "sorted without repeats, got 1 before 1"),
        ([3, 2], "sorted without repeats, got 3 before 2"),
        ([-1, 2], r"root -1 is out of range, expected ids in \[0, 7\)"),
        ([0, 7], "root 7 is out of range"),
        ([[0]], "vector of integer node ids"),
    ],
)
def test_bad_roots_are_refused_before_anything_is_written(tmp_path, roots, message):
    with pytest.raises(StoreError, match=message):
        example(roots=roots).begin(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_finishing_early_names_what_is_missing(tmp_path):
    writer = example().begin(tmp_path)
    with pytest.raises(StoreError, match=r"clusters.npy is missing"):
        writer.finish(example().total_mass)
    writer.write_clusters(example().clusters)
    example().write(writer, 1)
    wanted = (
        r"2 of 3 shards are missing .*\(shard-00000.ppr, shard-00002.ppr\): .*existing='resume'"
    )
    with pytest.raises(StoreError, match=wanted):
        writer.finish(example().total_mass)
    assert not (tmp_path / "manifest.json").exists()


def test_arrays_that_do_not_fit_the_build_are_a_bug(tmp_path):
    writer = example(num_clusters=0).begin(tmp_path)
    rows = Rows(
        row_ptr=np.array([0, 1, 2]),
        ids=np.zeros(2, np.int32),
        weights=np.zeros(2, np.float32),
        missing_mass=np.zeros(2, np.float32),
        cut_mass=np.zeros((2, 0), np.float16),
    )
    no_rows = Rows(
        row_ptr=np.zeros(1, np.int64),
        ids=rows.ids[:0],
        weights=rows.weights[:0],
        missing_mass=rows.missing_mass[:0],
        cut_mass=rows.cut_mass[:0],
    )
    for row_ptr in ([0, 1], [0, 1, 3], [1, 1, 2], [0, 3, 2]):
        with pytest.raises(AssertionError):
            writer.write_shard(0, replace(rows, row_ptr=np.array(row_ptr)))
    with pytest.raises(AssertionError):
        writer.write_shard(0, replace(rows, ids=rows.ids.astype(np.int64)))
    with pytest.raises(AssertionError):
        writer.write_shard(0, replace(rows, cut_mass=np.zeros((2, 1), np.float16)))
    with pytest.raises(AssertionError):
        writer.write_shard(3, no_rows)


def out_of_space(descriptor, *_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("late", [False, True], ids=["while writing", "while flushing"])
def test_a_full_disk_leaves_nothing_half_written(built, tmp_path, monkeypatch, late):
    path = tmp_path / "full"
    writer = example().begin(path)
    writer.write_clusters(example().clusters)
    example().write(writer, 0)
    before = content(path)
    monkeypatch.setattr(disk.system, "sync" if late else "write", out_of_space)
    size = (built / "shard-00001.ppr").stat().st_size
    with pytest.raises(
        StoreError, match=f"disk full .*shard-00001.ppr: free {size} b.*existing='resume'"
    ):
        example().write(writer, 1)
    assert content(path) == before
    monkeypatch.undo()
    assert example().build(path, "resume") == [1, 2]
    assert content(path) == content(built)


def test_a_full_disk_at_the_manifest_or_the_beginning(built, tmp_path, monkeypatch):
    writer = example().begin(built, "resume")
    (built / "manifest.json").unlink()
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(disk.system, "sync", out_of_space)
    with pytest.raises(StoreError, match=r"disk full while writing .*manifest.json"):
        writer.finish(example().total_mass)
    with pytest.raises(StoreError, match=r"disk full while writing .*build.json"):
        example().begin(tmp_path / "t")
    assert list((tmp_path / "t").iterdir()) == []


def test_a_directory_that_vanished_is_told(tmp_path):
    writer = example(num_clusters=0).begin(tmp_path / "s")
    for entry in (tmp_path / "s").iterdir():
        entry.unlink()
    (tmp_path / "s").rmdir()
    with pytest.raises(StoreError, match=r"shard-00000.ppr cannot be written"):
        example(num_clusters=0).write(writer, 0)


def test_the_build_time_is_kept_beside_the_store(built, tmp_path):
    before = content(built)
    assert PPRStore.open(built).build_seconds == 0.0
    writer = example().begin(built, "resume")
    writer.record_seconds(writer.build_seconds + 2.5)
    writer.record_seconds(writer.build_seconds + 1.5)
    assert PPRStore.open(built).build_seconds == writer.build_seconds == 4.0
    assert content(built).keys() - before.keys() == {"build_seconds.json"}
    assert PPRStore.open(built).fingerprint == example_fingerprint(tmp_path)
    assert verify_store(built) == []
    (built / "build_seconds.json").write_text("{")
    assert PPRStore.open(built).build_seconds == 0.0
    example().build(built, "overwrite")
    assert content(built) == before


def example_fingerprint(tmp_path):
    example().build(tmp_path / "other")
    return PPRStore.open(tmp_path / "other").fingerprint


def test_a_shared_directory_is_joined_by_any_number_of_processes(built, tmp_path):
    path = tmp_path / "together"
    writers = [example().begin(path, "share") for _ in range(3)]
    left_over = path / ".cut.npy.123.tmp"
    left_over.write_bytes(b"half")
    for writer in writers:
        writer.write_clusters(example().clusters)
    for index in (2, 0, 1, 0):
        example().write(writers[index], index, shared=True)
    example().begin(path, "share")
    assert left_over.exists()
    writers[1].finish(example().total_mass)
    assert content(path) == content(built)
    example().write(writers[2], 1, shared=True)  # the same bytes: the store stays complete
    assert content(path) == content(built)


def test_a_shared_directory_belongs_to_one_build(tmp_path):
    writer = example(num_clusters=0).begin(tmp_path, "share")
    before = content(tmp_path)
    other = example(num_clusters=0, parameters={"teleport": 0.5})
    with pytest.raises(StoreError, match=r"belongs to another build: .*teleport.*another director"):
        other.begin(tmp_path, "share")
    assert content(tmp_path) == before
    # Both have found the directory empty, and the other was the last to claim it.
    shutil.copy(other_build_file(tmp_path / "other", other), tmp_path / "build.json")
    with pytest.raises(StoreError, match="belongs to another build"):
        example(num_clusters=0).write(writer, 0, shared=True)
    assert not (tmp_path / "shard-00000.ppr").exists()


def other_build_file(path, case):
    case.begin(path)
    return path / "build.json"


def test_finishing_removes_what_parts_have_kept(built, tmp_path):
    path = tmp_path / "parts"
    writer = example().begin(path, "share")
    writer.write_clusters(example().clusters)
    files = PartFiles.of(path)
    files.write_total_mass(example().total_mass)
    files.record_seconds(1, 1, 2.5)
    for index in range(3):
        example().write(writer, index, shared=True)
    writer.finish(files.read_total_mass())
    assert content(path) == content(built)

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.files import replacing, temporary_path
from gpn_scale.ppr.part_files import PartFiles, check_same_build, remove_part_files
from gpn_scale.ppr.sealed import sealed
from tests.ppr.cases import content, example, flip

TOTAL = example().total_mass


@pytest.fixture
def files(tmp_path):
    """Files of a build that has begun, with clusters."""
    writer = example().begin(tmp_path / "s")
    writer.write_clusters(example().clusters)
    return PartFiles.of(tmp_path / "s")


def test_the_total_mass_comes_back_and_its_bytes_are_always_the_same(files):
    assert not files.are_intact
    files.write_total_mass(TOTAL)
    assert files.are_intact
    assert files.read_total_mass().tolist() == TOTAL.tolist()
    before = content(files.directory)
    files.write_total_mass(TOTAL)
    assert content(files.directory) == before


@pytest.mark.parametrize("name", ["roots.npy", "clusters.npy", "total_mass.npy", "parts.json"])
def test_damage_of_what_parts_share_is_noticed(files, name):
    files.write_total_mass(TOTAL)
    flip(files.directory / name, -1)
    assert not files.are_intact
    with pytest.raises(StoreError, match=name):
        files.read_total_mass()
    (files.directory / name).unlink()
    with pytest.raises(StoreError, match=f"{name} is missing"):
        files.read_total_mass()


def test_what_another_build_shares_is_refused(files, tmp_path):
    files.write_total_mass(TOTAL)
    other = replace(files, build=replace(files.build, k=3))
    with pytest.raises(StoreError, match=r"parts\.json belongs to another build"):
        other.read_total_mass()
    (files.directory / "parts.json").write_bytes((files.directory / "build.json").read_bytes())
    with pytest.raises(StoreError, match=r"parts\.json belongs to another build"):
        files.read_total_mass()


@pytest.mark.parametrize("name", ["clusters", "total_mass"])
def test_what_is_made_up_about_shared_files_is_refused(files, name):
    files.write_total_mass(TOTAL)
    facts = json.loads((files.directory / "parts.json").read_text())
    for wrong in (7, None, ["x"]):
        (files.directory / "parts.json").write_text(sealed(facts | {name: wrong}))
        with pytest.raises(StoreError, match=rf"{name}.npy is damaged: its checksum is"):
            files.read_total_mass()


def test_without_clusters_only_roots_are_shared(tmp_path):
    example(num_clusters=0).begin(tmp_path)
    files = PartFiles.of(tmp_path)
    assert files.are_intact
    assert files.read_total_mass() is None
    flip(tmp_path / "roots.npy", -1)
    assert not files.are_intact


def test_times_of_parts_add_up(files):
    assert (files.all_seconds, files.seconds(1, 4), files.counts) == (0, 0.0, [])
    files.record_seconds(1, 4, 2.0)
    files.record_seconds(1, 4, 3.0)
    files.record_seconds(123_456, 1_000_000, 4.0)
    assert (files.all_seconds, files.seconds(1, 4), files.counts) == (7.0, 3.0, [4, 1_000_000])
    (files.directory / "part-00001-of-00004.json").write_text("{")
    assert (files.all_seconds, files.seconds(1, 4)) == (4.0, 0.0)
    for made_up in ("1e999", "-3", '"nan"'):
        (files.directory / "part-00001-of-00004.json").write_text(f'{{"seconds": {made_up}}}')
        assert (files.all_seconds, files.seconds(1, 4)) == (4.0, 0.0)


def test_another_build_is_named(files):
    check_same_build(files.directory, files.build)
    with pytest.raises(StoreError, match=r"another build: k: stored 4, wanted 5; choose another d"):
        check_same_build(files.directory, replace(files.build, k=5))
    flip(files.directory / "build.json", 5)
    with pytest.raises(StoreError, match=r"cannot take parts of a store \(.*build.json is corrupt"):
        check_same_build(files.directory, files.build)


def test_only_files_of_parts_and_of_dead_processes_are_removed(files):
    before = content(files.directory)
    files.write_total_mass(TOTAL)
    files.record_seconds(1, 4, 2.0)
    left_over = temporary_path(files.directory / "shard-00001.ppr")
    left_over.write_bytes(b"half")
    (files.directory / "notes.txt").write_text("mine")
    living = files.directory / "shard-00000.ppr"
    with replacing(living) as file:
        file.write(b"half")
        file.flush()
        remove_part_files(files.directory)
        kept = {"notes.txt": b"mine", temporary_path(living).name: b"half"}
        assert content(files.directory) == before | kept
        file.write(b", whole")
    assert living.read_bytes() == b"half, whole"


def test_a_full_disk_leaves_what_was_there(files, monkeypatch):
    def out_of_space(descriptor):
        raise OSError(28, "No space left on device")

    before = content(files.directory)
    monkeypatch.setattr(os, "fsync", out_of_space)
    with pytest.raises(StoreError, match=r"disk full while writing .*total_mass\.npy"):
        files.write_total_mass(np.zeros(7))
    assert content(files.directory) == before

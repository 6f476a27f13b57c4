"""Parts that are killed, damaged, mixed up or computed twice at once."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute.build import build_store
from precompute.parts import finish_store
from precompute.row_engine import RowEngine
from tests.ppr.cases import flip
from tests.precompute.command import content
from tests.precompute.engines import config_of, random_graph
from tests.precompute.parted import CONFIG, GRAPH, ONE_THREAD, SINGLE, compute

SHARED = ["clusters.npy", "total_mass.npy", "parts.json", "graph_indptr.npy", "graph_indices.npy"]
pytestmark = pytest.mark.usefixtures("small_shards")


def stamps(path):
    return {each.name: each.stat().st_ino for each in path.iterdir()}


def test_finishing_twice_changes_nothing(three, wanted):
    finish_store(three)
    before = stamps(three)
    finish_store(three)
    for index in (1, 2, 3):
        compute(three, index, 3)  # nothing is missing
    assert stamps(three) == before
    assert content(three) == wanted


def test_a_damaged_shard_is_named_and_only_it_is_computed_again(three, wanted):
    flip(three / "shard-00004.ppr", -30)
    named = r"1 of 7 shards are not usable \(shard-00004.ppr is damaged\): compute part 3 of 3"
    with pytest.raises(StoreError, match=named):
        finish_store(three)
    before = stamps(three)
    compute(three, 3, 3)
    changed = {name for name, inode in stamps(three).items() if inode != before.get(name)}
    assert changed == {"shard-00004.ppr", "part-00003-of-00003.json"}
    finish_store(three)
    assert content(three) == wanted


def test_damage_after_finishing_is_repaired_by_a_part(three, wanted):
    finish_store(three)
    flip(three / "shard-00000.ppr", -30)
    with pytest.raises(StoreError, match=r"shard-00000.ppr is damaged\): compute part 1 of 7"):
        finish_store(three)
    compute(three, 2, 7)  # is intact
    assert PPRStore.open(three).num_roots == 40
    compute(three, 1, 7)
    with pytest.raises(StoreError, match=r"holds parts of an unfinished PPR store .*finish_store"):
        PPRStore.open(three)
    finish_store(three)
    assert content(three) == wanted
    flip(three / "cut.npy", -1)
    with pytest.raises(StoreError, match=r"cut.npy is corrupt.*to repair it, .*existing='resume'"):
        finish_store(three)
    build_store(GRAPH, SINGLE, three, existing="resume", resources=ONE_THREAD)
    assert content(three) == wanted


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("damage", [lambda path: flip(path, -1), Path.unlink], ids=["flip", "lost"])
def test_damage_of_what_parts_share_is_repaired_by_any_part(three, wanted, name, damage):
    damage(three / name)
    with pytest.raises(
        StoreError, match=rf"{name} .*compute any part again, such as part 1/3"
    ) as e:
        finish_store(three)
    assert e.value.arguments == ("part=1/3",)
    compute(three, 2, 3)
    finish_store(three)
    assert content(three) == wanted


def test_a_single_build_may_complete_what_parts_have_begun(tmp_path, wanted):
    compute(tmp_path / "s", 2, 3)
    build_store(GRAPH, SINGLE, tmp_path / "s", existing="resume", resources=ONE_THREAD)
    assert content(tmp_path / "s") == wanted


@pytest.mark.parametrize(
    ("graph", "config", "message"),
    [
        (random_graph(40, rng_seed=1), CONFIG, "graph fingerprint: stored"),
        (GRAPH, config_of("sym", 3, teleport=0.3, k=3, clusters=3), "parameter teleport: stored"),
        (GRAPH, config_of("sym", 3, k=4, clusters=3, push_tolerance=1e-3), "k: stored 3, wanted 4"),
    ],
)
def test_parts_of_another_graph_or_other_settings_are_refused(
    tmp_path, wanted, graph, config, message
):
    compute(tmp_path / "s", 1, 2)
    before = content(tmp_path / "s")
    with pytest.raises(StoreError, match=rf"belongs to another build: .*{message}.*another direct"):
        compute(tmp_path / "s", 2, 2, graph, config)
    assert content(tmp_path / "s") == before
    compute(tmp_path / "other", 2, 2, graph, config)
    for path in (tmp_path / "other").glob("shard-*"):
        shutil.copy(path, tmp_path / "s")
    named = (
        r"\(shard-00003.ppr to shard-00006.ppr are of another graph or other settings\): .* 2 of"
    )
    with pytest.raises(StoreError, match=named):
        finish_store(tmp_path / "s")
    compute(tmp_path / "s", 2, 2)
    finish_store(tmp_path / "s")
    assert content(tmp_path / "s") == wanted


def test_a_full_disk_in_the_middle_of_a_part(tmp_path, wanted, monkeypatch):
    path = tmp_path / "s"

    def out_of_space(descriptor):
        if (path / "shard-00003.ppr").exists():
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", out_of_space)
        with pytest.raises(StoreError, match=r"disk full while writing"):
            compute(path, 2, 2)
    assert not [each for each in path.iterdir() if each.suffix == ".tmp"]
    with pytest.raises(StoreError, match=r"shard-00004.ppr to shard-00006.ppr are missing"):
        finish_store(path)
    for index in (2, 1):
        compute(path, index, 2)
    finish_store(path)
    assert content(path) == wanted


def test_parts_killed_at_any_rename_are_computed_again(tmp_path, wanted, monkeypatch):
    real, left = os.replace, 0

    def die(source, target):
        nonlocal left
        left -= 1
        if left < 0:
            shutil.copy(source, f"{source[:-4]}9.tmp")  # a killed process removes nothing
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", lambda source, target: die(str(source), target))
    path, stops = tmp_path / "s", 0
    for index in (2, 1):
        for allowed in range(100):
            left = allowed % 4
            try:
                compute(path, index, 2)
                break
            except KeyboardInterrupt:
                stops += 1
    assert stops > 8
    for allowed in range(100):
        left = allowed
        try:
            finish_store(path)
            break
        except KeyboardInterrupt:
            stops += 1
            with pytest.raises(StoreError):
                PPRStore.open(path)
    assert content(path) == wanted


def test_another_process_may_compute_the_same_part_and_finish_meanwhile(
    tmp_path, wanted, monkeypatch
):
    path, push = tmp_path / "s", RowEngine.push
    compute(path, 1, 2)

    def slow_push(engine, roots):
        monkeypatch.setattr(RowEngine, "push", push)
        compute(path, 2, 2)
        finish_store(path)
        return push(engine, roots)

    monkeypatch.setattr(RowEngine, "push", slow_push)
    compute(path, 2, 2)
    assert verify_store(path) == []
    assert content(path).keys() - wanted.keys() == {"part-00002-of-00002.json"}
    finish_store(path)
    assert content(path) == wanted

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.ppr import verification
from gpn_scale.ppr.verification import verify_store
from tests.ppr.cases import Case, content, example, flip


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


@pytest.fixture
def built(tmp_path):
    example().build(tmp_path / "s")
    return tmp_path / "s"


@settings(max_examples=100)
@given(data=st.data())
def test_no_flipped_bit_escapes_and_only_that_file_is_rebuilt(data):
    with TemporaryDirectory() as folder:
        path = Path(folder)
        example().build(path)
        before = content(path)
        name = data.draw(st.sampled_from(sorted(before)))
        flip(
            path / name,
            data.draw(st.integers(0, len(before[name]) - 1)),
            data.draw(st.integers(0, 7)),
        )
        (problem,) = verify_store(path)
        assert problem.startswith(str(path / name))
        todo = example().build(path, "resume")
        assert todo == ([int(name[6:11])] if name.startswith("shard") else [])
        assert content(path) == before


def test_verify_names_every_bad_file(built):
    (built / "shard-00000.ppr").unlink()
    (built / "build.json").unlink()
    flip(built / "clusters.npy", -1)
    flip(built / "shard-00002.ppr", -1)
    problems = verify_store(built)
    names = ["build.json", "clusters.npy", "shard-00000.ppr", "shard-00002.ppr"]
    assert [str(built / name) in line for name, line in zip(names, problems, strict=True)] == [
        True
    ] * 4
    flip(built / "manifest.json", 5)
    assert len(verify_store(built)) == 2  # neither JSON file is left to tell of the others


@pytest.mark.parametrize("name", ["clusters.npy", "build.json"])
def test_a_file_that_has_grown_is_not_read(built, name):
    with (built / name).open("r+b") as file:
        file.truncate(1 << 40)  # takes no space, and would take an hour to read
    (problem,) = verify_store(built)
    assert f"{name} is corrupt or truncated: it has 1,099,511,627,776 bytes, expected" in problem


def test_long_lists_of_roots_are_checked_without_a_manifest(tmp_path, monkeypatch):
    roots = list(range(0, 2000, 2))
    rows = [[(root, 0.5)] for root in roots]
    path = tmp_path / "s"
    Case(num_nodes=2000, roots=roots, rows=rows, rows_per_shard=1000).build(path)
    size = (path / "roots.npy").stat().st_size
    # The list stays below the limit of JSON files only if there are few roots.
    monkeypatch.setattr(verification, "JSON_BYTES", (path / "build.json").stat().st_size)
    assert size > verification.JSON_BYTES
    flip(path / "manifest.json", 40)
    (problem,) = verify_store(path)
    assert "manifest.json" in problem
    with (path / "roots.npy").open("r+b") as file:
        file.truncate(1 << 40)
    assert "roots.npy is corrupt or truncated: it has 1,099" in verify_store(path)[1]


def test_a_damaged_manifest_does_not_hide_a_damaged_shard(built):
    flip(built / "manifest.json", 40)
    flip(built / "shard-00002.ppr", -1)
    first, second = verify_store(built)
    assert "manifest.json" in first
    assert "shard-00002.ppr is corrupt: the checksum of its block table is" in second

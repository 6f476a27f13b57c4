"""Claiming of directories; `test_writer` tests it through writers as well."""

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.claiming import claim_directory
from gpn_scale.ppr.example import example_store
from gpn_scale.ppr.generations import generation_folder
from gpn_scale.ppr.manifest import LOCK, Build
from gpn_scale.ppr.updated_manifest import write_updated_manifest


def test_an_updated_store_is_overwritten_with_its_generations_but_not_resumed(tmp_path):
    store = example_store(tmp_path)
    example_store(tmp_path / generation_folder(1))
    write_updated_manifest(store, 1, roots=store.roots, record={})
    build = Build.of(store.manifest)
    with pytest.raises(StoreError, match="has been updated since it was built"):
        claim_directory(tmp_path, build, "resume")
    (tmp_path / generation_folder(2)).mkdir()
    (tmp_path / generation_folder(2) / "notes.txt").write_text("mine")
    claim_directory(tmp_path, build, "overwrite")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert names == ["build.json", "generation-00002", "generation-00002/notes.txt"]


def test_a_lock_alone_does_not_make_a_directory_full(tmp_path):
    store, empty = example_store(tmp_path / "store"), tmp_path / "empty"
    empty.mkdir()
    (empty / LOCK).touch()
    claim_directory(empty, Build.of(store.manifest), "refuse")
    assert [path.name for path in empty.iterdir()] == [LOCK]

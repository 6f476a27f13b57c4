"""The manifest of an updated store."""

import numpy as np

from gpn_scale.ppr.example import example_store
from gpn_scale.ppr.generations import generation_folder
from gpn_scale.ppr.manifest_schema import GENERATIONS, HISTORY
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.updated_manifest import next_number, write_updated_manifest


def test_it_lists_generations_and_keeps_the_parameters_of_the_build(tmp_path):
    store = example_store(tmp_path)
    example_store(tmp_path / generation_folder(1))
    write_updated_manifest(store, 1, roots=store.roots, record={"tolerance": 0.5})
    updated = PPRStore.open(tmp_path)
    assert [each["folder"] for each in updated.manifest[GENERATIONS]] == [".", "generation-00001"]
    assert updated.parameters == store.parameters
    assert updated.manifest["entries"] == store.manifest["entries"]
    assert np.isclose(updated.manifest["mean_missing_mass"], store.manifest["mean_missing_mass"])
    assert updated.fingerprint != store.fingerprint
    assert next_number(updated.manifest) == 2


def test_a_generation_that_replaces_all_others_is_listed_alone(tmp_path):
    store = example_store(tmp_path)
    example_store(tmp_path / generation_folder(1))
    write_updated_manifest(store, 1, roots=store.roots, record=None, alone=True)
    manifest = PPRStore.open(tmp_path).manifest
    assert [each["folder"] for each in manifest[GENERATIONS]] == ["generation-00001"]
    assert manifest[HISTORY] == []

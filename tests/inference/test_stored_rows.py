"""Stores that a model may and may not use."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.inference.stored_rows import open_rows, require_evidence_diffusion
from gpn_scale.ppr.store import PPRStore
from precompute.build import build_store
from precompute.resources import Resources
from precompute.update import update_store
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig()


@pytest.fixture(scope="module")
def store(small_graph, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("store"))
    parameters = DIFFUSION.store_parameters
    return write_store(folder, small_graph, DIFFUSION, k=8, parameters=parameters)


def test_a_store_is_opened_by_its_path_or_again(small_graph, store):
    for given in (store, store.path, str(store.path)):
        opened = open_rows(given, small_graph, DIFFUSION)
        np.testing.assert_array_equal(opened.rows([5]).ids, store.rows([5]).ids)


@pytest.mark.parametrize(
    ("change", "message", "built", "trained"),
    [
        (
            {"teleport": 0.3},
            r"teleport=0.1, .* with teleport=0.3: .* diffusion.teleport=0.1",
            *("0.3", "0.1"),
        ),
        ({"normalisation": "rw"}, r"normalisation=sym, .* with normalisation=rw", "rw", "sym"),
        ({"steps": "inf"}, r"steps=10, .* with steps=inf", "inf", "10"),
        ({"self_loops": False}, r"rows with self_loops=True", "off", "True"),
    ],
)
def test_rows_of_another_diffusion_are_refused(small_graph, store, change, message, built, trained):
    with pytest.raises(StoreError, match=message) as caught:
        open_rows(store, small_graph, replace(DIFFUSION, **change))
    (name,) = change
    assert caught.value.arguments == (f"rows_{name}={built}", f"diffusion.{name}={trained}")


def test_rows_of_another_graph_are_refused(small_graph, store):
    other = replace(small_graph, indices=small_graph.indices[::-1].copy())
    with pytest.raises(StoreError, match="graph fingerprint"):
        open_rows(store, other, DIFFUSION)


def test_averages_of_logarithms_are_no_sums():
    require_evidence_diffusion(DIFFUSION, "this")
    with pytest.raises(ConfigError, match=r"this adds up evidence, got diffusion.of=log_evidence"):
        require_evidence_diffusion(DiffusionConfig(of="log_evidence"), "this")


def test_an_open_store_goes_on_with_its_rows_after_an_update(tmp_path):
    """Also in another process, to which it is sent; and the new graph gets the new rows."""
    old, new = build_graph([0, 1], [1, 2]), build_graph([0, 1, 2], [1, 2, 3])
    rows, threads = PPRConfig(k=3, clusters=0), Resources(threads=1, memory_bytes=1 << 30)
    build_store(old, rows, tmp_path / "store", resources=threads)
    store = PPRStore.open(tmp_path / "store")
    before = store.rows([0, 1, 2])
    update_store(tmp_path / "store", new, tolerance=0.0, resources=threads)
    for kept in (open_rows(store, old, rows.diffusion), pickle.loads(pickle.dumps(store))):
        assert kept.num_nodes == 3
        np.testing.assert_array_equal(kept.rows([0, 1, 2]).weights, before.weights)
    assert open_rows(store, new, rows.diffusion).num_nodes == 4
    with pytest.raises(
        StoreError, match="has been updated to a later version of this graph"
    ) as error:
        open_rows(tmp_path / "store", old, rows.diffusion)
    assert error.value.arguments == ()
    other = build_graph([0, 0], [1, 2], num_nodes=4)
    with pytest.raises(StoreError, match=r"update the store with update\(graph\)") as error:
        open_rows(store, other, rows.diffusion)
    assert error.value.arguments == ("update_store", "existing=overwrite")

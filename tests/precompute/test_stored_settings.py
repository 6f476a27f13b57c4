"""Settings of a build come back from its store."""

from dataclasses import replace

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.manifest import Build
from gpn_scale.ppr.store import PPRStore
from precompute.stored_settings import settings_of
from tests.precompute.engines import config_of, random_graph
from tests.precompute.test_update import built


@pytest.mark.parametrize("steps", [3, "inf"])
@pytest.mark.parametrize("method", ["sweep", "push"])
def test_they_are_those_that_rows_depend_on(tmp_path, steps, method):
    config = config_of("rw", steps, k=4, clusters=2, method=method, keep=9, push_tolerance=1e-4)
    store = PPRStore.open(built(tmp_path, random_graph(30), config))
    got, got_method = settings_of(Build.of(store.manifest), push_tolerance=1e-4)
    assert got_method == method
    assert (got.diffusion, got.k, got.clusters, got.method) == (config.diffusion, 4, 2, method)
    assert got.push_tolerance == 1e-4
    assert method == "push" or got.keep == 9


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    config = config_of("rw", 3, k=4, clusters=0)
    store = built(tmp_path_factory.mktemp("stores") / "s", random_graph(30), config)
    return Build.of(PPRStore.open(store).manifest)


@pytest.mark.parametrize("name", ["teleport", "normalisation", "steps", "self_loops", "method"])
@pytest.mark.parametrize("wrong", [None, "x", [], -1, 1e300, "removed"])
def test_settings_that_no_build_has_are_refused(build, name, wrong):
    parameters = {**build.parameters, name: wrong}
    if wrong == "removed":
        del parameters[name]
    with pytest.raises(
        StoreError, match=r"settings that no build can have \(.*: build the store again"
    ):
        settings_of(replace(build, parameters=parameters))

"""Stores computed in parts: the same bytes as one build, whatever happens on the way."""

import os
import shutil
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.ppr.manifest import LOCK
from gpn_scale.ppr.part_files import PartFiles
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute import build as build_module
from precompute import plan as plan_module
from precompute.accuracy_targets import Target
from precompute.build import build_store, plan_store
from precompute.parts import Part, checked_part, finish_store
from precompute.repair import repair_store
from precompute.update import update_store
from tests.precompute.command import content
from tests.precompute.engines import config_of, random_graph
from tests.precompute.parted import CONFIG, GRAPH, ONE_THREAD, SINGLE, compute

pytestmark = pytest.mark.usefixtures("small_shards")


@given(num_shards=st.integers(0, 200), num_parts=st.integers(1, 300))
def test_parts_divide_the_shards_evenly_and_in_order(num_shards, num_parts):
    parts = [Part(index, num_parts) for index in range(1, num_parts + 1)]
    shards = [part.shards(num_shards) for part in parts]
    assert [index for each in shards for index in each] == list(range(num_shards))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    num_roots = max(num_shards * 5 - 3, 0)
    rows = [part.rows(num_roots, 5) for part in parts]
    assert [each for start, stop in rows for each in range(start, stop)] == list(range(num_roots))


@st.composite
def parted_builds(draw):
    """A graph, settings, roots, rows per shard, and parts in any order, some of them repeated."""
    num_nodes = draw(st.integers(1, 24))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * num_nodes))
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    weights = draw(st.none() | st.just(np.linspace(0.5, 2.0, len(edges))))
    directed = draw(st.booleans())
    graph = build_graph(*ends, num_nodes=num_nodes, edge_weight=weights, directed=directed)
    options = {"push_tolerance": 1e-3, "clusters": draw(st.integers(0, 10))}
    options["k"] = draw(st.integers(1, min(num_nodes, 5)))
    normalisation = draw(st.sampled_from(["sym", "rw"]))
    steps = draw(st.sampled_from([0, 2, "inf"]))
    roots = draw(st.none() | st.sets(node).map(lambda ids: np.array(sorted(ids), np.int64)))
    num_parts = draw(st.integers(1, 6))
    order = draw(st.permutations(range(1, num_parts + 1)))
    order += draw(st.lists(st.integers(1, num_parts), max_size=2))
    return graph, (normalisation, steps, options), roots, draw(st.integers(1, 6)), num_parts, order


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=parted_builds())
def test_parts_in_any_order_give_the_bytes_of_a_single_build(tmp_path_factory, drawn):
    graph, (normalisation, steps, options), roots, shard, num_parts, order = drawn
    folder = tmp_path_factory.mktemp("parts")
    with mock.patch.object(build_module, "rows_per_shard", return_value=shard):
        config = config_of(normalisation, steps, **options)
        for index in order:
            compute(folder / "parts", index, num_parts, graph, config, roots=roots)
        finish_store(folder / "parts")
        single = config_of(normalisation, steps, method="push", **options)
        build_store(graph, single, folder / "single", roots=roots, resources=ONE_THREAD)
    assert content(folder / "parts") == content(folder / "single")
    shutil.rmtree(folder)


def test_the_numbers_of_parts_may_be_mixed(tmp_path, wanted):
    compute(tmp_path / "s", 1, 2)
    compute(tmp_path / "s", 6, 7)
    compute(tmp_path / "s", 3, 4)
    compute(tmp_path / "s", 8, 8)
    finish_store(tmp_path / "s")
    assert content(tmp_path / "s") == wanted


def test_more_parts_than_shards_leave_some_empty(tmp_path, wanted):
    messages = []
    for index in range(9, 0, -1):
        compute(tmp_path / "s", index, 9, say=messages.append)
    assert [text for text in messages if "nothing to compute" in text] == [
        "part 5/9 has nothing to compute",
        "part 1/9 has nothing to compute",
    ]
    finish_store(tmp_path / "s")
    assert content(tmp_path / "s") == wanted


def test_a_target_leads_every_part_to_the_same_settings(tmp_path):
    target = Target("mass", 0.9)
    for index in (2, 1):
        compute(tmp_path / "s", index, 2, target=target)
    finish_store(tmp_path / "s")
    build_store(GRAPH, SINGLE, tmp_path / "one", target=target, resources=ONE_THREAD)
    assert content(tmp_path / "s") == content(tmp_path / "one")
    assert PPRStore.open(tmp_path / "s").k > 3


def test_folders_of_different_machines_are_copied_together(tmp_path, wanted):
    for machine, index in (("a", 1), ("b", 2), ("c", 3)):
        compute(tmp_path / machine, index, 3)
    for machine in "bc":
        shutil.copytree(tmp_path / machine, tmp_path / "a", dirs_exist_ok=True)
    finish_store(tmp_path / "a")
    assert content(tmp_path / "a") == wanted


def test_clusters_are_computed_once_and_used_by_later_parts(tmp_path, wanted, monkeypatch):
    compute(tmp_path / "s", 2, 3)
    monkeypatch.setattr(build_module, "partition_nodes", lambda *_: pytest.fail("computed again"))
    monkeypatch.setattr(build_module, "total_mass", lambda *_: pytest.fail("computed again"))
    for index in (1, 3):
        compute(tmp_path / "s", index, 3)
    finish_store(tmp_path / "s")
    assert content(tmp_path / "s") == wanted


def test_shards_of_other_clusters_are_named(tmp_path, wanted, monkeypatch):
    compute(tmp_path / "a", 1, 2)
    with monkeypatch.context() as patch:
        nodes = np.arange(40, dtype=np.int32)
        patch.setattr(build_module, "partition_nodes", lambda *_: nodes % 3)
        compute(tmp_path / "b", 2, 2)
    for path in (tmp_path / "b").glob("shard-*"):
        shutil.copy(path, tmp_path / "a")
    with pytest.raises(StoreError, match=r"shard-00003.ppr to .* with clusters other than those"):
        finish_store(tmp_path / "a")
    compute(tmp_path / "a", 2, 2)
    finish_store(tmp_path / "a")
    assert content(tmp_path / "a") == wanted


def test_the_times_of_all_parts_add_up(three):
    files = PartFiles.of(three)
    assert files.counts == [3, 3, 3]
    files.record_seconds(2, 3, 1000.0)
    before = files.seconds(1, 3)
    assert before > 0.0
    compute(three, 1, 3)
    assert files.seconds(1, 3) > before
    total = files.all_seconds
    finish_store(three)
    assert PPRStore.open(three).build_seconds == total > 1000.0


def test_finishing_names_missing_parts(tmp_path, wanted):
    compute(tmp_path / "s", 2, 4)
    with pytest.raises(
        StoreError,
        match=r"5 of 7 shards are not usable \(shard-00000.ppr is missing; shard-00003.ppr to "
        r"shard-00006.ppr are missing\): compute part 1,3-4 of 4, then finish",
    ) as caught:
        finish_store(tmp_path / "s")
    assert caught.value.arguments == ("part=1/4", "part=3/4", "part=4/4")
    assert not (tmp_path / "s" / "manifest.json").exists()
    compute(tmp_path / "s", 1, 4)
    for path in (tmp_path / "s").glob("part-*"):
        path.unlink()
    with pytest.raises(StoreError, match=r"compute part 4-7 of 7, then finish"):
        finish_store(tmp_path / "s")  # nothing tells how many parts there were
    for index in range(4, 8):
        compute(tmp_path / "s", index, 7)
    finish_store(tmp_path / "s")
    assert content(tmp_path / "s") == wanted


def files_below(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_an_updated_store_is_no_place_for_parts(tmp_path):
    for index in (1, 2):
        compute(tmp_path / "s", index, 2)
    finish_store(tmp_path / "s")
    update_store(tmp_path / "s", random_graph(40, rng_seed=5), resources=ONE_THREAD)
    before = files_below(tmp_path / "s")
    finish_store(tmp_path / "s")  # it is complete
    with pytest.raises(StoreError, match="updated since it was built, so parts cannot be computed"):
        compute(tmp_path / "s", 1, 2)
    assert files_below(tmp_path / "s") == before
    shard = tmp_path / "s" / "shard-00000.ppr"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"cannot be finished again \(.*: repair it with"):
        finish_store(tmp_path / "s")
    with pytest.raises(StoreError, match="parts cannot be computed in it: repair it with"):
        compute(tmp_path / "s", 1, 2)
    repair_store(tmp_path / "s", resources=ONE_THREAD)
    assert files_below(tmp_path / "s") == before


@pytest.mark.parametrize("name", ["clusters.npy", "total_mass.npy", "graph_indices.npy"])
def test_a_file_that_grew_without_end_is_not_read(tmp_path, name):
    for index in (1, 2):
        compute(tmp_path / "s", index, 2)
    os.truncate(tmp_path / "s" / name, 1 << 40)
    with pytest.raises(StoreError, match=r"cannot be finished .*: compute any part again"):
        finish_store(tmp_path / "s")


def test_a_graph_file_with_further_bytes_is_not_vouched_for(tmp_path):
    for index in (1, 2):
        compute(tmp_path / "s", index, 2)
    path = tmp_path / "s" / "graph_indices.npy"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(StoreError, match=r"cannot be finished .*: compute any part again"):
        finish_store(tmp_path / "s")
    compute(tmp_path / "s", 1, 2)
    finish_store(tmp_path / "s")
    assert not verify_store(tmp_path / "s")


def test_finishing_needs_parts(tmp_path):
    with pytest.raises(StoreError, match=r"holds no parts of a store \(no build.json\)"):
        finish_store(tmp_path)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ((0, 4), "part is 0/4, expected a number from 1/4 to 4/4: parts are numbered from 1"),
        ((5, 4), "part is 5/4, expected a number from 1/4 to 4/4"),
        ((-1, 4), "part is -1/4, expected a number from 1/4"),
        ((1, 0), "part is 1/0, expected at least 1 and at most 1000000 parts"),
        ((1, 1_000_001), "expected at least 1 and at most 1000000 parts"),
    ],
)
def test_parts_that_do_not_exist_are_refused(tmp_path, part, message):
    with pytest.raises(ConfigError, match=message) as caught:
        compute(tmp_path / "s", *part)
    assert caught.value.arguments == ("part",)
    assert not (tmp_path / "s").exists()


def test_settings_that_do_not_allow_parts_are_refused():
    sweep = config_of(method="sweep")
    with pytest.raises(ConfigError, match=r"method is 'sweep', which .* the method 'push' or 'au"):
        checked_part((1, 2), sweep, "refuse", 1)
    with pytest.raises(ConfigError, match=r"existing is 'overwrite', which would remove the other"):
        checked_part((1, 2), CONFIG, "overwrite", 1)
    with pytest.raises(ConfigError, match=r"2 MPI ranks were started, expected one process per pa"):
        checked_part((1, 2), CONFIG, "refuse", 2)
    assert checked_part(None, sweep, "overwrite", 2) == (None, sweep, "overwrite")


def test_a_plan_of_a_part_says_what_the_part_costs(monkeypatch):
    monkeypatch.setattr(plan_module, "estimate_seconds", lambda *arguments: 2.0 * arguments[3])
    whole = plan_store(GRAPH, SINGLE, resources=ONE_THREAD)
    plans = [plan_store(GRAPH, CONFIG, resources=ONE_THREAD, part=(i, 3)) for i in (1, 2, 3)]
    assert [plan.rows for plan in plans] == [(0, 12), (12, 24), (24, 40)]
    assert (whole.rows, whole.part) == ((0, 40), None)
    for plan in plans:
        assert plan.method == "push"
        assert plan.config.k == whole.config.k
        assert plan.seconds == 2.0 * (plan.rows[1] - plan.rows[0])
        assert plan.disk_bytes < whole.disk_bytes
        assert plan.memory.mass_by_cluster < whole.memory.mass_by_cluster
    assert "part         2/3: 12 rows in 2 of 7 shards" in plans[1].table()
    assert "part" not in whole.table()

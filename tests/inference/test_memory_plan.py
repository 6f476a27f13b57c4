import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import ConfigError
from gpn_scale.inference.memory_plan import modest_bytes, plan_inference

SIZES = {"num_nodes": 10_000_000, "num_edges": 150_000_000, "num_classes": 40}
GIB = 1 << 30


def smallest_budget(**sizes):
    with pytest.raises(ConfigError, match="too small to predict") as caught:
        plan_inference(**sizes, memory_bytes=0)
    return int(re.search(r"at least ([\d,]+)$", str(caught.value)).group(1).replace(",", ""))


@given(
    num_nodes=st.integers(0, 10**9),
    num_edges=st.integers(0, 10**11),
    num_classes=st.integers(1, 300),
    extra=st.integers(0, 10**12),
    max_degree=st.integers(0, 10**6),
    itemsize=st.sampled_from([4, 8]),
)
def test_plans_keep_within_every_budget_that_can_be_kept(extra, **sizes):
    least = smallest_budget(**sizes)
    plan = plan_inference(**sizes, memory_bytes=least + extra)
    assert plan.predicted_bytes <= least + extra
    assert 1 <= plan.columns <= sizes["num_classes"]
    assert plan.block_entries >= 1
    results = 0 if plan.results_on_disk else 8 * sizes["num_nodes"] * sizes["num_classes"]
    states = 3 * sizes["num_nodes"] * plan.columns * sizes["itemsize"]
    adjacency = 8 * sizes["num_edges"] if plan.keep_adjacency else 0
    assert plan.predicted_bytes >= results + states + adjacency
    assert plan.predicted_bytes >= results + plan.chunk_bytes
    if least > 0:
        with pytest.raises(ConfigError):
            plan_inference(**sizes, memory_bytes=least - 1)


def test_more_memory_moves_work_from_disk_to_memory():
    budgets = [smallest_budget(**SIZES), 2 * GIB, 4 * GIB, 8 * GIB, 16 * GIB]
    plans = [plan_inference(**SIZES, memory_bytes=budget) for budget in budgets]
    assert (plans[0].columns, plans[0].keep_adjacency, plans[0].results_on_disk) == (1, False, True)
    assert plans[0].block_entries == 1 << 16
    assert plans[2].keep_adjacency
    assert plans[2].results_on_disk
    assert (plans[-1].columns, plans[-1].keep_adjacency, plans[-1].results_on_disk) == (
        16,
        True,
        False,
    )
    assert plans[-1].chunk_bytes == 64 << 20


def test_rows_of_the_state_are_a_cache_line():
    large = 1 << 50
    assert plan_inference(**SIZES, memory_bytes=large).columns == 16
    assert plan_inference(**SIZES, memory_bytes=large, itemsize=8).columns == 8
    assert plan_inference(**SIZES | {"num_classes": 7}, memory_bytes=large).columns == 7


def test_an_adjacency_that_is_made_anew_is_passed_over_as_seldom_as_can_be():
    sizes = {"num_nodes": 1_000_000, "num_edges": 10**11, "num_classes": 40}
    plan = plan_inference(**sizes, memory_bytes=4 * GIB)
    assert not plan.keep_adjacency
    assert plan.columns == 40


def test_the_longest_row_is_never_cut():
    plan = plan_inference(**SIZES, memory_bytes=16 * GIB, max_degree=9_000_000)
    assert plan.block_entries == 9_000_000
    assert smallest_budget(**SIZES, max_degree=9_000_000) > smallest_budget(**SIZES) + 8 * 8_000_000


def test_a_modest_budget_can_be_kept():
    least, modest = smallest_budget(**SIZES), modest_bytes(**SIZES)
    assert least <= modest <= 2 * least
    assert plan_inference(**SIZES, memory_bytes=modest).predicted_bytes <= modest


def test_what_the_caller_fills_meanwhile_is_part_of_the_budget():
    extra = 1 << 30
    assert smallest_budget(**SIZES, extra_bytes=extra) == smallest_budget(**SIZES) + extra
    plan = plan_inference(**SIZES, memory_bytes=4 * GIB, extra_bytes=extra)
    assert extra < plan.predicted_bytes <= 4 * GIB

import pytest

from gpn_scale.errors import ConfigError
from precompute.scratch_memory import new_rows, new_work, plan_slots


@pytest.mark.parametrize("push", [False, True])
@pytest.mark.parametrize("slots", [1, 3])
def test_the_planned_bytes_are_those_of_the_arrays(push, slots):
    plan = plan_slots(1000, slots, 1 << 30, push=push)
    work = new_work(1000, slots, push=push)
    assert plan.slots == slots
    assert plan.bytes == sum(array.nbytes for array in work)
    assert not any(array.any() for array in work)


def test_less_memory_means_fewer_slots():
    assert plan_slots(1000, 4, 40_000, push=False).slots == 2
    assert plan_slots(1000, 4, 40_000, push=True).slots == 1
    with pytest.raises(ConfigError, match=r"leaves 0 MiB .*, expected at least 1 MiB") as caught:
        plan_slots(1000, 4, 10_000, push=False)
    assert caught.value.arguments == ("memory_bytes",)


def test_an_empty_graph_needs_no_memory():
    assert plan_slots(0, 2, 1, push=True).bytes == 0


def test_new_rows_are_empty():
    rows = new_rows(3, 5)
    assert rows.ids.shape == rows.weights.shape == (3, 5)
    assert rows.sizes.tolist() == [0, 0, 0]

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from precompute.top_k_kernels import partition_top_into, precedes, sort_row_into

# Few distinct masses, so that ties are common.
ENTRIES = st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0.1, 0.2, 0.3])), max_size=40)


def arrays_of(entries):
    ids = np.array([node for node, _ in entries], np.int32)
    return ids, np.array([mass for _, mass in entries], np.float32)


def ordered(ids, mass):
    return sorted(zip((-mass).tolist(), ids.tolist(), strict=True))


def test_larger_masses_and_smaller_ids_come_first():
    assert precedes(0.5, 9, 0.25, 1)
    assert precedes(0.5, 1, 0.5, 9)
    assert not precedes(0.5, 1, 0.5, 1)


@given(entries=ENTRIES, data=st.data())
def test_the_first_k_entries_come_to_the_front(entries, data):
    ids, mass = arrays_of(entries)
    count = data.draw(st.integers(0, len(entries)))
    k = data.draw(st.integers(1, max(count, 1)))
    before = ordered(ids[:count], mass[:count])
    tail = ordered(ids[count:], mass[count:])
    partition_top_into(ids, mass, count, k)
    assert ordered(ids[:k][:count], mass[:k][:count]) == before[:k]
    assert ordered(ids[:count], mass[:count]) == before
    assert ordered(ids[count:], mass[count:]) == tail


@given(entries=ENTRIES, data=st.data())
def test_rows_are_sorted_up_to_the_count(entries, data):
    ids, mass = arrays_of(entries)
    count = data.draw(st.integers(0, len(entries)))
    before, tail = ordered(ids[:count], mass[:count]), ids[count:].tolist()
    sort_row_into(ids, mass, count)
    assert list(zip((-mass[:count]).tolist(), ids[:count].tolist(), strict=True)) == before
    assert ids[count:].tolist() == tail

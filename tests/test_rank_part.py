from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.rank_part import ALONE, RankPart


@given(count=st.integers(0, 40), size=st.integers(1, 7), block=st.integers(1, 5))
def test_parts_cover_everything_once_and_evenly(count, size, block):
    parts = [RankPart(rank, size).slice_of(count, block=block) for rank in range(size)]
    covered = [i for part in parts for i in range(count)[part]]
    assert covered == list(range(count))
    assert all(part.start % block == 0 or part.start == count for part in parts)
    blocks = [-(-(part.stop - part.start) // block) for part in parts]
    assert max(blocks) - min(blocks) <= 1


@given(count=st.integers(0, 40), block=st.integers(1, 5))
def test_one_process_has_everything(count, block):
    assert ALONE.slice_of(count, block=block) == slice(0, count)

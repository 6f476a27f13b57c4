from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale import block_checksums
from gpn_scale.errors import StoreError
from gpn_scale.ppr import block_guard, open_shard, shard
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.store import PPRStore
from tests.ppr.cases import Case, flip

SMALL = 64


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


@pytest.fixture
def small_blocks(monkeypatch):
    for module in (block_checksums, block_guard, open_shard, shard):
        monkeypatch.setattr(module, "BLOCK_BYTES", SMALL)


def many_rows(num_clusters=3):
    rows = [[(i, 0.25), ((7 * i + 1) % 60, 0.125)][: i % 3] for i in range(60)]
    return Case(60, None, rows, num_clusters=num_clusters, rows_per_shard=20)


def test_only_blocks_that_rows_lie_in_are_checked_and_each_once(tmp_path, small_blocks):
    many_rows().build(tmp_path)
    store = PPRStore.open(tmp_path)
    with mock.patch.object(OpenShard, "check_blocks", autospec=True) as check:
        check.side_effect = lambda self, blocks: None
        store.rows([5])
        first = {(call.args[0].path.name, tuple(call.args[1])) for call in check.call_args_list}
        assert {name for name, _ in first} == {"shard-00000.ppr"}
        num_blocks = store._places.shards[0].info.num_blocks
        assert 0 < sum(len(blocks) for _, blocks in first) < num_blocks
        check.reset_mock()
        store.rows([5, 5])
        check.assert_not_called()
        store.rows(np.arange(60))
        assert store._guard.num_checked == sum(
            info.num_blocks for info in (each.info for each in store._places.shards)
        )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_rows_are_right_or_refused_whatever_bit_is_flipped(tmp_path_factory, data):
    """Small blocks, so that most rows stay readable: those are right, the others are refused."""
    folder = tmp_path_factory.mktemp("store")
    case = many_rows()
    with pytest.MonkeyPatch.context() as patch:
        for module in (block_checksums, block_guard, open_shard, shard):
            patch.setattr(module, "BLOCK_BYTES", SMALL)
        case.build(folder)
        store = PPRStore.open(folder)
        path = folder / f"shard-{data.draw(st.integers(0, 2)):05d}.ppr"
        start = len(store._places.shards[0].info.prefix())
        place = data.draw(st.integers(start, path.stat().st_size - 1))
        flip(path, place, data.draw(st.integers(0, 7)))
        refusals = []
        for node in range(60):
            try:
                ids, weights = store.row(node)
            except StoreError as error:
                refusals.append(str(error))
            else:
                expected = case.rows[node]
                assert list(zip(ids.tolist(), weights.tolist(), strict=True)) == expected
        assert all("existing='resume'" in text and path.name in text for text in refusals)
        assert len(refusals) <= 20  # the rows of one shard


def test_threads_may_share_a_guard(tmp_path, small_blocks):
    many_rows().build(tmp_path)
    store = PPRStore.open(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda node: store.row(node)[0].tolist(), list(range(60)) * 5))
    assert results == [[node for node, _ in row] for row in many_rows().rows] * 5


def test_a_shard_that_was_replaced_is_checked_anew(tmp_path, small_blocks):
    case = many_rows()
    case.build(tmp_path)
    store = PPRStore.open(tmp_path)
    store.rows(np.arange(60))
    checked = store._guard.num_checked
    store._shard.cache_clear()
    store.row(0)
    assert store._guard.num_checked == checked
    store._shard.cache_clear()
    data = (tmp_path / "shard-00000.ppr").read_bytes()
    (tmp_path / "shard-00000.ppr").unlink()
    (tmp_path / "shard-00000.ppr").write_bytes(data)
    store.row(0)
    assert store._guard.num_checked < checked


def test_a_shard_that_is_cut_short_under_the_reader(tmp_path):
    many_rows().build(tmp_path)
    store = PPRStore.open(tmp_path)
    store.rows(np.arange(60))
    with (tmp_path / "shard-00001.ppr").open("r+b") as file:
        file.truncate(100)
    assert store.row(3)[0].size == 0
    with pytest.raises(StoreError, match=r"shard-00001.ppr is truncated: 100 bytes"):
        store.rows(np.arange(60))

"""Checks each block of a store's shards once, before rows are read from it.

The blocks of all shards are numbered consecutively, so that one lookup per array shows whether all
requested rows lie in blocks that have already been checked.

Shapes: S shards, B requested rows.
"""

from collections.abc import Callable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from gpn_scale.block_checksums import BLOCK_BYTES
from gpn_scale.ppr.open_shard import OpenShard
from gpn_scale.ppr.shard import ShardInfo

_checking = True
"""Switched off by `benchmarks/bench_checksums.py` alone, to measure what checking costs."""


class BlockGuard:
    """Remembers which blocks of a store this process has checked; threads may share it.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> from gpn_scale.ppr.shard import read_shard_info, shard_name
    >>> with TemporaryDirectory() as folder:
    ...     path = example_store(folder).path / shard_name(0)
    ...     info = read_shard_info(path)
    ...     guard = BlockGuard([info], lambda index: OpenShard(path, info, num_nodes=3))
    ...     guard.check_rows(np.array([0, 0]), np.array([1, 2]))
    ...     guard.num_checked
    1

    Args:
        infos: Headers of all shards.
        shard: Opens a shard, or returns it if it is open.
    """

    def __init__(self, infos: list[ShardInfo], shard: Callable[[int], OpenShard]) -> None:
        self._shard = shard
        counts = [info.num_blocks for info in infos]
        self._first_block_S = np.cumsum([0, *counts])
        layouts = [info.layout() for info in infos]
        self._offset_S = {
            name: np.array([layout[name][2] for layout in layouts], np.int64)
            for name in (layouts[0] if layouts else ())
        }
        self._stride = {
            name: int(np.prod(shape[1:], dtype=np.int64)) * np.dtype(dtype).itemsize
            for name, (dtype, shape, _) in (layouts[0] if layouts else {}).items()
        }
        self._checked = np.zeros(self._first_block_S[-1], np.bool_)
        self._identity: dict[int, tuple[int, ...]] = {}
        self._lock = Lock()

    @property
    def num_checked(self) -> int:
        """Number of blocks that were checked."""
        return int(self._checked.sum())

    def forget(self, index: int, shard: OpenShard) -> None:
        """Check a reopened shard again if its file was replaced or changed."""
        if self._identity.setdefault(index, shard.identity) != shard.identity:
            self._identity[index] = shard.identity
            self._checked[self._first_block_S[index] : self._first_block_S[index + 1]] = False

    def check_rows(self, shard_B: NDArray[np.int64], local_B: NDArray[np.int64]) -> None:
        """Check the blocks that hold the pointers and masses of rows, before they are read.

        Raises:
            StoreError: a block is damaged, or a file was truncated.
        """
        if not _checking:
            return
        for index in np.unique(shard_B).tolist():
            self._shard(index).check_size()
        pieces = [(name, local_B, 2 if name == "row_ptr" else 1) for name in self._row_arrays]
        for name, first_B, count in pieces:
            self._check(name, shard_B, first_B, first_B + count)

    def check_entries(
        self, shard_B: NDArray[np.int64], start_B: NDArray[np.int64], stop_B: NDArray[np.int64]
    ) -> None:
        """Check the blocks that hold the entries from `start_B` to `stop_B` of shards.

        Raises:
            StoreError: a block is damaged.
        """
        if not _checking:
            return
        kept = start_B < stop_B
        for name in ("ids", "weights"):
            if name in self._offset_S:
                self._check(name, shard_B[kept], start_B[kept], stop_B[kept])

    @property
    def _row_arrays(self) -> list[str]:
        return [name for name in self._offset_S if name not in ("ids", "weights")]

    def _check(
        self,
        name: str,
        shard_B: NDArray[np.int64],
        first_B: NDArray[np.int64],
        stop_B: NDArray[np.int64],
    ) -> None:
        checked = self._checked
        if checked.all():
            return
        stride, base_B = self._stride[name], self._first_block_S[shard_B]
        offset_B = self._offset_S[name][shard_B]
        shift = BLOCK_BYTES.bit_length() - 1  # faster than a division
        low_B = base_B + ((offset_B + first_B * stride) >> shift)
        high_B = base_B + ((offset_B + stop_B * stride - 1) >> shift)
        if checked[low_B].all() and checked[high_B].all() and (high_B - low_B < 2).all():
            return
        touched = np.zeros(len(checked) + 1, np.int64)
        np.add.at(touched, low_B, 1)
        np.add.at(touched, high_B + 1, -1)
        pending = np.flatnonzero((np.cumsum(touched[:-1]) > 0) & ~checked)
        with self._lock:
            owner = np.searchsorted(self._first_block_S, pending, side="right") - 1
            for index in np.unique(owner).tolist():
                blocks = pending[owner == index]
                local = (blocks - self._first_block_S[index]).tolist()
                self._shard(index).check_blocks(local)
                checked[blocks] = True

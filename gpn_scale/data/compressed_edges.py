"""Edge lists of any length as compressed rows, sorted outside of memory.

The entries are counted per row and divided into buckets of consecutive rows, each small enough to
be sorted in memory. The result is equal to that of `build_graph`, which sorts in memory.

Shapes: N nodes, M edges of a block, E stored edges.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.errors import GraphError
from gpn_scale.scratch import MEMORY_BYTES, GrowingArray, release_pages, scratch_array

MAX_NODES = 2**31 - 1
"""Limit of int32, the type of neighbour ids."""
BUCKET_ENTRIES = 1 << 23
"""Number of entries that are sorted at a time; a single row with more makes a larger bucket."""
BLOCK_EDGES = 1 << 22
"""Number of edges of a block."""

_ADVICE = "free some disk space"


class EdgeBlock(NamedTuple):
    """Some edges of a list, in their order.

    >>> EdgeBlock(np.array([0]), np.array([1]), None).source.tolist()
    [0]
    """

    source: NDArray[Any]
    """Nodes where edges start, (M,)."""
    target: NDArray[Any]
    """Nodes where edges end, (M,)."""
    weight: NDArray[Any] | None
    """Weights, (M,); None for edges without."""


EdgeBlocks = Callable[[], Iterator[EdgeBlock]]
"""Yields all edges of a list, at every call anew."""


class CompressedEdges(NamedTuple):
    """The edges of a graph as sorted rows without repetition and self-loops.

    >>> blocks = edge_list_blocks(np.array([0, 2, 1]), np.array([1, 1, 1]))
    >>> edges = compressed_edges(blocks, 3, weighted=False, directed=False)
    >>> edges.indptr.tolist(), edges.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """

    indptr: NDArray[np.int64]
    """Row offsets, (N + 1,)."""
    indices: NDArray[np.int32]
    """Neighbours, (E,)."""
    weight: NDArray[np.float32] | None
    """Weights, (E,); None for edges without."""


def edge_list_blocks(
    source: NDArray[Any],
    target: NDArray[Any],
    weight: NDArray[Any] | None = None,
    block_edges: int = BLOCK_EDGES,
) -> EdgeBlocks:
    """Return the blocks of an edge list; of mapped arrays, one block at a time is in memory.

    >>> blocks = edge_list_blocks(np.array([0, 1, 2]), np.array([1, 2, 0]), block_edges=2)
    >>> [block.target.tolist() for block in blocks()]
    [[1, 2], [0]]
    """

    def blocks() -> Iterator[EdgeBlock]:
        for start in range(0, len(source), block_edges):
            part = slice(start, start + block_edges)
            yield EdgeBlock(
                np.array(source[part]),
                np.array(target[part]),
                None if weight is None else np.array(weight[part]),
            )
            release_pages(source, target, weight)

    return blocks


def compressed_edges(
    blocks: EdgeBlocks,
    num_nodes: int,
    *,
    weighted: bool,
    directed: bool,
    directory: Path | None = None,
    bucket_entries: int = BUCKET_ENTRIES,
    memory_bytes: int = MEMORY_BYTES,
) -> CompressedEdges:
    """Return the edges of a list as compressed rows, by the rules of `build_graph`.

    Memory grows with N and `bucket_entries`, not with the number of edges.

    >>> blocks = edge_list_blocks(np.array([0, 1, 0]), np.array([1, 0, 1]), np.array([2.0, 5.0, 1]))
    >>> compressed_edges(blocks, 2, weighted=True, directed=False).weight.tolist()
    [5.0, 5.0]

    Args:
        blocks: The edges, with ends in [0, N) and positive weights.
        num_nodes: N.
        weighted: Whether the edges have weights.
        directed: Keep edges as they are instead of adding the reverse ones.
        directory: Folder of temporary files; None for the system's default.
        bucket_entries: Number of entries that are sorted at a time.
        memory_bytes: Size above which arrays of the result are mapped from a file.

    Raises:
        GraphError: there are more nodes than int32 can number.
    """
    if num_nodes > MAX_NODES:
        raise GraphError(f"got {num_nodes:,} nodes, expected at most {MAX_NODES:,}")
    sorter = _Sorter(num_nodes, weighted, directory, bucket_entries, memory_bytes)
    if not weighted or directed:
        both = not weighted and not directed
        return sorter.joined(rows for _, _, rows in sorter.buckets(blocks, both=both))
    given = sorter.joined(rows for _, _, rows in sorter.buckets(blocks, both=False))
    reverse = sorter.buckets(_reversed_rows(given), both=False, further_N=np.diff(given.indptr))
    return sorter.joined(
        _larger(_rows_of(given, first, last), rows) for first, last, rows in reverse
    )


@dataclass(frozen=True, slots=True)
class _Sorter:
    num_nodes: int
    weighted: bool
    directory: Path | None
    bucket_entries: int
    memory_bytes: int

    def buckets(
        self, blocks: EdgeBlocks, *, both: bool, further_N: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[int, int, scipy.sparse.csr_array]]:
        """Yield consecutive ranges of rows with their sorted entries, of shape (rows, N).

        Args:
            blocks: The entries: rows, columns and values.
            both: Whether the reverse of every entry is an entry, too.
            further_N: Numbers of entries that the caller adds to each row; they make buckets
                smaller.
        """
        count_N = np.zeros(self.num_nodes, np.int64)
        for rows, _, _ in self._entries(blocks, both):
            count_N += np.bincount(rows, minlength=self.num_nodes)
        starts = _bucket_starts(
            count_N if further_N is None else count_N + further_N, self.bucket_entries
        )
        offsets = np.append(0, np.cumsum(count_N))[np.append(starts, self.num_nodes)]
        del count_N
        records = self._divided(self._entries(blocks, both), starts, offsets)
        for number, first in enumerate(starts.tolist()):
            last = int(starts[number + 1]) if number + 1 < len(starts) else self.num_nodes
            part = np.array(records[offsets[number] : offsets[number + 1]])
            release_pages(records)
            values = part["value"] if self.weighted else np.ones(len(part), bool)
            ends = (part["row"] - np.int32(first), part["column"])
            shape = (last - first, self.num_nodes)
            matrix = scipy.sparse.coo_array((values, ends), shape=shape).tocsr()
            matrix.sum_duplicates()
            yield first, last, matrix

    def joined(self, buckets: Iterator[scipy.sparse.csr_array]) -> CompressedEdges:
        """Return the rows of all buckets one after the other."""
        indices = GrowingArray(np.int32, self.directory, self.memory_bytes)
        weight = GrowingArray(np.float32, self.directory, self.memory_bytes)
        counts = [np.zeros(1, np.int64)]
        for rows in buckets:
            counts.append(np.diff(rows.indptr).astype(np.int64))
            indices.append(rows.indices)
            if self.weighted:
                weight.append(rows.data)
        indptr = np.cumsum(np.concatenate(counts))
        return CompressedEdges(indptr, indices.array(), weight.array() if self.weighted else None)

    def _entries(self, blocks: EdgeBlocks, both: bool) -> Iterator[EdgeBlock]:
        for source, target, weight in blocks():
            proper = source != target
            rows, columns = source[proper], target[proper]
            if both:
                rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            yield EdgeBlock(rows, columns, None if weight is None else weight[proper])

    def _divided(
        self, entries: Iterator[EdgeBlock], starts: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return all entries, those of each bucket together and otherwise in their order."""
        fields = [("row", np.int32), ("column", np.int32)]
        kind = np.dtype(fields + [("value", np.float32)] * self.weighted)
        shape = (int(offsets[-1]),)
        if shape[0] * kind.itemsize <= self.memory_bytes:
            records: NDArray[Any] = np.empty(shape, kind)
        else:
            records = scratch_array(shape, self.directory, kind, advice=_ADVICE)
        filled = offsets[:-1].copy()
        for rows, columns, values in entries:
            bucket = np.searchsorted(starts, rows, side="right") - 1
            order = np.argsort(bucket, kind="stable")
            block = np.empty(len(rows), kind)
            block["row"], block["column"] = rows[order], columns[order]
            if values is not None:
                block["value"] = values[order]
            counts = np.bincount(bucket, minlength=len(starts))
            first = 0
            for number in np.flatnonzero(counts):
                count, at = int(counts[number]), int(filled[number])
                records[at : at + count] = block[first : first + count]
                first += count
            filled += counts
            release_pages(records)
        return records


def _bucket_starts(count_N: NDArray[np.int64], bucket_entries: int) -> NDArray[np.int64]:
    """Return the first rows of buckets that have few enough entries, or a single row."""
    indptr = np.append(0, np.cumsum(count_N))
    starts, start = [0], 0
    while True:
        last = int(indptr[start]) + bucket_entries
        start = max(int(np.searchsorted(indptr, last, side="right")) - 1, start + 1)
        if start >= len(count_N):
            return np.array(starts, np.int64)
        starts.append(start)


def _reversed_rows(edges: CompressedEdges, block_edges: int = BLOCK_EDGES) -> EdgeBlocks:
    """Return the blocks of a list of all edges in the other direction."""

    def blocks() -> Iterator[EdgeBlock]:
        assert edges.weight is not None
        for start in range(0, len(edges.indices), block_edges):
            stop = min(start + block_edges, len(edges.indices))
            first = int(np.searchsorted(edges.indptr, start, side="right")) - 1
            last = int(np.searchsorted(edges.indptr, stop, side="left"))
            bounds = np.clip(edges.indptr[first : last + 1], start, stop)
            rows = np.repeat(np.arange(first, last), np.diff(bounds))
            columns, weight = edges.indices[start:stop], edges.weight[start:stop]
            yield EdgeBlock(np.array(columns), rows, np.array(weight))
            release_pages(edges.indices, edges.weight)

    return blocks


def _rows_of(edges: CompressedEdges, first: int, last: int) -> scipy.sparse.csr_array:
    """Return the rows `first` to `last` (excluded), of shape (rows, N)."""
    assert edges.weight is not None
    start, stop = int(edges.indptr[first]), int(edges.indptr[last])
    arrays = (
        np.array(edges.weight[start:stop]),
        np.array(edges.indices[start:stop]),
        edges.indptr[first : last + 1] - start,
    )
    release_pages(edges.indices, edges.weight)
    return scipy.sparse.csr_array(arrays, shape=(last - first, len(edges.indptr) - 1))


def _larger(
    first: scipy.sparse.csr_array, second: scipy.sparse.csr_array
) -> scipy.sparse.csr_array:
    matrix = first.maximum(second)
    matrix.sort_indices()
    return matrix

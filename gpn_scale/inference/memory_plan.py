"""Plans that divide the prediction of all nodes so that it stays within a memory budget."""

from dataclasses import dataclass

from gpn_scale.errors import ConfigError

_RESULT_BYTES = 2 * 4
"""Bytes per node and class: float32 probabilities with and without network."""
_VECTOR_BYTES = 56
"""Bytes per node: factors of the transition matrix in float64 and as tensors, totals, degrees."""
_STATES = 3
"""Number of (N, columns) arrays of the diffusion: restart term, current and next state."""
_LINE_BYTES = 64
"""Bytes of a cache line. Wider rows of the state gain nothing: each costs further lines."""
_BLOCK_ENTRIES = (1 << 22, 1 << 19, 1 << 16)
"""Edges in a row block of the adjacency, in order of preference."""
_CHUNK_BYTES = (4 << 20, 64 << 20)
"""Least and most memory for the evidence of a chunk of nodes; more does not make it faster."""
_SLACK_BYTES = 24 << 20
"""Memory for row blocks that are being copied, and for what libraries load on first use."""
_LINE_WORK, _READ_WORK, _REBUILD_WORK = 2, 1, 6
"""Rough relative times per edge: to fetch a line of the state, read a kept edge, or rebuild it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePlan:
    """Sizes of the pieces that are in memory at once; made by `plan_inference`.

    >>> plan = plan_inference(10_000_000, 200_000_000, num_classes=40, memory_bytes=2 << 30)
    >>> plan.results_on_disk, plan.keep_adjacency
    (True, False)
    """

    columns: int
    """Number of classes that are diffused at a time."""
    block_entries: int
    """Largest number of edges in a row block of the adjacency; a longer row is a block alone."""
    keep_adjacency: bool
    """Whether the blocks are built once and kept, or rebuilt in every step."""
    results_on_disk: bool
    """Whether the (N, C) results are memory-mapped scratch files."""
    chunk_bytes: int
    """Memory for computing the evidence of a chunk of nodes, in bytes."""
    predicted_bytes: int
    """Largest memory in use at any time, in addition to the graph and the model, in bytes."""


def plan_inference(
    num_nodes: int,
    num_edges: int,
    num_classes: int,
    memory_bytes: int,
    *,
    max_degree: int = 0,
    itemsize: int = 4,
    extra_bytes: int = 0,
) -> InferencePlan:
    """Return the cheapest plan for predicting all nodes that fits `memory_bytes`.

    >>> plan = plan_inference(1000, 5000, num_classes=7, memory_bytes=1 << 30)
    >>> plan.columns, plan.results_on_disk
    (7, False)

    Args:
        num_nodes: Number N of nodes.
        num_edges: Number of stored edges.
        num_classes: Number C of classes.
        memory_bytes: The budget, in addition to what the process already holds.
        max_degree: Number of edges of the longest row, which is never cut.
        itemsize: Bytes of a real number in the diffusion.
        extra_bytes: Memory that the caller fills meanwhile, which counts as part of the budget.

    Raises:
        ConfigError: no plan fits; the message names the smallest budget that would suffice.
    """
    sizes = _Sizes(num_nodes, num_edges, num_classes, max_degree, itemsize, extra_bytes)
    plans = _plans(sizes, memory_bytes)
    fitting = [plan for plan in plans if plan.predicted_bytes <= memory_bytes]
    if not fitting:
        smallest = min(plan.predicted_bytes for plan in plans)
        raise ConfigError(
            f"memory_bytes is {memory_bytes:,}, which is too small to predict {num_nodes:,} nodes "
            f"of {num_classes} classes, expected at least {smallest:,}",
            arguments=("memory_bytes",),
        )

    def work(plan: InferencePlan) -> int:
        passes = -(-num_classes // plan.columns)
        lines = -(-plan.columns // sizes.line_columns)
        edge_work = _READ_WORK if plan.keep_adjacency else _REBUILD_WORK
        return passes * (lines * _LINE_WORK + edge_work)

    return min(fitting, key=work)  # among equals, the first: in memory, with larger blocks


def modest_bytes(
    num_nodes: int, num_edges: int, num_classes: int, *, max_degree: int = 0, itemsize: int = 4
) -> int:
    """Return a budget for callers with other data in memory: 1.5 times the smallest one.

    >>> budget = modest_bytes(1000, 5000, num_classes=7)
    >>> plan_inference(1000, 5000, 7, budget).predicted_bytes <= budget
    True
    """
    sizes = _Sizes(num_nodes, num_edges, num_classes, max_degree, itemsize)
    return min(plan.predicted_bytes for plan in _plans(sizes, 0)) * 3 // 2


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of a graph and of its numbers."""

    nodes: int
    edges: int
    classes: int
    max_degree: int
    itemsize: int
    extra_bytes: int = 0

    @property
    def line_columns(self) -> int:
        """Number of columns that a cache line holds."""
        return max(1, _LINE_BYTES // self.itemsize)


def _plans(sizes: _Sizes, memory_bytes: int) -> list[InferencePlan]:
    """Return all plans worth trying, whether they fit or not."""
    line = sizes.line_columns
    return [
        _plan(
            sizes,
            memory_bytes,
            columns=columns,
            entries=max(min(entries, sizes.edges), sizes.max_degree),
            keep=keep,
            on_disk=on_disk,
        )
        for on_disk in (False, True)
        for keep in (True, False)
        # A kept adjacency is passed over once per line; one that is rebuilt is worth wider passes.
        for columns in _widths(min(sizes.classes, line) if keep else sizes.classes, line)
        for entries in _BLOCK_ENTRIES
    ]


def _plan(
    sizes: _Sizes, memory_bytes: int, *, columns: int, entries: int, keep: bool, on_disk: bool
) -> InferencePlan:
    always = sizes.nodes * _VECTOR_BYTES + _SLACK_BYTES + sizes.extra_bytes
    always += 0 if on_disk else sizes.nodes * sizes.classes * _RESULT_BYTES
    states = _STATES * sizes.nodes * columns * sizes.itemsize
    # Kept or not, one more block is being built; offsets are counted with the entries.
    stored = entries + (sizes.edges if keep else 0)
    adjacency = stored * (4 + sizes.itemsize) + 8 * sizes.nodes
    least, most = _CHUNK_BYTES
    chunk = min(max(memory_bytes - always, least), most)
    return InferencePlan(
        columns=columns,
        block_entries=max(entries, 1),
        keep_adjacency=keep,
        results_on_disk=on_disk,
        chunk_bytes=chunk,
        predicted_bytes=always + max(chunk, states + adjacency),
    )


def _widths(most: int, line: int) -> list[int]:
    """Return numbers of columns worth trying, the widest first: `most`, lines, halves of a line."""
    widths = {most, *range(line, most, line)}
    width = line
    while width > 1:
        width //= 2
        widths.add(min(width, most))
    return sorted(widths, reverse=True)

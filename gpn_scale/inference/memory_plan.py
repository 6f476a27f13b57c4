"""How prediction of all nodes is cut up, so that it keeps within a memory budget."""

from dataclasses import dataclass

from gpn_scale.errors import ConfigError

_RESULT_BYTES = 2 * 4
"""Per node and class: float32 probabilities with and without network."""
_VECTOR_BYTES = 56
"""Per node: factors of the transition matrix in float64 and as tensors, totals, degrees."""
_STATES = 3
"""(N, columns) arrays of the diffusion: restart term, current state, next state."""
_LINE_BYTES = 64
"""Bytes of a cache line. Wider rows of the state gain nothing: each costs further lines."""
_BLOCK_ENTRIES = (1 << 22, 1 << 19, 1 << 16)
"""Edges in a row block of the adjacency, in order of preference."""
_CHUNK_BYTES = (4 << 20, 64 << 20)
"""Least and most memory for the evidence of a chunk of nodes; more does not make it faster."""
_SLACK_BYTES = 24 << 20
"""Row blocks on their way between arrays, and what libraries load on their first use."""
_LINE_WORK, _READ_WORK, _REBUILD_WORK = 2, 1, 6
"""Rough relative times per edge: fetching a line of the state, reading a kept edge, making it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InferencePlan:
    """What is held in memory at a time; see `plan`."""

    columns: int
    """Classes that are diffused at a time."""
    block_entries: int
    """Edges in a row block of the adjacency; a longer row is a block by itself."""
    keep_adjacency: bool
    """Whether the blocks are made once and kept, or made anew from the graph in every step."""
    results_on_disk: bool
    """Whether the (N, C) results are memory-mapped scratch files."""
    chunk_bytes: int
    """Memory for computing the evidence of a chunk of nodes."""
    predicted_bytes: int
    """The most memory that is taken at a time, beside the graph and the model."""


def plan(
    num_nodes: int,
    num_edges: int,
    num_classes: int,
    memory_bytes: int,
    *,
    max_degree: int = 0,
    itemsize: int = 4,
) -> InferencePlan:
    """The cheapest way of predicting all nodes that fits `memory_bytes`.

    Args:
        num_nodes: N.
        num_edges: Stored edges.
        num_classes: C.
        memory_bytes: The budget, beside what the process already holds.
        max_degree: Edges of the longest row, which is never cut.
        itemsize: Bytes of a real number in the diffusion.

    Raises:
        ConfigError: no way fits; the message names the smallest budget that would do.
    """
    ways = _ways(num_nodes, num_edges, num_classes, memory_bytes, max_degree, itemsize)
    fitting = [way for way in ways if way.predicted_bytes <= memory_bytes]
    if not fitting:
        smallest = min(way.predicted_bytes for way in ways)
        raise ConfigError(
            f"{memory_bytes:,} bytes are too little memory to predict {num_nodes:,} nodes of "
            f"{num_classes} classes, expected at least {smallest:,}"
        )
    line = _line(itemsize)

    def work(way: InferencePlan) -> int:
        passes = -(-num_classes // way.columns)
        lines = -(-way.columns // line)
        return passes * (lines * _LINE_WORK + (_READ_WORK if way.keep_adjacency else _REBUILD_WORK))

    return min(fitting, key=work)  # of equals the first: in memory, and the larger blocks


def modest_bytes(
    num_nodes: int, num_edges: int, num_classes: int, *, max_degree: int = 0, itemsize: int = 4
) -> int:
    """A budget for those who have other things in memory: half as much again as the smallest."""
    ways = _ways(num_nodes, num_edges, num_classes, 0, max_degree, itemsize)
    return min(way.predicted_bytes for way in ways) * 3 // 2


def _line(itemsize: int) -> int:
    """Columns that a cache line holds."""
    return max(1, _LINE_BYTES // itemsize)


def _ways(
    num_nodes: int,
    num_edges: int,
    num_classes: int,
    memory_bytes: int,
    max_degree: int,
    itemsize: int,
) -> list[InferencePlan]:
    """All ways worth trying, whether they fit or not."""
    line = _line(itemsize)
    return [
        _way(
            nodes=num_nodes,
            edges=num_edges,
            classes=num_classes,
            memory_bytes=memory_bytes,
            itemsize=itemsize,
            columns=columns,
            entries=max(min(entries, num_edges), max_degree),
            keep=keep,
            on_disk=on_disk,
        )
        for on_disk in (False, True)
        for keep in (True, False)
        # The kept adjacency is passed over once per line; made anew, it is worth wider passes.
        for columns in _widths(min(num_classes, line) if keep else num_classes, line)
        for entries in _BLOCK_ENTRIES
    ]


def _way(
    *,
    nodes: int,
    edges: int,
    classes: int,
    memory_bytes: int,
    itemsize: int,
    columns: int,
    entries: int,
    keep: bool,
    on_disk: bool,
) -> InferencePlan:
    always = nodes * _VECTOR_BYTES + _SLACK_BYTES
    always += 0 if on_disk else nodes * classes * _RESULT_BYTES
    states = _STATES * nodes * columns * itemsize
    # Kept or not, one block more is on its way; offsets are counted with the entries.
    adjacency = (entries + (edges if keep else 0)) * (4 + itemsize) + 8 * nodes
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
    """Numbers of columns worth trying, the widest first: `most`, whole lines, halves of a line."""
    widths = {most, *range(line, most, line)}
    width = line
    while width > 1:
        width //= 2
        widths.add(min(width, most))
    return sorted(widths, reverse=True)

"""A random attributed graph with known nodes about which a model should be uncertain.

Shapes: N nodes, M drawn edges, F feature columns, K blocks (known classes, then unseen ones).
"""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.compressed_edges import MAX_NODES
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.errors import ConfigError
from gpn_scale.memory import physical_bytes

NAME = "synthetic"

_FOREIGN_DISTANCE = 3.0  # from the centre of all classes, in units of `separation`
_FOREIGN_SPREAD = 2.0  # in noise units
_SMALLEST_CLASS = 0.5  # relative to the largest
_NODES_PER_BLOCK = 20
_CHUNK_ROWS = 1 << 16
_CHUNK_EDGES = 1 << 20
_BYTES_PER_EDGE, _BYTES_PER_FEATURE = 50, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """Parameters of `synthetic_graph`; the dataset name `synthetic:field=value,...` sets them.

    >>> SyntheticConfig(nodes=200, classes=3).features
    32
    """

    nodes: int = 10_000
    """Number of nodes, at least 20 for each known and unseen class."""
    classes: int = 6
    """Number of known classes, at least 2; the largest has twice the nodes of the smallest."""
    unseen_classes: int = 1
    """Number of classes whose nodes have no label and the mark `unseen_class`; may be 0."""
    features: int = 32
    """Number of feature columns, at least 1."""
    degree: float = 8.0
    """Mean number of neighbours before repeated edges are merged; 2 to half the mean class size."""
    homophily: float = 0.85
    """Fraction of edges within a class, in [0, 1]."""
    degree_exponent: float = 2.5
    """Exponent of the power law of degrees, above 2.01; smaller means larger hubs."""
    separation: float = 3.0
    """Typical distance between two class means, in standard deviations of the noise."""
    isolated: float = 0.01
    """Fraction of nodes that have a known class but no edges; they have the mark `isolated`."""
    foreign: float = 0.01
    """Fraction of known-class nodes with features far from every class; mark `foreign_features`."""
    unseen: float = 0.1
    """Fraction of nodes in unseen classes; ignored if there are no such classes."""
    rng_seed: int = 1
    """Seed of the draw, at least 0; the same configuration gives the same graph."""

    def __post_init__(self) -> None:
        blocks = self.classes + self.unseen_classes
        self._check("classes", 2, MAX_NODES)
        self._check("unseen_classes", 0, MAX_NODES)
        self._check("nodes", _NODES_PER_BLOCK * blocks, MAX_NODES, f" for {blocks} classes")
        self._check("features", 1, MAX_NODES)
        self._check("degree", 2, self.nodes / (2 * blocks), " (half the mean class size)")
        self._check("homophily", 0, 1)
        self._check("degree_exponent", 2.01, 100)
        self._check("separation", 0, 1e6)
        for name in ("isolated", "foreign", "unseen"):
            self._check(name, 0, 0.5)
        self._check("rng_seed", 0, 2**63 - 1)
        unknown = self.isolated + self.foreign + self.unseen
        if unknown > 0.5:
            raise _error(
                f"isolated, foreign and unseen must add up to at most 0.5, got {unknown:g}"
            )

    def _check(self, name: str, least: float, most: float, why: str = "") -> None:
        value = getattr(self, name)
        if not least <= value <= most:
            raise _error(f"{name} must lie in [{least:.10g}, {most:.10g}]{why}, got {value!r}")


def parse_synthetic(text: str) -> SyntheticConfig:
    """Return the configuration in a name like `synthetic` or `synthetic:nodes=20000,classes=7`.

    >>> parse_synthetic("synthetic:nodes=20000").nodes
    20000

    Raises:
        ConfigError: a key is unknown or repeated, or a value is not a number in its range.
    """
    name, _, assignments = text.partition(":")
    if name != NAME:
        raise _error(f"expected {NAME!r} or '{NAME}:key=value,...', got {text!r}")
    defaults = {field.name: field.default for field in fields(SyntheticConfig)}
    chosen: dict[str, int | float] = {}
    for assignment in filter(None, assignments.split(",")):
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise _error(f"expected key=value, got {assignment!r}")
        if key not in defaults:
            hint = "".join(
                f"did you mean {near!r}? " for near in get_close_matches(key, defaults, 1)
            )
            raise _error(f"unknown key {key!r}; {hint}keys are {', '.join(defaults)}")
        if key in chosen:
            raise _error(f"{key} is given twice, expected it once")
        whole = isinstance(defaults[key], int)
        try:
            chosen[key] = int(value) if whole else float(value)
        except ValueError:
            kind = "a whole number" if whole else "a number"
            raise _error(f"{key} must be {kind}, got {value!r}") from None
    return SyntheticConfig(**chosen)  # type: ignore[arg-type] # each value has its field's type


def _error(message: str) -> ConfigError:
    return ConfigError(f"{NAME}: {message}", arguments=("dataset",))


def _check_size(config: SyntheticConfig) -> None:
    """Refuse a graph that this machine could not hold; its size is a few digits in a file."""
    num_bytes = _BYTES_PER_FEATURE * config.nodes * config.features
    num_bytes += _BYTES_PER_EDGE * int(config.nodes * config.degree / 2)
    if num_bytes > (present := physical_bytes()):
        raise _error(
            f"a graph of {config.nodes:,} nodes with {config.features:,} features and "
            f"{config.degree:,g} neighbours takes about {num_bytes / 1e9:,.1f} GB, but this "
            f"machine has {present / 1e9:,.1f} GB: lower nodes, features or degree"
        )


def synthetic_graph(config: SyntheticConfig) -> Graph:
    """Return a homophilic graph from a degree-corrected block model (Karrer & Newman, 2011).

    Each known or unseen class is a block. Degrees follow a power law, cut where two hubs of a block
    would expect more than one edge between them; every node without the mark `isolated` has a
    neighbour. Features are the mean of the class plus standard normal noise.

    Marks are disjoint; empty ones are left out. Nodes of `unseen_class` form ordinary blocks but
    have no labels. Nodes with `foreign_features` keep their edges and labels, `isolated` nodes
    their features and labels. The graph has no split.

    Time and memory are linear in nodes and edges: about 50 bytes per edge and 4 F per node.

    >>> graph = synthetic_graph(SyntheticConfig(nodes=200, classes=3))
    >>> {mark: len(nodes) for mark, nodes in graph.marks.items()}
    {'isolated': 2, 'foreign_features': 2, 'unseen_class': 20}

    Raises:
        ConfigError: the machine has not enough memory for the graph.
    """
    _check_size(config)
    node_rng, edge_rng, feature_rng = (
        np.random.default_rng(child) for child in np.random.SeedSequence(config.rng_seed).spawn(3)
    )
    block_N = _draw_blocks(config, node_rng)
    isolated, foreign = _draw_marked(config, block_N, node_rng)
    source, target = _draw_edges(config, block_N, isolated, edge_rng)
    marks = {"isolated": isolated, "foreign_features": foreign}
    marks["unseen_class"] = np.flatnonzero(block_N >= config.classes)
    return build_graph(
        source,
        target,
        name=NAME,
        num_nodes=config.nodes,
        features=_draw_features(config, block_N, foreign, feature_rng),
        labels=np.where(block_N < config.classes, block_N, MISSING_LABEL),
        num_classes=config.classes,
        marks={name: ids for name, ids in marks.items() if len(ids)},
    )


def _draw_blocks(config: SyntheticConfig, rng: Generator) -> NDArray[np.int32]:
    """Return the block of each node in random order; the configuration fixes the block sizes."""
    known_fraction = np.linspace(1.0, _SMALLEST_CLASS, config.classes)
    unseen = config.unseen if config.unseen_classes else 0.0
    known_fraction *= (1 - unseen) / known_fraction.sum()
    unseen_fraction = np.full(config.unseen_classes, unseen) / max(config.unseen_classes, 1)
    ends = np.cumsum(np.append(known_fraction, unseen_fraction)) * config.nodes
    sizes: NDArray[np.int64] = np.diff(np.rint(ends), prepend=0.0).astype(np.int64)
    block_N = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    rng.shuffle(block_N)
    return block_N


def _draw_marked(
    config: SyntheticConfig, block_N: NDArray[np.int32], rng: Generator
) -> tuple[NodeIds, NodeIds]:
    """Draw isolated and foreign nodes of known classes: disjoint and sorted."""
    num_isolated = round(config.isolated * config.nodes)
    num_foreign = round(config.foreign * config.nodes)
    known = np.flatnonzero(block_N < config.classes)
    drawn = rng.choice(known, num_isolated + num_foreign, replace=False)
    return np.sort(drawn[:num_isolated]), np.sort(drawn[num_isolated:])


class _Line(NamedTuple):
    """Nodes as intervals of a line, block by block; `ptr` and `block_ptr` say where they begin."""

    node: NDArray[np.int32]
    block: NDArray[np.int32]
    ptr: NDArray[np.float64]
    block_ptr: NDArray[np.float64]

    def places(self, at: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of the interval that holds each of the points `at`."""
        order = np.argsort(at)  # sorted searches stay in the cache, which is several times faster
        place = np.empty(len(at), np.int64)
        place[order] = np.searchsorted(self.ptr, at[order], side="right") - 1
        place %= len(self.node)  # rounding or a block of one node may hit the very end: place 0
        return place


def _lay_line(
    config: SyntheticConfig, block_N: NDArray[np.int32], isolated: NodeIds, rng: Generator
) -> _Line:
    connected = np.delete(np.arange(config.nodes, dtype=np.int32), isolated)
    node = connected[np.argsort(block_N[connected], kind="stable")]
    exponent, num_blocks = config.degree_exponent, int(block_N.max()) + 1
    mean_width = (exponent - 1) / (exponent - 2)
    # Between two nodes of this width in one block, the expected number of edges is about one.
    widest = mean_width * np.sqrt(config.nodes / (num_blocks * config.degree))
    width = np.minimum((1 - rng.random(len(node))) ** (-1 / (exponent - 1)), widest)
    ptr = np.append(0.0, np.cumsum(width))
    block = block_N[node]
    return _Line(node, block, ptr, ptr[np.searchsorted(block, np.arange(num_blocks + 1))])


def _draw_edges(
    config: SyntheticConfig, block_N: NDArray[np.int32], isolated: NodeIds, rng: Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draw the edges: one from every connected node, the others from nodes by their width."""
    line = _lay_line(config, block_N, isolated, rng)
    num_edges = round(config.nodes * config.degree / 2)
    source, target = np.empty(num_edges, np.int32), np.empty(num_edges, np.int32)
    for start in range(0, num_edges, _CHUNK_EDGES):
        stop = min(start + _CHUNK_EDGES, num_edges)
        by_width = line.places(rng.random(stop - start) * line.ptr[-1])
        in_turn = np.arange(start, stop)
        place = np.where(in_turn < len(line.node), in_turn, by_width)
        source[start:stop] = line.node[place]
        target[start:stop] = line.node[_draw_targets(line, place, config.homophily, rng)]
    return source, target


def _draw_targets(
    line: _Line, place: NDArray[np.int64], homophily: float, rng: Generator
) -> NDArray[np.int64]:
    """Draw the targets of edges by width: in the same block except the source, or outside it."""
    block = line.block[place]
    block_start, block_end = line.block_ptr[block], line.block_ptr[block + 1]
    within = rng.random(len(place)) < homophily
    start = np.where(within, block_start, 0.0)
    end = np.where(within, block_end, line.ptr[-1])
    gap_start = np.where(within, line.ptr[place], block_start)
    gap = np.where(within, line.ptr[place + 1], block_end) - gap_start
    at = start + rng.random(len(place)) * (end - start - gap)
    at += np.where(at >= gap_start, gap, 0.0)
    return line.places(at)


def _draw_features(
    config: SyntheticConfig, block_N: NDArray[np.int32], foreign: NodeIds, rng: Generator
) -> NDArray[np.float32]:
    """Draw features: class mean plus noise; foreign nodes have a far mean and wider noise."""
    num_blocks = config.classes + config.unseen_classes
    direction = rng.standard_normal((num_blocks + 1, config.features), dtype=np.float32)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    mean = direction * np.float32(config.separation / np.sqrt(2))
    far = direction[-1] * np.float32(_FOREIGN_DISTANCE * max(config.separation, 1.0))
    features = np.empty((config.nodes, config.features), np.float32)
    for start in range(0, config.nodes, _CHUNK_ROWS):
        rows = features[start : start + _CHUNK_ROWS]
        rng.standard_normal(dtype=np.float32, out=rows)
        rows += mean[block_N[start : start + _CHUNK_ROWS]]
    noise = rng.standard_normal((len(foreign), config.features), dtype=np.float32)
    features[foreign] = far + np.float32(_FOREIGN_SPREAD) * noise
    return features

"""A random attributed graph with known answers: which nodes a model should be unsure about.

Shapes: N nodes, M drawn edges, F feature columns, K blocks (known classes, then unseen ones).
"""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gpn_scale.data.building import MAX_NODES, build_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.errors import ConfigError

NAME = "synthetic"

_FOREIGN_DISTANCE = 3.0  # from the centre of all classes, in units of `separation`
_FOREIGN_SPREAD = 2.0  # in noise units
_SMALLEST_CLASS = 0.5  # relative to the largest
_NODES_PER_BLOCK = 20
_CHUNK_ROWS = 1 << 16
_CHUNK_EDGES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """What `synthetic_graph` draws; each field can be set as `synthetic:field=value,...`."""

    nodes: int = 10_000
    """N; at least 20 for each known and unseen class."""
    classes: int = 6
    """Known classes, at least 2; the largest has twice the nodes of the smallest."""
    unseen_classes: int = 1
    """Classes whose nodes carry no label and stand in the mark `unseen_class`; may be 0."""
    features: int = 32
    """Feature columns, at least 1."""
    degree: float = 8.0
    """Mean number of neighbours, from 2 to half the mean class size; met but for repeated edges."""
    homophily: float = 0.85
    """Share of edges within a class, in [0, 1]."""
    degree_exponent: float = 2.5
    """Exponent of the power law of degrees, above 2.01; smaller means larger hubs."""
    separation: float = 3.0
    """Typical distance between two class means, in standard deviations of the noise."""
    isolated: float = 0.01
    """Share of nodes without edges, of known classes; the mark `isolated`."""
    foreign: float = 0.01
    """Share of nodes, of known classes, with features far from all; `foreign_features`."""
    unseen: float = 0.1
    """Share of nodes in unseen classes; without meaning if there are none."""
    rng_seed: int = 1
    """The same configuration gives the same graph; at least 0."""

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
        shares = self.isolated + self.foreign + self.unseen
        if shares > 0.5:
            raise ConfigError(
                f"{NAME}: isolated, foreign and unseen must add up to at most 0.5, got {shares:g}"
            )

    def _check(self, name: str, least: float, most: float, why: str = "") -> None:
        value = getattr(self, name)
        if not least <= value <= most:
            raise ConfigError(
                f"{NAME}: {name} must lie in [{least:.10g}, {most:.10g}]{why}, got {value!r}"
            )


def parse_synthetic(text: str) -> SyntheticConfig:
    """The configuration that `synthetic` or `synthetic:nodes=20000,classes=7` stands for.

    Raises:
        ConfigError: a key is unknown or repeated, or a value is not a number in its range.
    """
    name, _, assignments = text.partition(":")
    if name != NAME:
        raise ConfigError(f"expected {NAME!r} or '{NAME}:key=value,...', got {text!r}")
    known = {field.name: field.default for field in fields(SyntheticConfig)}
    chosen: dict[str, int | float] = {}
    for assignment in filter(None, assignments.split(",")):
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals:
            raise ConfigError(f"{NAME}: expected key=value, got {assignment!r}")
        if key not in known:
            hint = "".join(f"did you mean {near!r}? " for near in get_close_matches(key, known, 1))
            raise ConfigError(f"{NAME}: unknown key {key!r}; {hint}known keys: {', '.join(known)}")
        if key in chosen:
            raise ConfigError(f"{NAME}: {key} is given twice, expected it once")
        whole = isinstance(known[key], int)
        try:
            chosen[key] = int(value) if whole else float(value)
        except ValueError:
            kind = "a whole number" if whole else "a number"
            raise ConfigError(f"{NAME}: {key} must be {kind}, got {value!r}") from None
    return SyntheticConfig(**chosen)  # type: ignore[arg-type] # each value has its field's kind


def synthetic_graph(config: SyntheticConfig) -> Graph:
    """A homophilic graph from a degree-corrected block model (Karrer & Newman, 2011).

    One block per known or unseen class. Degrees follow a power law cut where two hubs would meet
    more than once; every node outside the mark `isolated` has a neighbour. Features are the mean
    of the class plus standard normal noise. Marks are disjoint, an empty one is absent: nodes of
    `unseen_class` are a block like the others, those with `foreign_features` keep their edges and
    label, `isolated` ones keep ordinary features and label. No split is set.

    Cost: time and memory linear in nodes and edges; about 50 bytes per edge and 4 F per node.
    """
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
    """Block of each node; sizes are fixed by the configuration, places are random."""
    known_share = np.linspace(1.0, _SMALLEST_CLASS, config.classes)
    unseen = config.unseen if config.unseen_classes else 0.0
    known_share *= (1 - unseen) / known_share.sum()
    unseen_share = np.full(config.unseen_classes, unseen) / max(config.unseen_classes, 1)
    ends = np.cumsum(np.append(known_share, unseen_share)) * config.nodes
    sizes: NDArray[np.int64] = np.diff(np.rint(ends), prepend=0.0).astype(np.int64)
    block_N = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    rng.shuffle(block_N)
    return block_N


def _draw_marked(
    config: SyntheticConfig, block_N: NDArray[np.int32], rng: Generator
) -> tuple[NodeIds, NodeIds]:
    """Isolated and foreign nodes: disjoint, sorted, of known classes."""
    num_isolated = round(config.isolated * config.nodes)
    num_foreign = round(config.foreign * config.nodes)
    known = np.flatnonzero(block_N < config.classes)
    drawn = rng.choice(known, num_isolated + num_foreign, replace=False)
    return np.sort(drawn[:num_isolated]), np.sort(drawn[num_isolated:])


class _Line(NamedTuple):
    """Nodes laid on a line, block by block; the pointers say where places and blocks begin."""

    node: NDArray[np.int32]
    block: NDArray[np.int32]
    ptr: NDArray[np.float64]
    block_ptr: NDArray[np.float64]

    def places(self, at: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places that hold the points `at`."""
        order = np.argsort(at)  # searches in order stay in the cache: several times faster
        found = np.empty(len(at), np.int64)
        found[order] = np.searchsorted(self.ptr, at[order], side="right") - 1
        found %= len(self.node)  # the very end, met by rounding or after a block of one, is place 0
        return found


def _lay_line(
    config: SyntheticConfig, block_N: NDArray[np.int32], isolated: NodeIds, rng: Generator
) -> _Line:
    connected = np.delete(np.arange(config.nodes, dtype=np.int32), isolated)
    node = connected[np.argsort(block_N[connected], kind="stable")]
    exponent, num_blocks = config.degree_exponent, int(block_N.max()) + 1
    mean_width = (exponent - 1) / (exponent - 2)
    # Two nodes of this width in one block expect about one edge between them.
    widest = mean_width * np.sqrt(config.nodes / (num_blocks * config.degree))
    width = np.minimum((1 - rng.random(len(node))) ** (-1 / (exponent - 1)), widest)
    ptr = np.append(0.0, np.cumsum(width))
    block = block_N[node]
    return _Line(node, block, ptr, ptr[np.searchsorted(block, np.arange(num_blocks + 1))])


def _draw_edges(
    config: SyntheticConfig, block_N: NDArray[np.int32], isolated: NodeIds, rng: Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Edge list; one edge starts at every connected node, the others at nodes by their width."""
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
    """Other ends of edges: by width in the block without the place, or outside the block."""
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
    """Class mean plus noise, drawn in place; foreign nodes have a far mean and wider noise."""
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

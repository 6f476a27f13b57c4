"""`GraphSummary`: size, connections and labels of a graph, before anything is trained on it.

Large graphs are read in blocks, so that a memory-mapped one is never copied as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpn_scale.data.class_counts import ClassCount, class_counts
from gpn_scale.data.edge_blocks import component_sizes, degrees
from gpn_scale.data.graph import MISSING_LABEL, Graph
from gpn_scale.data.homophily import Homophily

_WIDTH = 16
_NAMED_CLASSES = 8
_NAMED_COLUMNS = 5
_SHORT_CLASSES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Numbers of edges at the nodes of a graph.

    >>> Degrees(median=2, ninety_percent=7, largest=120).largest
    120
    """

    median: int
    ninety_percent: int
    """The degree that 90 % of the nodes do not exceed."""
    largest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSummary:
    """Size, connections and labels of a graph, and whether its network can help.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], name="path", num_nodes=4, labels=[0, 1, 0, -1])
    >>> summary = GraphSummary.of(graph, facts={"edges_listed": 3, "duplicates": 1})
    >>> print(summary.text())
    path
    nodes           4
    edges           2, without direction, without weight
    as listed       3; 1 duplicate merged
    features        0
    components      2, the largest with 75 % of the nodes
    isolated nodes  1
    degrees         median 1, 90 % up to 2, largest 2
    labels          3 of 4 nodes, 2 classes
      class 0       2
      class 1       1
    network         Only 2 edges join two labelled nodes: too few to tell if the network helps.
    >>> summary.to_dict()["isolated_nodes"]
    1
    """

    name: str
    nodes: int
    edges: int
    """Edges without repetition; an undirected one counts once."""
    stored_edges: int
    """Edges as the graph stores them; an undirected one counts twice."""
    directed: bool
    weighted: bool
    features: int
    components: int
    """Connected components; directions do not count."""
    largest_component: int
    """Nodes of the largest component."""
    isolated_nodes: int
    """Nodes without an edge."""
    degrees: Degrees
    classes: tuple[ClassCount, ...]
    unlabelled: int
    has_split: bool
    homophily: Homophily
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the import, by name; see `of`."""

    @classmethod
    def of(cls, graph: Graph, facts: Mapping[str, Any] | None = None) -> "GraphSummary":
        """Return the summary of a graph.

        Args:
            graph: Any graph, memory-mapped or not.
            facts: What an import has done. Each of these may be absent: `edges_listed` (rows of
                the edge table), `duplicates`, `self_loops` and `unknown_ids` (rows dropped or
                merged for this reason), `nodes_added` (unknown ids that became nodes),
                `nodes_gone` (nodes of an earlier graph that only keep their places), `weight`
                (name of the column of weights) and `missing` (missing values by column). Others
                are kept and not printed.
        """
        degree, sizes = degrees(graph), component_sizes(graph)
        stored = graph.num_edges
        return cls(
            name=graph.name,
            nodes=graph.num_nodes,
            edges=stored if graph.directed else stored // 2,
            stored_edges=stored,
            directed=graph.directed,
            weighted=graph.edge_weight is not None,
            features=graph.num_features,
            components=len(sizes),
            largest_component=int(sizes.max(initial=0)),
            isolated_nodes=int((degree == 0).sum()),
            degrees=_degree_facts(degree),
            classes=class_counts(graph),
            unlabelled=int((graph.labels == MISSING_LABEL).sum()),
            has_split=graph.split is not None,
            homophily=Homophily.of(graph),
            facts=dict(facts or {}),
        )

    def text(self) -> str:
        """Return the summary as aligned lines, about 25 at most."""
        degrees = self.degrees
        rows = [
            ("nodes", self._node_text()),
            ("edges", f"{self.edges:,}, {self._kind_of_edges()}"),
            ("as listed", self._listed()),
            ("features", f"{self.features:,}"),
            *self._missing_rows(),
            ("components", self._component_text()),
            ("isolated nodes", f"{self.isolated_nodes:,}"),
            (
                "degrees",
                f"median {degrees.median:,}, 90 % up to {degrees.ninety_percent:,}, largest "
                f"{degrees.largest:,}",
            ),
            ("labels", self._label_text()),
            *self._class_rows(),
            ("network", self.homophily.advice),
        ]
        lines = [f"{title:<{_WIDTH}}{content}" for title, content in rows if content]
        return "\n".join([self.name, *lines])

    def short_text(self) -> str:
        """Return four lines: size, components, labels and network.

        >>> from gpn_scale import build_graph
        >>> graph = build_graph([0, 1], [1, 2], name="path", num_nodes=4, labels=[0, 1, 0, -1])
        >>> print(GraphSummary.of(graph).short_text())
        path: 4 nodes, 2 edges, 0 features
          components  2, the largest with 75 % of the nodes; 1 isolated node
          labels      3 of 4 nodes, 2 classes (class 0: 2, class 1: 1)
          network     Only 2 edges join two labelled nodes: too few to tell if the network helps.
        """
        isolated = _counted(self.isolated_nodes, "isolated node")
        named = [f"{each.name}: {each.labelled:,}" for each in _largest(self.classes)]
        named = [*named[:_SHORT_CLASSES], *(["..."] if len(named) > _SHORT_CLASSES else [])]
        classes = f" ({', '.join(named)})" if named else ""
        return (
            f"{self.name}: {_counted(self.nodes, 'node')}, {_counted(self.edges, 'edge')}, "
            f"{_counted(self.features, 'feature')}\n"
            f"  components  {self._component_text()}; {isolated}\n"
            f"  labels      {self._label_text()}{classes}\n"
            f"  network     {self.homophily.advice}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers and texts that JSON can hold."""
        return {
            "nodes": self.nodes,
            "edges": self.edges,
            "stored_edges": self.stored_edges,
            "directed": self.directed,
            "weighted": self.weighted,
            "features": self.features,
            "components": self.components,
            "largest_component": self.largest_component,
            "isolated_nodes": self.isolated_nodes,
            "degrees": {
                "median": self.degrees.median,
                "ninety_percent": self.degrees.ninety_percent,
                "largest": self.degrees.largest,
            },
            "classes": [each.to_dict() for each in self.classes],
            "unlabelled": self.unlabelled,
            "has_split": self.has_split,
            "homophily": self.homophily.to_dict(),
            "facts": dict(self.facts),
        }

    def _node_text(self) -> str:
        gone = self.facts.get("nodes_gone")
        if not gone:
            return f"{self.nodes:,}"
        places = "is gone and keeps its place" if gone == 1 else "are gone and keep their places"
        return f"{self.nodes:,}, of which {gone:,} {places}"

    def _kind_of_edges(self) -> str:
        direction = "with direction" if self.directed else "without direction"
        column = self.facts.get("weight")
        by_name = f"with weight (column {column!r})" if isinstance(column, str) else "with weight"
        return f"{direction}, {by_name if self.weighted else 'without weight'}"

    def _listed(self) -> str:
        """Return how the listed edges became the edges of the graph, or an empty text."""
        facts, parts = self.facts, []
        for key, one, done in (
            ("duplicates", "duplicate", "merged"),
            ("self_loops", "self-loop", "dropped"),
            ("unknown_ids", "edge to an unknown id", "dropped"),
            ("nodes_added", "unknown id", "added to the nodes"),
        ):
            if facts.get(key):
                parts.append(f"{_counted(facts[key], one)} {done}")
        listed = f"{facts['edges_listed']:,}" if facts.get("edges_listed") is not None else ""
        return "; ".join(part for part in (listed, ", ".join(parts)) if part)

    def _missing_rows(self) -> list[tuple[str, str]]:
        missing: Mapping[str, int] = self.facts.get("missing") or {}
        named = [item for item in missing.items() if item[1]]
        ordered = sorted(named, key=lambda item: -item[1])
        rows = [
            (f"  {_fitted(name)}", f"{count:,} missing ({_percent(count, self.nodes)})")
            for name, count in ordered[:_NAMED_COLUMNS]
        ]
        rest = len(ordered) - len(rows)
        return [
            *rows,
            *([("  ...", f"{_counted(rest, 'more column')} with missing values")] * (rest > 0)),
        ]

    def _component_text(self) -> str:
        share = _percent(self.largest_component, self.nodes)
        return f"{self.components:,}, the largest with {share} of the nodes"

    def _label_text(self) -> str:
        known = self.nodes - self.unlabelled
        return (
            f"{known:,} of {_counted(self.nodes, 'node')}, "
            f"{_counted(len(self.classes), 'class', 'classes')}"
        )

    def _class_rows(self) -> list[tuple[str, str]]:
        """Return the largest classes and, of more than a few, the smallest."""
        ordered = _largest(self.classes)
        rest = len(ordered) - _NAMED_CLASSES
        shown = ordered if rest <= 0 else [*ordered[: _NAMED_CLASSES - 1], ordered[-1]]
        rows = [(f"  {_fitted(each.name)}", self._class_text(each)) for each in shown]
        if rest > 0:
            rows.insert(-1, ("  ...", f"{_counted(rest, 'more class', 'more classes')}"))
        return rows

    def _class_text(self, count: ClassCount) -> str:
        if not self.has_split:
            return f"{count.labelled:,}"
        return (
            f"{count.labelled:,}: {count.train:,} for training, {count.val:,} for validation, "
            f"{count.test:,} for testing"
        )


def _degree_facts(degree: np.ndarray[Any, np.dtype[np.int64]]) -> Degrees:
    if len(degree) == 0:
        return Degrees(median=0, ninety_percent=0, largest=0)
    median, ninety = np.quantile(degree, [0.5, 0.9], method="inverted_cdf")
    return Degrees(median=int(median), ninety_percent=int(ninety), largest=int(degree.max()))


def _largest(classes: Sequence[ClassCount]) -> list[ClassCount]:
    return sorted(classes, key=lambda each: -each.labelled)


def _counted(count: int, one: str, many: str = "") -> str:
    if count == 1:
        return f"1 {one}"
    first, _, rest = one.partition(" to ")
    return f"{count:,} {many or first + 's' + (f' to {rest}' if rest else '')}"


def _percent(part: int, whole: int) -> str:
    """Return a proportion; 0 % and 100 % are none and all."""
    rounded = f"{100 * part / whole:.0f} %" if whole else "0 %"
    if rounded == "0 %" and part:
        return "less than 1 %"
    return "over 99 %" if rounded == "100 %" and part < whole else rounded


def _fitted(name: str) -> str:
    """Return a name that leaves two blanks before the next column."""
    width = _WIDTH - 4
    return name if len(name) <= width else f"{name[: width - 3]}..."

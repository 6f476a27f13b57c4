"""`ImportFacts`: what an import did to the tables on the way to the graph."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFacts:
    r"""Counts of what was listed, merged, dropped and added.

    >>> facts = ImportFacts(nodes_listed=3, edges_listed=4, edges=2, repeated_edges=2)
    >>> print("\n".join(facts.lines))
    nodes  3
    edges  2, undirected, without weights; 4 listed, 2 repeated ones merged
    """

    nodes_listed: int
    """Number of rows of the table of nodes."""
    edges_listed: int
    """Number of rows of the table of edges."""
    edges: int
    """Number of edges of the graph; an undirected edge counts once."""
    nodes_added: int = 0
    """Number of nodes that only the table of edges names and that were added."""
    edges_dropped: int = 0
    """Number of edges that were dropped because an end is unknown or missing."""
    unknown_ids: int = 0
    """Number of distinct ids in the table of edges that the table of nodes does not have."""
    self_loops: int = 0
    """Number of edges that were dropped because they join a node to itself."""
    repeated_edges: int = 0
    """Number of edges that were merged into another row's edge; in an undirected graph also those
    that are listed in the other direction."""
    directed: bool = False
    weight: str | None = None
    """Column of the weights; None without."""
    missing_values: Mapping[str, int] = field(default_factory=dict)
    """Number of missing values of each raw column that has any."""
    notes: tuple[str, ...] = ()
    """What else is worth knowing, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        return asdict(self) | {"notes": list(self.notes)}

    @property
    def lines(self) -> list[str]:
        """The facts in aligned lines, without the notes."""
        added = f"; {self.nodes_added:,} of them added, which only edges name"
        lines = [
            f"nodes  {self.nodes_listed + self.nodes_added:,}{added if self.nodes_added else ''}",
            f"edges  {', '.join(self._edges())}",
        ]
        if self.missing_values:
            counts = [f"{name} {count:,}" for name, count in self.missing_values.items()]
            lines.append(f"missing values  {', '.join(counts)}")
        return lines

    def _edges(self) -> list[str]:
        weighted = "without weights" if self.weight is None else f"weights from {self.weight!r}"
        direction = "directed" if self.directed else "undirected"
        counts = [
            (self.self_loops, "self-loops dropped"),
            (self.repeated_edges, "repeated ones merged"),
            (self.edges_dropped, "with an unknown end dropped"),
        ]
        done = [f"{count:,} {text}" for count, text in counts if count]
        return [f"{self.edges:,}", direction, f"{weighted}; {self.edges_listed:,} listed", *done]

"""`ImportFacts`: counts of what an import did to the tables."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFacts:
    """Numbers of rows that an import listed, merged, dropped and added, for `GraphSummary`.

    >>> facts = ImportFacts(nodes_listed=3, edges_listed=4, duplicates=2)
    >>> facts.to_dict()["duplicates"]
    2
    """

    nodes_listed: int
    """Number of rows of the table of nodes."""
    edges_listed: int
    """Number of rows of the table of edges."""
    nodes_added: int = 0
    """Number of nodes that only the table of edges names and that were added."""
    nodes_gone: int = 0
    """Number of nodes of an earlier graph that the tables no longer have and that keep their
    places, without edges, label and values."""
    unknown_ids: int = 0
    """Number of edges that were dropped because an end is unknown or missing."""
    self_loops: int = 0
    """Number of edges that were dropped because they join a node to itself."""
    duplicates: int = 0
    """Number of edges that were merged into that of another row; in an undirected graph also those
    that are listed in the other direction."""
    weight: str | None = None
    """Column of the weights; None without."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Number of missing values of each raw column that has any."""
    notes: tuple[str, ...] = ()
    """Further notes, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        return asdict(self) | {"notes": list(self.notes)}

"""Homophily: whether neighbours share a class more often than by chance, so the network helps."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpn_scale.data.edge_blocks import edge_blocks
from gpn_scale.data.graph import MISSING_LABEL, Graph

LEAST_PAIRS = 30
"""Minimum number of edges between labelled nodes for advice: 1 of 30 is already 3 points."""
CLEAR_GAIN = 0.1
"""Excess over chance above which the network will help; below it, it may help a little."""
_DEVIATIONS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Homophily:
    """How often the ends of an edge share a class, over the edges between two labelled nodes.

    >>> Homophily(pairs=200, same=162, chance=0.22).advice
    'Neighbours share a class 81 % of the time, 22 % by chance: the network will help.'
    >>> Homophily(pairs=12, same=9, chance=0.5).advice
    'Only 12 edges join two labelled nodes: too few to tell if the network helps.'
    """

    pairs: int
    """Edges between two labelled nodes."""
    same: int
    """Those between two nodes of one class."""
    chance: float
    """The fraction that random edges between nodes of the same degrees would have; NaN for none."""

    @classmethod
    def of(cls, graph: Graph) -> "Homophily":
        """Count the edges of a graph in blocks.

        By chance, both ends of an edge are drawn independently, each class as often as it is at
        the end of an edge.

        >>> from gpn_scale import build_graph
        >>> Homophily.of(build_graph([0, 1, 2], [1, 2, 3], labels=[0, 0, 1, -1]))
        Homophily(pairs=2, same=1, chance=0.625)
        """
        same, ends = 0, np.zeros(graph.num_classes, np.int64)
        for source, target in edge_blocks(graph):
            first, second = graph.labels[source], graph.labels[target]
            known = (first != MISSING_LABEL) & (second != MISSING_LABEL)
            first, second = first[known], second[known]
            same += int((first == second).sum())
            ends += np.bincount(first, minlength=len(ends))
            ends += np.bincount(second, minlength=len(ends))
        total = int(ends.sum())
        chance = float(((ends / total) ** 2).sum()) if total else math.nan
        return cls(pairs=total // 2, same=same, chance=chance)

    @property
    def fraction(self) -> float:
        """Fraction of the pairs that share a class; NaN for no pairs."""
        return self.same / self.pairs if self.pairs else math.nan

    @property
    def advice(self) -> str:
        """Advice for training based on the counts, in one or two sentences."""
        if self.pairs < LEAST_PAIRS:
            number = f"Only {self.pairs} edges join" if self.pairs != 1 else "Only one edge joins"
            number = number if self.pairs else "No edge joins"
            return f"{number} two labelled nodes: too few to tell if the network helps."
        share = f"Neighbours share a class {_percent(self.fraction)} of the time"
        if self.chance == 1:
            return f"{share}, but they are of one class: this says nothing about the network."
        error = _DEVIATIONS * math.sqrt(self.chance * (1 - self.chance) / self.pairs)
        by_chance = f"{share}, {_percent(self.chance)} by chance"
        if self.fraction > self.chance + max(error, CLEAR_GAIN):
            return f"{by_chance}: the network will help."
        if self.fraction > self.chance + error:
            return f"{by_chance}: the network may help a little."
        how = "less often than" if self.fraction < self.chance - error else "about as often as"
        return (
            f"{share}, {how} by chance ({_percent(self.chance)}): the network may mislead. Compare "
            "with a run whose diffusion.teleport is 0.9, where a node's own features count most."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return counts, fractions (None if undefined) and advice by name."""
        numbers = {"fraction": self.fraction, "chance": self.chance}
        defined = {key: None if math.isnan(value) else value for key, value in numbers.items()}
        return {**asdict(self), **defined, "advice": self.advice}


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %"

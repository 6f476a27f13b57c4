"""Conversion between the user's ids and positions of nodes, without a dictionary of all ids.

Ids are looked up by bisection in an array that holds the nodes in the order of their ids. The
array may be a memory map, so that ten million ids cost no memory of the process.

Shapes: N nodes.
"""

import difflib
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds

MOST_NEAREST = 3
"""Number of similar ids that are suggested for an unknown one."""
_WINDOW = 12
"""Number of ids on either side of an unknown id that are compared with it."""
_LONGEST = 200
"""Number of characters of an unknown id that are compared."""
_LAST = "\U0010ffff"
"""The last character: no id that starts with a text comes after this text and this character."""
_MOST_SCANNED = 200_000
"""Number of nodes up to which ids are also searched for a text in their middle."""


class AbstractIds(ABC):
    """The ids of a graph's nodes."""

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """Number of nodes N."""

    @abstractmethod
    def text(self, node: int) -> str:
        """Return the id of the node at a position."""

    @abstractmethod
    def position(self, text: str) -> int | None:
        """Return the position of the node with this id; None if there is none."""

    def positions(self, ids: Sequence[str]) -> NodeIds:
        """Return the position of each id, -1 for ids that no node has."""
        nodes = [self.position(text) for text in ids]
        return np.array([-1 if node is None else node for node in nodes], np.int64)

    @abstractmethod
    def nearest(self, text: str) -> list[str]:
        """Return ids that are similar to an unknown one, the most similar one first."""

    @abstractmethod
    def matching(self, text: str) -> NodeIds:
        """Return the nodes whose ids start with a text and, of small graphs, contain it."""

    @abstractmethod
    def in_order(self) -> NDArray[np.integer]:
        """Return all nodes in the order of their ids, (N,)."""


class PositionIds(AbstractIds):
    """Ids of a graph without ids of its own: the positions 0 to N - 1, as texts."""

    def __init__(self, num_nodes: int) -> None:
        self._num_nodes = num_nodes

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return self._num_nodes

    def text(self, node: int) -> str:
        """Return the id of the node at a position."""
        return str(int(node))

    def position(self, text: str) -> int | None:
        """Return the position of the node with this id; None if there is none."""
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            return None
        node = int(text)
        return node if node < self._num_nodes and str(node) == text else None

    def nearest(self, text: str) -> list[str]:
        """Return positions near the number in the text, or the first ones if there is none."""
        digits = re.search(r"[0-9]{1,12}", text)
        wanted = 0 if digits is None else int(digits[0])
        middle = min(max(wanted, 1), self._num_nodes - 2)
        near = dict.fromkeys((wanted, middle, middle - 1, middle + 1))
        inside = [str(node) for node in near if 0 <= node < self._num_nodes]
        return inside[:MOST_NEAREST]

    def matching(self, text: str) -> NodeIds:
        """Return the nodes whose positions start with the digits of a text, in their order."""
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            return np.empty(0, np.int64)
        if self._num_nodes <= _MOST_SCANNED:
            texts = np.arange(self._num_nodes).astype(np.str_)
            place = np.char.find(texts, text)
            return np.concatenate([np.flatnonzero(place == 0), np.flatnonzero(place > 0)])
        return self._starting_with(text)

    def in_order(self) -> NDArray[np.integer]:
        """Return all positions; numbers are ordered as numbers, not as texts."""
        return np.arange(self._num_nodes)

    def _starting_with(self, text: str) -> NodeIds:
        if text.startswith("0"):
            return np.zeros(int(text == "0"), np.int64)
        first, last, ranges = int(text), int(text) + 1, []
        while first < self._num_nodes:
            ranges.append(np.arange(first, min(last, self._num_nodes)))
            first, last = first * 10, last * 10
        return np.concatenate([np.empty(0, np.int64), *ranges])


class NamedIds(AbstractIds):
    """Ids of the user.

    Args:
        names: The ids by position, (N,).
        order: The positions in the order of their ids, (N,), as `id_order` returns them.
    """

    def __init__(self, names: NDArray[np.str_], order: NDArray[np.integer]) -> None:
        self._names, self._order = names, order

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self._names)

    def text(self, node: int) -> str:
        """Return the id of the node at a position."""
        return str(self._names[node])

    def position(self, text: str) -> int | None:
        """Return the position of the node with this id; None if there is none."""
        place = self._place(text)
        if place == len(self._order):
            return None
        node = int(self._order[place])
        return node if self._names[node] == text else None

    def nearest(self, text: str) -> list[str]:
        """Return the ids most similar to an unknown one, among its neighbours in the order."""
        text = text[:_LONGEST]
        places = {self._place(form) for form in (text, text.upper(), text.lower(), text.strip())}
        near = {
            self.text(int(node))
            for place in places
            for node in self._order[max(place - _WINDOW, 0) : place + _WINDOW]
        }
        return difflib.get_close_matches(text, sorted(near), n=MOST_NEAREST, cutoff=0.0)

    def matching(self, text: str) -> NodeIds:
        """Return the nodes whose ids start with a text and, of small graphs, contain it."""
        starting = self._order[self._place(text) : self._place(text + _LAST)].astype(np.int64)
        if self.num_nodes > _MOST_SCANNED or not text:
            return np.asarray(starting)
        ordered = np.asarray(self._names)[self._order]
        inside = self._order[np.flatnonzero(np.char.find(ordered, text) > 0)]
        return np.concatenate([starting, np.setdiff1d(inside, starting, assume_unique=True)])

    def in_order(self) -> NDArray[np.integer]:
        """Return all nodes in the order of their ids, (N,)."""
        return self._order

    def _place(self, text: str) -> int:
        """Return how many ids come before a text."""
        names, order = self._names, self._order
        return bisect_left(range(len(order)), text, key=lambda place: str(names[order[place]]))


def id_order(graph: Graph) -> NDArray[np.int32] | None:
    """Return the positions of nodes in the order of their ids, (N,); None without ids."""
    if graph.node_names is None:
        return None
    return np.argsort(graph.node_names, kind="stable").astype(np.int32)


def ids_of(graph: Graph, order: NDArray[np.integer] | None) -> AbstractIds:
    """Return the ids of a graph, given the order of its nodes by id; None without ids."""
    if graph.node_names is None or order is None:
        return PositionIds(graph.num_nodes)
    return NamedIds(graph.node_names, order)

"""Chooses the nodes of A and of B to compare, so that like is compared with like.

A model knows the nodes that it was trained and validated on, so they look less strange than others.
Nodes that either side has used are left out of both, by their ids, and so are nodes that are marked
as unknown. The remaining nodes of a training run are its known test nodes and its unlabelled nodes.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.errors import ConfigError

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedNodes:
    """The rows of both tables that are compared, with the reasons.

    >>> table = {"node": [0, 1, 2], "predicted_class": [0, 0, 1], "aleatoric": [-0.9, -0.8, -0.7]}
    >>> a = ScoredTable.of(pa.table(table | {"split": ["train", "test", None]}))
    >>> nodes = ComparedNodes.of(a, ScoredTable.of(pa.table(table)))
    >>> nodes.a.tolist(), nodes.b.tolist(), nodes.in_both_a.tolist()
    ([1, 2], [1, 2], [1, 2])
    """

    a: Rows
    """Compared rows of A, in their order."""
    b: Rows
    """Compared rows of B, in their order."""
    in_both_a: Rows
    """Rows of A, among the compared ones, of nodes that B has as well."""
    in_both_b: Rows
    """Rows of the same nodes in B."""
    sentences: tuple[str, ...]
    """What is compared, one sentence each."""

    @classmethod
    def of(cls, a: ScoredTable, b: ScoredTable) -> "ComparedNodes":
        """Return the nodes of two tables to compare.

        Raises:
            ConfigError: a table has no node that training has not used.
        """
        # The user's ids and positions cannot be matched with each other.
        same_ids = a.has_names == b.has_names
        hidden_a, hidden_b = a.used | a.marked, b.used | b.marked
        if same_ids:
            seen = pa.concat_arrays([_of(a.ids, hidden_a), _of(b.ids, hidden_b)])
            hidden_a, hidden_b = (np.asarray(pc.is_in(t.ids, value_set=seen)) for t in (a, b))
        rows_a, rows_b = np.flatnonzero(~hidden_a), np.flatnonzero(~hidden_b)
        for table, rows in ((a, rows_a), (b, rows_b)):
            if not len(rows):
                raise ConfigError(
                    f"{table.name} has no nodes to compare: training or validation has used all "
                    f"of its {table.num_nodes:,} nodes, or they are marked as unknown; expected "
                    "test nodes, unlabelled nodes or nodes of another graph",
                    arguments=("compare",),
                )
        if same_ids:
            index = pc.index_in(b.ids.take(pa.array(rows_b)), value_set=a.ids)
            place_in_a = np.asarray(pc.fill_null(index, -1), np.int64)
        else:
            place_in_a = np.full(len(rows_b), -1)
        shared = place_in_a >= 0
        return cls(
            a=rows_a,
            b=rows_b,
            in_both_a=place_in_a[shared],
            in_both_b=rows_b[shared],
            sentences=_sentences(a, b, rows_a, rows_b, same_ids),
        )


def _of(ids: pa.Array, chosen: NDArray[np.bool_]) -> pa.Array:
    return ids.filter(pa.array(chosen))


def _sentences(
    a: ScoredTable, b: ScoredTable, rows_a: Rows, rows_b: Rows, same_ids: bool
) -> tuple[str, ...]:
    """Return sentences on what is compared, and notes for the reader."""
    first = (
        f"A is {a.name} ({a.num_nodes:,} nodes), B is {b.name} ({b.num_nodes:,} nodes).",
        f"Compared are {len(rows_a):,} nodes of A and {len(rows_b):,} nodes of B.",
    )
    further = []
    if a.used.any() or b.used.any():
        where = "of both, by their ids," if same_ids else "of the table that names them,"
        further.append(
            f"Nodes that training or validation has used are left out {where} since the model has "
            "seen them: of a training run, its test nodes and its unlabelled nodes are compared."
        )
    else:
        further.append(
            "Neither table says which nodes training has used. If one of them holds the nodes of "
            "training, these look less strange than others: compare with the run instead."
        )
    if a.marked.any() or b.marked.any():
        further.append("Nodes that are marked as unknown are left out as well.")
    if not same_ids:
        further.append(
            "One table has ids of its own and the other has positions, so that no node of A can be "
            "found in B: nodes are not compared one by one."
        )
    elif not a.has_names:
        further.append(
            "Nodes have no ids of their own: a node of A and the node at the same position of B "
            "count as the same node."
        )
    return (*first, *further)

"""Roles of the columns of both tables: id, label, source and so on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from gpn_scale.data.faults import Fault
from gpn_scale.data.table_files import UNNAMED

_NODE_ROLES = ("id", "label", "split")
_EDGE_ROLES = ("source", "target", "weight")
_REQUIRED = ("id", "source", "target")
_DESCRIPTIONS = {
    "id": "ids of nodes",
    "source": "ids of the nodes where edges start",
    "target": "ids of the nodes where edges end",
}
_OTHER_NAMES = {
    "id": {"ids", "key", "name", "node", "node_id", "nodeid", "ref", "uid", "uuid"},
    "source": {"a", "from", "from_id", "source_id", "src", "start", "sender", "u"},
    "target": {"b", "to", "to_id", "target_id", "dst", "dest", "end", "receiver", "v"},
}
"""Names that other programs use for these columns, for suggestions in messages."""
_ID_ENDINGS = ("_id", "_key", "_no", "_nr", "_number", "_ref")
_SHOWN_COLUMNS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """Names of the columns that are not features; None for the field's own name, if it exists.

    >>> list(ColumnNames(id="ref", drop=("note",)).to_dict().values())
    ['ref', None, None, None, None, None, ['note']]
    """

    id: str | None = None
    """Ids of the nodes, in the table of nodes."""
    label: str | None = None
    """Classes of the nodes; a table without such a column has no labels."""
    split: str | None = None
    """Subset of each node: `train`, `val`, `test` or empty."""
    source: str | None = None
    """Ids of the nodes where edges start, in the table of edges."""
    target: str | None = None
    """Ids of the nodes where edges end."""
    weight: str | None = None
    """Weights of the edges; without such a column, all weigh the same."""
    drop: tuple[str, ...] = ()
    """Columns to ignore. An ignored column does not serve as label, split or weight either."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"drop": list(self.drop)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRoles:
    """The columns of two tables by role; None for a role without a column.

    >>> roles, faults = node_roles(ColumnNames(id="ref"), ["ref", "age"], file="nodes.csv")
    >>> roles.id, roles.label, roles.features
    ('ref', None, ('age',))
    """

    id: str | None = None
    label: str | None = None
    split: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] = ()
    """All other columns of the nodes, in their order."""


def node_roles(
    names: ColumnNames, columns: Sequence[str], *, file: str
) -> tuple[ColumnRoles, list[Fault]]:
    """Return the roles of the columns of a table of nodes, and what is wrong with them.

    >>> node_roles(ColumnNames(), ["ref", "age"], file="nodes.csv")[1][0].advice
    "name the column of ids of nodes (id), perhaps 'ref'; the columns are 'ref', 'age'"

    Args:
        names: The names that were given.
        columns: The columns of the table.
        file: Name of the table.
    """
    chosen, faults = _resolved(names, _NODE_ROLES, columns, file)
    taken = {*chosen.values(), *names.drop}
    features = tuple(column for column in columns if column not in taken)
    faults += [
        Fault(
            file=file,
            column=column,
            advice="the header has no name for this column: name it, or drop it by this name",
        )
        for column in features
        if column.startswith(UNNAMED)
    ]
    roles = ColumnRoles(
        id=chosen["id"], label=chosen["label"], split=chosen["split"], features=features
    )
    return roles, faults


def edge_roles(
    names: ColumnNames, columns: Sequence[str], *, file: str
) -> tuple[ColumnRoles, list[Fault]]:
    """Return the roles of the columns of a table of edges, and what is wrong with them.

    >>> roles, faults = edge_roles(ColumnNames(source="a", target="b"), ["a", "b"], file="e.csv")
    >>> roles.source, roles.target, roles.weight, faults
    ('a', 'b', None, [])
    """
    chosen, faults = _resolved(names, _EDGE_ROLES, columns, file)
    roles = ColumnRoles(source=chosen["source"], target=chosen["target"], weight=chosen["weight"])
    return roles, faults


def unknown_columns(
    names: Collection[str], columns: Sequence[str], *, file: str, purpose: str
) -> list[Fault]:
    """Return a fault for each of `names` that is not a column.

    >>> [fault] = unknown_columns(["aeg"], ["age", "size"], file="n.csv", purpose="drop")
    >>> fault.advice
    "drop names this column, which the table does not have; similar: 'age'"
    """
    known = set(columns)
    return [
        Fault(
            file=file,
            column=name,
            advice=f"{purpose} names this column, which the table does not have"
            f"{_similar(name, columns)}",
        )
        for name in names
        if name not in known
    ]


def missing_roles(names: ColumnNames, roles: ColumnRoles, asked: Sequence[str]) -> list[str]:
    """Return the required roles among `asked` that have no column.

    >>> missing_roles(ColumnNames(label="kind"), ColumnRoles(id="id"), ["id", "label", "split"])
    ['label']
    """
    return [
        role
        for role in asked
        if getattr(roles, role) is None and (role in _REQUIRED or getattr(names, role) is not None)
    ]


def exchanged_tables(
    names: ColumnNames, node_columns: Sequence[str], edge_columns: Sequence[str]
) -> bool:
    """Return whether each table has the columns that the other one needs.

    >>> exchanged_tables(ColumnNames(), ["source", "target"], ["id", "age"])
    True
    """
    source, target, node_id = names.source or "source", names.target or "target", names.id or "id"
    return (
        {source, target} <= set(node_columns)
        and node_id in edge_columns
        and node_id not in node_columns
        and not {source, target} <= set(edge_columns)
    )


def _resolved(
    names: ColumnNames, roles: Sequence[str], columns: Sequence[str], file: str
) -> tuple[dict[str, str | None], list[Fault]]:
    chosen: dict[str, str | None] = {}
    faults = []
    for role in roles:
        given = getattr(names, role)
        name = role if given is None else given
        chosen[role] = name if name in columns and name not in names.drop else None
        if chosen[role] is not None:
            continue
        if name in columns and role in _REQUIRED:
            advice = f"the column holds {_DESCRIPTIONS[role]}: do not drop it"
            faults.append(Fault(file=file, column=name, advice=advice))
        elif name not in columns and given is not None:
            faults += unknown_columns([name], columns, file=file, purpose=role)
        elif role in _REQUIRED:
            faults.append(Fault(file=file, column=role, advice=_which(role, columns)))
    used: dict[str, str] = {}
    for role, column in chosen.items():
        if column is not None and column in used:
            advice = f"{used[column]} and {role} name the same column: name two columns"
            faults.append(Fault(file=file, column=column, advice=advice))
        elif column is not None:
            used[column] = role
    return chosen, faults


def _which(role: str, columns: Sequence[str]) -> str:
    folded = {name: name.strip().casefold() for name in columns}
    likely = [name for name in columns if folded[name] in _OTHER_NAMES[role] | {role}]
    if role == "id":
        likely += [name for name in columns if folded[name].endswith(_ID_ENDINGS)]
    hint = f", perhaps {likely[0]!r}" if likely else ""
    shown = ", ".join(map(repr, columns[:_SHOWN_COLUMNS]))
    more = len(columns) - _SHOWN_COLUMNS
    shown += f" and {more} more" if more > 0 else ""
    return f"name the column of {_DESCRIPTIONS[role]} ({role}){hint}; the columns are {shown}"


def _similar(name: str, columns: Sequence[str]) -> str:
    folded = {column.casefold(): column for column in columns}
    near = [folded[each] for each in get_close_matches(name.casefold(), folded, n=3)]
    listed = near or list(columns[:_SHOWN_COLUMNS])
    return f"; {'similar' if near else 'the columns are'}: {', '.join(map(repr, listed))}"

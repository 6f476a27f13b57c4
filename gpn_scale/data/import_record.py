"""`import.json`: records how a graph was imported from tables, so that this can be repeated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpn_scale import __version__
from gpn_scale.checked_json import read_checked_json, write_checked_json
from gpn_scale.data.column_roles import ColumnNames, ColumnRoles
from gpn_scale.data.import_facts import ImportFacts
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.errors import ConfigError, GraphError

RECORD = "import.json"
"""Name of the file beside the graph."""
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """Column names and rules of an import.

    >>> record = ImportRecord(names=ColumnNames(id="ref", drop=("note",)), rules=ImportRules())
    >>> record.names_in(["ref", "age"], ["source", "target"]).drop
    ()
    """

    names: ColumnNames
    rules: ImportRules

    def names_in(self, nodes: Sequence[str], edges: Sequence[str]) -> ColumnNames:
        """Return the names for two other tables, which may lack labels, split and dropped columns.

        Args:
            nodes: Columns of the table of nodes.
            edges: Columns of the table of edges.
        """
        return replace(
            self.names,
            label=self.names.label if self.names.label in nodes else None,
            split=self.names.split if self.names.split in nodes else None,
            drop=tuple(name for name in self.names.drop if name in {*nodes, *edges}),
        )

    def rules_in(self, nodes: Sequence[str]) -> ImportRules:
        """Return the rules for another table of nodes, which may lack columns with a kind.

        >>> record = ImportRecord(names=ColumnNames(), rules=ImportRules(kinds={"zip": "category"}))
        >>> dict(record.rules_in(["id", "age"]).kinds)
        {}
        """
        kinds = {name: kind for name, kind in self.rules.kinds.items() if name in nodes}
        return replace(self.rules, kinds=kinds)


def write_record(
    folder: Path,
    columns: ColumnRoles,
    drop: Sequence[str],
    rules: ImportRules,
    facts: ImportFacts,
    files: Mapping[str, str],
) -> None:
    """Record how the graph in `folder` was imported.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     facts = ImportFacts(nodes_listed=2, edges_listed=1)
    ...     write_record(Path(folder), ColumnRoles(id="ref"), ["note"], ImportRules(), facts, {})
    ...     read_record(Path(folder)).names.id
    'ref'

    Args:
        folder: Folder of the graph.
        columns: The columns that were used.
        drop: Columns that were ignored.
        rules: The rules of the import.
        facts: What it did.
        files: Paths of the tables, by `nodes` and `edges`.
    """
    names = ColumnNames(
        id=columns.id,
        label=columns.label,
        split=columns.split,
        source=columns.source,
        target=columns.target,
        weight=columns.weight,
        drop=tuple(drop),
    )
    record = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "files": dict(files),
        "columns": names.to_dict(),
        "rules": rules.to_dict(),
        "facts": facts.to_dict(),
    }
    write_checked_json(folder / RECORD, record)


def read_record(folder: Path) -> ImportRecord:
    """Return the record of how the graph in `folder` was imported.

    >>> read_record(Path("none"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: none/import.json cannot be read (No such file or directory): ...

    Raises:
        GraphError: the file is missing or damaged.
    """
    path = folder / RECORD
    try:
        content = read_checked_json(path)
        if content["format_version"] != FORMAT_VERSION:
            raise ValueError(f"format version {content['format_version']!r}")
        columns: dict[str, Any] = dict(content["columns"])
        names = ColumnNames(**columns | {"drop": tuple(columns["drop"])})
        rules = ImportRules(**content["rules"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise GraphError(
            f"{path} cannot be read ({reason}): expected the folder of a graph that was imported "
            "from tables",
            arguments=("like",),
        ) from error
    return ImportRecord(names=names, rules=rules)

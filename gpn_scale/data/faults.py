"""Faults of tables: everything that is wrong with a user's files, reported all at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpn_scale.errors import GraphError

SHOWN_FAULTS = 30
"""Number of faults that a message lists."""
_VALUE_WIDTH = 32
_HEADER = ("file", "row", "column", "value", "what to do")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with a table, and what to do about it.

    >>> Fault(file="nodes.csv", row=3, column="age", value="old", advice="write a number").count
    1
    """

    file: str
    """Name of the file or of the argument that holds the table."""
    advice: str
    """What to do, in a few words."""
    row: int | None = None
    """The first row concerned, counted from 1 without the header; None for the whole column."""
    column: str | None = None
    """Name of the column; None for the whole file."""
    value: str | None = None
    """The first value concerned, as text; None if there is none."""
    count: int = 1
    """Number of rows with this fault."""


class TableFaults(GraphError):
    """All faults of the tables of a graph; the message is a table of them.

    >>> fault = Fault(file="nodes.csv", row=3, column="age", value="old", advice="write a number")
    >>> print(TableFaults([fault]))
    1 fault in the tables:
      file       row  column  value  what to do
      nodes.csv  3    age     'old'  write a number

    Args:
        faults: At least one fault.
        arguments: Names of the arguments that would allow the faulty input.
    """

    is_table = True

    def __init__(self, faults: Iterable[Fault], *, arguments: Sequence[str] = ()) -> None:
        self.faults = tuple(faults)
        super().__init__(_message(self.faults), arguments=arguments)


def _message(faults: Sequence[Fault]) -> str:
    rows = [_HEADER, *(_cells(fault) for fault in faults[:SHOWN_FAULTS])]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADER))]
    lines = [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    plural = "" if len(faults) == 1 else "s"
    if len(faults) > SHOWN_FAULTS:
        lines.append(f"  ... and {len(faults) - SHOWN_FAULTS:,} more")
    return "\n".join([f"{len(faults):,} fault{plural} in the tables:", *lines])


def _cells(fault: Fault) -> tuple[str, ...]:
    others = f" and {fault.count - 1:,} more" if fault.count > 1 else ""
    row = "all" if fault.row is None else f"{fault.row}{others}"
    value = "" if fault.value is None else repr(fault.value)
    if len(value) > _VALUE_WIDTH:
        value = f"{value[: _VALUE_WIDTH - 3]}..."
    return fault.file, row, fault.column or "", value, fault.advice

"""`WrongValues`: collects the faulty values of a column block by block."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.faults import Fault

LISTED_VALUES = 5
"""Number of distinct values that are listed as separate faults."""

_MERGED_VALUES = 1 << 20


class WrongValues:
    """Distinct values at fault, with the first row and the number of rows of each.

    >>> values = WrongValues()
    >>> values.add(pa.array(["a", "b", "a"]), np.array([True, False, True]))
    >>> values.add(pa.array(["a", "c"]), np.array([True, True]), first_row=3)
    >>> [(each.row, each.value, each.count) for each in values.faults("f", "x", "fix it")]
    [(1, 'a', 3), (5, 'c', 1)]
    """

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self.num_rows = 0
        """Number of rows at fault so far."""

    def add(self, texts: pa.Array, wrong: NDArray[Any], first_row: int = 0) -> None:
        """Add the rows of a block that are at fault.

        Args:
            texts: Values of the block, as text.
            wrong: Whether a row is at fault.
            first_row: Number of rows before the block.
        """
        rows = np.flatnonzero(wrong)
        if not len(rows):
            return
        self.num_rows += len(rows)
        chosen = texts.take(pa.array(rows)).cast(pa.large_string())
        encoded = pc.fill_null(chosen, "").dictionary_encode()
        codes = encoded.indices.to_numpy()
        first = first_row + rows[np.unique(codes, return_index=True)[1]]
        part = {"value": encoded.dictionary, "row": first, "count": np.bincount(codes)}
        self._parts.append(pa.table(part))
        if sum(each.num_rows for each in self._parts) > _MERGED_VALUES:
            self._parts = [self._merged()]

    def faults(self, file: str, column: str, advice: str) -> list[Fault]:
        """Return a fault for each of the first distinct values, and one for the others.

        Args:
            file: Name of the table.
            column: Name of the column.
            advice: What to do.
        """
        if not self._parts:
            return []
        values = self._merged()
        listed = [
            Fault(
                file=file,
                row=each["row"] + 1,
                column=column,
                value=each["value"] or None,
                advice=advice,
                count=each["count"],
            )
            for each in values.slice(0, LISTED_VALUES).to_pylist()
        ]
        others = values.slice(LISTED_VALUES)
        if more := others.num_rows:
            rest = Fault(
                file=file,
                row=others["row"][0].as_py() + 1,
                column=column,
                advice=f"the same for {more:,} more value{'s' if more > 1 else ''}",
                count=pc.sum(others["count"]).as_py(),
            )
            listed.append(rest)
        return listed

    def one_fault(self, file: str, column: str, advice: str) -> Fault:
        """Return one fault for all rows, which names the first of them.

        >>> values = WrongValues()
        >>> values.add(pa.array(["a", "b"]), np.array([True, True]))
        >>> values.one_fault("f", "x", "fix it").count
        2
        """
        first = self.faults(file, column, advice)[0]
        return Fault(
            file=file,
            row=first.row,
            column=column,
            value=first.value,
            advice=advice,
            count=self.num_rows,
        )

    def _merged(self) -> pa.Table:
        """Return the distinct values in the order of their first rows."""
        table = pa.concat_tables(self._parts)
        if len(self._parts) > 1:
            sums = table.group_by("value").aggregate([("row", "min"), ("count", "sum")])
            table = sums.select(["value", "row_min", "count_sum"])
            table = table.rename_columns(["value", "row", "count"]).sort_by("row")
        return table

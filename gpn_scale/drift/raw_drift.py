"""Movements of raw columns, each compared as values of its kind.

Shapes: A and B nodes of each side, K categories, W words.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_kinds import ColumnKind
from gpn_scale.data.column_rules import numeric_values
from gpn_scale.data.column_values import ColumnReader, TextValues, is_readable
from gpn_scale.data.hashed_text import texts_with_word
from gpn_scale.drift.column_drift import Bars, Bins, ColumnDrift, DriftKind
from gpn_scale.drift.two_samples import (
    Movement,
    Share,
    category_movement,
    distribution_movement,
    share_movement,
    share_p_values,
)
from gpn_scale.evaluation.sample_sizes import LEAST_HISTOGRAM_NODES

WORDS = 1000
"""Number of words, the most frequent ones of A and B together, that are compared in texts."""
_BARS = 8
_LISTED = 5
_LONGEST = 40
_STILL = Movement(0.0, 1.0)


def column_drift(
    name: str, kind: ColumnKind, a: pa.ChunkedArray, b: pa.ChunkedArray
) -> ColumnDrift | None:
    """Return the movement of a raw column; None if its values cannot be read.

    >>> a, b = pa.chunked_array([["DE"] * 50]), pa.chunked_array([["DE"] * 40 + ["XK"] * 10])
    >>> drift = column_drift("country", "category", a, b)
    >>> round(drift.movement.distance, 2), drift.detail
    (0.2, "new values: 'XK' (10)")

    Args:
        name: Name of the column.
        kind: How its values are read.
        a: Its values for the compared nodes of A.
        b: The same of B.
    """
    if not (is_readable(a.type) and is_readable(b.type)):
        return None
    return _BY_KIND[kind](name, ColumnReader(a), ColumnReader(b))


def number_drift(
    name: str, kind: DriftKind, a: NDArray[np.floating], b: NDArray[np.floating]
) -> ColumnDrift:
    """Return the movement of a column of numbers; values that are not finite are left out.

    >>> drift = number_drift("age", "number", np.arange(80.0), np.arange(80.0) + 20)
    >>> drift.detail
    "median 39.5 -> 59.5, a shift of 0.51 of A's interquartile range"
    """
    given = a[np.isfinite(a)], b[np.isfinite(b)]
    if min(map(len, given)) < LEAST_HISTOGRAM_NODES:
        return _uncompared(name, kind, len(given[0]), len(given[1]))
    medians = [float(np.median(values)) for values in given]
    low, high = (float(end) for end in np.quantile(given[0], [0.25, 0.75]))
    shift = (medians[1] - medians[0]) / (high - low) if high > low else None
    return ColumnDrift(
        name=name,
        kind=kind,
        values=distribution_movement(*given),
        detail=_median_text(kind, medians, shift),
        numbers={"median_a": medians[0], "median_b": medians[1], "shift_in_iqr": shift},
        picture=Bins.of(*given),
    )


def _numbers(kind: ColumnKind) -> Callable[[str, ColumnReader, ColumnReader], ColumnDrift]:
    def drift(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
        values = [numeric_values(reader, kind) for reader in (a, b)]
        # Values that are not numbers count as missing, as in the features.
        given = [np.where(each.wrong, np.nan, each.value) for each in values]
        moved = number_drift(name, "date" if kind == "date" else "number", given[0], given[1])
        missing = tuple(Share(int(np.isnan(each).sum()), len(each)) for each in given)
        return _with_missing(moved, missing[0], missing[1])

    return drift


def _booleans(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
    given = [np.where(each.booleans.wrong, np.nan, each.booleans.value) for each in (a, b)]
    missing = [Share(int(np.isnan(each).sum()), len(each)) for each in given]
    true = [Share(int(np.nansum(each)), int((~np.isnan(each)).sum())) for each in given]
    if min(each.nodes for each in true) < LEAST_HISTOGRAM_NODES:
        return _with_missing(_uncompared(name, "boolean", true[0].nodes, true[1].nodes), *missing)
    shares = [(each.value, 1 - each.value) for each in true]
    drift = ColumnDrift(
        name=name,
        kind="boolean",
        values=share_movement(true[0], true[1]),
        detail=f"share of yes {_percent(true[0].value)} -> {_percent(true[1].value)}",
        numbers={"share_a": true[0].value, "share_b": true[1].value},
        picture=Bars(names=("yes", "no"), a=shares[0], b=shares[1]),
    )
    return _with_missing(drift, *missing)


def _categories(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
    missing = [_missing_share(each.text) for each in (a, b)]
    counted = _joint_counts(a.text, b.text)
    if min(counted.rows) < LEAST_HISTOGRAM_NODES:
        return _with_missing(_uncompared(name, "category", *counted.rows), *missing)
    new, gone = counted.only_in_b, counted.only_in_a
    drift = ColumnDrift(
        name=name,
        kind="category",
        values=category_movement(counted.a, counted.b),
        detail=_category_text(counted),
        numbers={
            "new_values": {counted.names[place]: int(counted.b[place]) for place in new[:_BARS]},
            "num_new_values": len(new),
            "vanished_values": {
                counted.names[place]: int(counted.a[place]) for place in gone[:_BARS]
            },
            "num_vanished_values": len(gone),
        },
        picture=counted.bars,
    )
    return _with_missing(drift, *missing)


def _texts(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
    """Compare how many texts have each of the most frequent words."""
    missing = [_missing_share(each.text) for each in (a, b)]
    given = [each.nodes - each.count for each in missing]
    if min(given) < LEAST_HISTOGRAM_NODES:
        return _with_missing(_uncompared(name, "text", given[0], given[1]), *missing)
    tables = [texts_with_word(each.text.distinct, each.text.counts) for each in (a, b)]
    counted = _joint_words(tables[0], tables[1], (given[0], given[1]))
    if not counted.names:
        drift = ColumnDrift(name=name, kind="text", values=_STILL, detail="no words")
        return _with_missing(drift, *missing)
    num_new = len(counted.only_in_b)
    more = f"; {num_new:,} of the frequent words are new" if num_new else ""
    drift = ColumnDrift(
        name=name,
        kind="text",
        values=_word_movement(counted),
        detail=f"texts with the word {counted.changes(counted.order[:3])}{more}",
        numbers={
            "words": {
                counted.names[place]: [float(counted.share_a[place]), float(counted.share_b[place])]
                for place in counted.order[:_BARS]
            },
            "num_new_words": num_new,
        },
        picture=counted.bars,
    )
    return _with_missing(drift, *missing)


_BY_KIND: Mapping[ColumnKind, Callable[[str, ColumnReader, ColumnReader], ColumnDrift]] = {
    "number": _numbers("number"),
    "date": _numbers("date"),
    "boolean": _booleans,
    "category": _categories,
    "text": _texts,
}


def _with_missing(drift: ColumnDrift, a: Share, b: Share) -> ColumnDrift:
    return replace(drift, missing=(a, b))


def _missing_share(text: TextValues) -> Share:
    return Share(int(text.missing.sum()), len(text.code))


class _Counted(NamedTuple):
    """Numbers of rows of A and of B that have each of several values or words."""

    names: list[str]
    a: NDArray[np.int64]
    """Number of rows of A with each, (K,)."""
    b: NDArray[np.int64]
    """The same of B."""
    rows: tuple[int, int]
    """Number of rows of A and of B that have any."""

    @property
    def share_a(self) -> NDArray[np.float64]:
        return self.a / self.rows[0]

    @property
    def share_b(self) -> NDArray[np.float64]:
        return self.b / self.rows[1]

    @property
    def order(self) -> NDArray[np.int64]:
        """All places, the largest change first."""
        return np.argsort(-np.abs(self.share_b - self.share_a), kind="stable")

    @property
    def only_in_b(self) -> NDArray[np.int64]:
        """Places of values that A does not have, the most frequent first."""
        places = np.flatnonzero((self.a == 0) & (self.b > 0))
        return places[np.argsort(-self.b[places], kind="stable")]

    @property
    def only_in_a(self) -> NDArray[np.int64]:
        """Places of values that B does not have, the most frequent first."""
        places = np.flatnonzero((self.a > 0) & (self.b == 0))
        return places[np.argsort(-self.a[places], kind="stable")]

    @property
    def bars(self) -> Bars:
        """The largest changes."""
        first = self.order[:_BARS]
        return Bars(
            names=tuple(self.names[place] for place in first),
            a=tuple(self.share_a[first].tolist()),
            b=tuple(self.share_b[first].tolist()),
        )

    def changes(self, places: NDArray[np.int64]) -> str:
        """Return text on how shares changed."""
        return ", ".join(
            f"{_quoted(self.names[place])} {_percent(self.share_a[place])} -> "
            f"{_percent(self.share_b[place])}"
            for place in places
        )


def _joint_counts(a: TextValues, b: TextValues) -> _Counted:
    """Return all values of both columns, with the number of rows of each."""
    names = pc.unique(pa.concat_arrays([a.distinct, b.distinct]))
    counts = []
    for text in (a, b):
        count = np.zeros(len(names), np.int64)
        count[np.asarray(pc.index_in(text.distinct, value_set=names), np.int64)] = text.counts
        counts.append(count)
    rows = int(counts[0].sum()), int(counts[1].sum())
    return _Counted(names.to_pylist(), counts[0], counts[1], rows)


def _joint_words(a: pa.Table, b: pa.Table, rows: tuple[int, int]) -> _Counted:
    """Return the most frequent words of both tables, with the number of rows that have each."""
    both = a.join(b, "word", join_type="full outer", right_suffix="_b")
    total = pc.add(pc.fill_null(both["rows"], 0), pc.fill_null(both["rows_b"], 0))
    both = both.append_column("all", total)
    both = both.sort_by([("all", "descending"), ("word", "ascending")]).slice(0, WORDS)
    counts = [np.asarray(pc.fill_null(both[name], 0), np.int64) for name in ("rows", "rows_b")]
    return _Counted(both["word"].to_pylist(), counts[0], counts[1], rows)


def _word_movement(counted: _Counted) -> Movement:
    """Return the largest change of the share of texts with a word.

    The word was chosen among many, so its p-value is corrected for all of them.
    """
    first = counted.order[:1]
    p_value = share_p_values(counted.a[first], counted.rows[0], counted.b[first], counted.rows[1])
    distance = float(np.abs(counted.share_b - counted.share_a)[first[0]])
    return Movement(distance, min(1.0, float(p_value[0]) * len(counted.names)))


def _category_text(counted: _Counted) -> str:
    """Return text on new and vanished values, or else on the largest changes."""
    new, gone, pieces = counted.only_in_b, counted.only_in_a, []
    if len(new):
        listed = [f"{_quoted(counted.names[place])} ({counted.b[place]:,})" for place in new]
        pieces.append(f"new values: {_first_of(listed)}")
    if len(gone):
        pieces.append(f"vanished values: {_first_of([_quoted(counted.names[i]) for i in gone])}")
    return "; ".join(pieces) or counted.changes(counted.order[:3])


def _first_of(texts: list[str]) -> str:
    more = f" and {len(texts) - _LISTED:,} more" if len(texts) > _LISTED else ""
    return ", ".join(texts[:_LISTED]) + more


def _uncompared(name: str, kind: DriftKind, count_a: int, count_b: int) -> ColumnDrift:
    detail = f"too few values to compare ({count_a:,} and {count_b:,})"
    return ColumnDrift(name=name, kind=kind, values=_STILL, detail=detail)


def _median_text(kind: DriftKind, medians: list[float], shift: float | None) -> str:
    shown = [_date(each) if kind == "date" else f"{each:,.4g}" for each in medians]
    end = "" if shift is None else f", a shift of {shift:.2f} of A's interquartile range"
    return f"median {shown[0]} -> {shown[1]}{end}"


def _date(days: float) -> str:
    return str(np.datetime64(int(np.clip(days, -1e6, 3e6)), "D"))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")

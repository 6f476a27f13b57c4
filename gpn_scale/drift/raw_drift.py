"""How raw columns moved, each compared as values of its kind.

Shapes: A and B nodes of each side, K categories, W words.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

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
    """Return how a raw column moved; None if its values cannot be read.

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
    """Return how a column of numbers moved; those that are not finite are left out.

    >>> drift = number_drift("age", "number", np.arange(80.0), np.arange(80.0) + 20)
    >>> drift.detail
    "median 39.5 -> 59.5, a shift of 0.51 of A's interquartile range"
    """
    given = a[np.isfinite(a)], b[np.isfinite(b)]
    if min(map(len, given)) < LEAST_HISTOGRAM_NODES:
        return ColumnDrift(name=name, kind=kind, values=_STILL, detail=_too_few(*given))
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
        # What is no number counts as missing, as in the features.
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
        drift = ColumnDrift(
            name=name,
            kind="boolean",
            values=_STILL,
            detail=f"too few values to compare ({true[0].nodes:,} and {true[1].nodes:,})",
        )
        return _with_missing(drift, *missing)
    names = ("yes", "no")
    shares = [(each.value, 1 - each.value) for each in true]
    drift = ColumnDrift(
        name=name,
        kind="boolean",
        values=share_movement(true[0], true[1]),
        detail=f"share of yes {_percent(true[0].value)} -> {_percent(true[1].value)}",
        numbers={"share_a": true[0].value, "share_b": true[1].value},
        picture=Bars(names=names, a=shares[0], b=shares[1]),
    )
    return _with_missing(drift, *missing)


def _categories(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
    missing = [_missing_share(each.text) for each in (a, b)]
    names, count_a, count_b = _joint_counts(a.text, b.text)
    if min(count_a.sum(), count_b.sum()) < LEAST_HISTOGRAM_NODES:
        detail = f"too few values to compare ({count_a.sum():,} and {count_b.sum():,})"
        drift = ColumnDrift(name=name, kind="category", values=_STILL, detail=detail)
        return _with_missing(drift, *missing)
    new = np.flatnonzero((count_a == 0) & (count_b > 0))
    new = new[np.argsort(-count_b[new], kind="stable")]
    gone = np.flatnonzero((count_a > 0) & (count_b == 0))
    gone = gone[np.argsort(-count_a[gone], kind="stable")]
    share_a, share_b = count_a / count_a.sum(), count_b / count_b.sum()
    order = np.argsort(-np.abs(share_b - share_a), kind="stable")
    drift = ColumnDrift(
        name=name,
        kind="category",
        values=category_movement(count_a, count_b),
        detail=_category_text(names, share_a, share_b, count_b, new, gone, order),
        numbers={
            "new_values": {names[place]: int(count_b[place]) for place in new[:_BARS]},
            "num_new_values": len(new),
            "vanished_values": {names[place]: int(count_a[place]) for place in gone[:_BARS]},
            "num_vanished_values": len(gone),
        },
        picture=Bars(
            names=tuple(names[place] for place in order[:_BARS]),
            a=tuple(share_a[order[:_BARS]].tolist()),
            b=tuple(share_b[order[:_BARS]].tolist()),
        ),
    )
    return _with_missing(drift, *missing)


def _texts(name: str, a: ColumnReader, b: ColumnReader) -> ColumnDrift:
    """Compare how many texts have each of the most frequent words."""
    missing = [_missing_share(each.text) for each in (a, b)]
    given = [each.nodes - each.count for each in missing]
    if min(given) < LEAST_HISTOGRAM_NODES:
        detail = f"too few values to compare ({given[0]:,} and {given[1]:,})"
        drift = ColumnDrift(name=name, kind="text", values=_STILL, detail=detail)
        return _with_missing(drift, *missing)
    tables = [texts_with_word(each.text.distinct, each.text.counts) for each in (a, b)]
    tokens, count_a, count_b = _joint_words(*tables)
    if not len(tokens):
        return _with_missing(
            ColumnDrift(name=name, kind="text", values=_STILL, detail="no words"), *missing
        )
    share_a, share_b = count_a / given[0], count_b / given[1]
    order = np.argsort(-np.abs(share_b - share_a), kind="stable")
    first = order[0]
    p_value = share_p_values(count_a[[first]], given[0], count_b[[first]], given[1])[0]
    unseen = np.flatnonzero((count_a == 0) & (count_b > 0))
    listed = ", ".join(
        f"{_quoted(tokens[place])} {_percent(share_a[place])} -> {_percent(share_b[place])}"
        for place in order[:3]
    )
    more = f"; {len(unseen):,} of the frequent words are new" if len(unseen) else ""
    drift = ColumnDrift(
        name=name,
        kind="text",
        # The word was chosen among many, so its p-value is corrected for all of them.
        values=Movement(
            float(np.abs(share_b - share_a)[first]), min(1.0, float(p_value) * len(tokens))
        ),
        detail=f"texts with the word {listed}{more}",
        numbers={
            "words": {
                tokens[place]: [float(share_a[place]), float(share_b[place])]
                for place in order[:_BARS]
            },
            "num_new_words": len(unseen),
        },
        picture=Bars(
            names=tuple(tokens[place] for place in order[:_BARS]),
            a=tuple(share_a[order[:_BARS]].tolist()),
            b=tuple(share_b[order[:_BARS]].tolist()),
        ),
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


def _joint_counts(
    a: TextValues, b: TextValues
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return all values of both columns, and the number of rows of each, (K,)."""
    names = pc.unique(pa.concat_arrays([a.distinct, b.distinct]))
    counts = []
    for text in (a, b):
        count = np.zeros(len(names), np.int64)
        count[np.asarray(pc.index_in(text.distinct, value_set=names), np.int64)] = text.counts
        counts.append(count)
    return names.to_pylist(), counts[0], counts[1]


def _joint_words(
    a: pa.Table, b: pa.Table
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the most frequent words of both tables, and the number of rows with each, (W,)."""
    both = a.join(b, "word", join_type="full outer", right_suffix="_b")
    both = both.set_column(
        both.num_columns,
        "all",
        pc.add(pc.fill_null(both["rows"], 0), pc.fill_null(both["rows_b"], 0)),
    )
    both = both.sort_by([("all", "descending"), ("word", "ascending")]).slice(0, WORDS)
    counts = [np.asarray(pc.fill_null(both[name], 0), np.int64) for name in ("rows", "rows_b")]
    return both["word"].to_pylist(), counts[0], counts[1]


def _category_text(
    names: list[str],
    share_a: NDArray[np.float64],
    share_b: NDArray[np.float64],
    count_b: NDArray[np.int64],
    new: NDArray[np.int64],
    gone: NDArray[np.int64],
    order: NDArray[np.int64],
) -> str:
    pieces = []
    if len(new):
        listed = [f"{_quoted(names[place])} ({count_b[place]:,})" for place in new[:_LISTED]]
        more = f" and {len(new) - _LISTED:,} more" if len(new) > _LISTED else ""
        pieces.append(f"new values: {', '.join(listed)}{more}")
    if len(gone):
        listed = [_quoted(names[place]) for place in gone[:_LISTED]]
        more = f" and {len(gone) - _LISTED:,} more" if len(gone) > _LISTED else ""
        pieces.append(f"vanished values: {', '.join(listed)}{more}")
    first = [place for place in order[:3] if share_a[place] > 0 and share_b[place] > 0]
    if first and not len(new):
        listed = [
            f"{_quoted(names[place])} {_percent(share_a[place])} -> {_percent(share_b[place])}"
            for place in first
        ]
        pieces.append(", ".join(listed))
    return "; ".join(pieces)


def _median_text(kind: DriftKind, medians: list[float], shift: float | None) -> str:
    shown = [_date(each) if kind == "date" else f"{each:,.4g}" for each in medians]
    end = "" if shift is None else f", a shift of {shift:.2f} of A's interquartile range"
    return f"median {shown[0]} -> {shown[1]}{end}"


def _date(days: float) -> str:
    return str(np.datetime64(int(np.clip(days, -1e6, 3e6)), "D"))


def _too_few(a: NDArray[Any], b: NDArray[Any]) -> str:
    return f"too few values to compare ({len(a):,} and {len(b):,})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...")

"""Classes and subsets from columns of text."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.faults import Fault
from gpn_scale.data.graph import MISSING_LABEL, NodeIds, Split
from gpn_scale.data.text_columns import text_column, value_faults

SUBSET_NAMES = {"train": ["train"], "val": ["val", "valid", "validation"], "test": ["test"]}
"""Accepted texts for each subset of a split."""
SUBSET_HELP = "train, val, valid, validation, test or nothing"

_INTEGER = r"^-?(0|[1-9]\d{0,17})$"


class Labels(NamedTuple):
    """The classes of a column of labels.

    >>> read_labels(pa.chunked_array([["b", None, "a"]]), file="f", column_name="x")[0].class_names
    array(['a', 'b'], dtype='<U1')
    """

    labels: NDArray[np.int64]
    """Class per node, `MISSING_LABEL` where it is missing, (N,)."""
    class_names: NDArray[np.str_]
    """Names of the classes, sorted: integers by value, other texts by character; (C,)."""


def read_labels(
    column: pa.ChunkedArray, *, file: str, column_name: str
) -> tuple[Labels, list[Fault]]:
    """Return the classes of a column, and what is wrong with it.

    >>> labels, faults = read_labels(pa.chunked_array([[10, None, 9]]), file="f", column_name="x")
    >>> labels.labels.tolist(), labels.class_names.tolist(), faults
    ([1, -1, 0], ['9', '10'], [])

    Args:
        column: Labels of any type; null and "" are missing.
        file: Name of the table.
        column_name: Name of the column.
    """
    texts, wrong, advice, _ = text_column(column)
    names = pc.unique(texts.drop_null())
    if pc.all(pc.match_substring_regex(names, _INTEGER)).as_py():
        names = names.take(pc.array_sort_indices(names.cast(pa.int64())))
    else:
        names = names.take(pc.array_sort_indices(names))
    codes = pc.fill_null(pc.index_in(texts, value_set=names), MISSING_LABEL)
    labels = np.asarray(codes).astype(np.int64)
    if wrong.any():
        faults = value_faults(texts, wrong, file=file, column=column_name, advice=advice)
        return Labels(labels, np.empty(0, np.str_)), faults
    faults = []
    if len(names) < 2:
        state = "labels are missing" if len(names) == 0 else "labels are of one class"
        faults.append(
            Fault(
                file=file,
                column=column_name,
                value=names[0].as_py() if len(names) else None,
                advice=f"all {state}: label nodes of at least two classes, or drop the column to "
                "import a graph that is only predicted",
            )
        )
    return Labels(labels, names.to_numpy(zero_copy_only=False).astype(np.str_)), faults


def read_subsets(texts: pa.Array) -> tuple[dict[str, NodeIds], NDArray[np.bool_]]:
    """Return the nodes of each subset of a split, and the mask of texts that name none.

    >>> subsets, unknown = read_subsets(pa.array(["train", "", "valid", "dev", None]))
    >>> subsets["val"].tolist(), unknown.tolist()
    ([2], [False, False, False, True, False])
    """
    unknown = np.asarray(pc.fill_null(pc.not_equal(texts, ""), False)).copy()
    subsets = {
        subset: np.flatnonzero(pc.is_in(texts, value_set=pa.array(names, texts.type)))
        for subset, names in SUBSET_NAMES.items()
    }
    for nodes in subsets.values():
        unknown[nodes] = False
    return subsets, unknown


def read_split(
    column: pa.ChunkedArray, labels: Labels | None, *, file: str, column_name: str
) -> tuple[Split | None, list[Fault]]:
    """Return the split in a column, None if all of it is missing, and what is wrong with it.

    >>> labels = Labels(np.array([0, 1, -1]), np.array(["a", "b"]))
    >>> column = pa.chunked_array([["train", "train", None]])
    >>> split, faults = read_split(column, labels, file="f", column_name="part")
    >>> split.train.tolist(), faults
    ([0, 1], [])

    Args:
        column: `train`, `val` (or `valid`, `validation`), `test`, or nothing for each node.
        labels: Labels of the nodes; None if they have none.
        file: Name of the table.
        column_name: Name of the column.
    """
    texts = text_column(column).texts
    subsets, unknown = read_subsets(texts)
    faults = value_faults(
        texts, unknown, file=file, column=column_name, advice=f"write {SUBSET_HELP}"
    )
    given = np.asarray(texts.is_valid()) & ~unknown
    unlabelled = given if labels is None else given & (labels.labels == MISSING_LABEL)
    faults += value_faults(
        texts,
        unlabelled,
        file=file,
        column=column_name,
        advice="the node has no label: add one, or leave the split empty",
    )
    if faults or labels is None or not given.any():
        return None, faults
    trained = np.bincount(labels.labels[subsets["train"]], minlength=len(labels.class_names))
    faults += [
        Fault(
            file=file,
            column=column_name,
            value=str(labels.class_names[label]),
            advice="no node of this class is in train: add one, or leave all splits empty",
        )
        for label in np.flatnonzero(trained == 0)
    ]
    return Split(**subsets), faults

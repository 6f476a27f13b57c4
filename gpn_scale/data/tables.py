"""Graphs from two tables, `edges` and `nodes`, each a `.parquet` or a `.csv` file.

`edges` has the columns `source`, `target` and optionally `weight` (others are ignored). `nodes`
has `id`, optionally `label` and `split`; every other column is a feature, in file order.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, Split
from gpn_scale.data.label_columns import SUBSET_HELP, read_subsets
from gpn_scale.data.table_files import read_parquet, repeated_names
from gpn_scale.data.text_columns import joined
from gpn_scale.errors import FileError, GraphError
from gpn_scale.reading import check_file

_SUFFIXES = (".parquet", ".csv")
_TEXT_COLUMNS = {"source", "target", "id", "label", "split"}
_WHOLE_FLOATS = 2.0**53
_PREPARED = ", or import the tables with gpn-import, which prepares columns of all kinds"


def read_tables(folder: Path, name: str) -> Graph:
    r"""Return the undirected graph in `folder/edges.*` and `folder/nodes.*`.

    Ids are integers or text. Nodes are numbered in the order of the `nodes` file, and
    `Graph.node_names` keeps the ids unless they are 0..N-1. Ids in a `.csv` file are text: "7" and
    "07" differ, and blanks count. If all labels are non-negative integers (also written with ".0"),
    they are class indices; otherwise the sorted distinct values become the classes 0..C-1, and
    `Graph.class_names` keeps them. A missing label or split is null or empty. `split` is `train`,
    `val` (or `valid`, `validation`) or `test`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "edges.csv").write_text("source,target\nann,bob\n")
    ...     _ = (Path(folder) / "nodes.csv").write_text("id,label,age\nann,x,31\nbob,y,29\n")
    ...     graph = read_tables(Path(folder), "friends")
    >>> graph.node_names.tolist(), graph.class_names.tolist(), graph.features.tolist()
    (['ann', 'bob'], ['x', 'y'], [[31.0], [29.0]])

    Raises:
        GraphError: a file or column is missing or has a wrong type, an edge has an unknown id, an
            id occurs twice, or a node of the split has no label.
    """
    edges, edges_path = _read_table(folder, "edges", ("source", "target"))
    nodes, nodes_path = _read_table(folder, "nodes", ("id",))
    kind = _id_type([nodes["id"].type, edges["source"].type, edges["target"].type])
    ids = _read_ids(nodes["id"], kind, f"{nodes_path}: column 'id'")
    repeated = pc.not_equal(pc.index_in(ids, value_set=ids), pa.array(np.arange(len(ids))))
    _refuse(repeated, ids, f"{nodes_path}: column 'id'", "every id once")
    source, target = (
        _read_ends(edges[key], ids, f"{edges_path}: column {key!r}", nodes_path.name)
        for key in ("source", "target")
    )
    weight = "weight" in edges.column_names
    labels, class_names = _read_labels(nodes, f"{nodes_path}: column 'label'")
    return build_graph(
        source,
        target,
        name=name,
        num_nodes=nodes.num_rows,
        edge_weight=_read_numbers(edges["weight"], "weight", edges_path) if weight else None,
        features=_read_features(nodes, nodes_path),
        feature_names=_feature_columns(nodes) or None,
        labels=labels,
        split=_read_split(nodes, labels, f"{nodes_path}: column 'split'"),
        node_names=_names(ids),
        class_names=class_names,
    )


def has_tables(folder: Path) -> bool:
    """Return whether `folder` holds an `edges` table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     has_tables(Path(folder))
    False
    """
    return any((folder / f"edges{suffix}").is_file() for suffix in _SUFFIXES)


def table_paths(folder: Path) -> list[Path]:
    """Return the possible paths of the tables of a graph.

    >>> [path.name for path in table_paths(Path("mine"))][:1]
    ['edges.parquet']
    """
    return [folder / f"{stem}{suffix}" for stem in ("edges", "nodes") for suffix in _SUFFIXES]


def _read_table(folder: Path, stem: str, required: tuple[str, ...]) -> tuple[pa.Table, Path]:
    paths = [folder / f"{stem}{suffix}" for suffix in _SUFFIXES]
    present = [path for path in paths if path.is_file()]
    if len(present) != 1:
        raise GraphError(
            f"{folder} holds {len(present)} of {paths[0].name} and {paths[1].name}, "
            "expected exactly one of them"
        )
    path = present[0]
    try:
        table = read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except (OSError, FileError, pa.ArrowException, UnicodeDecodeError) as error:
        raise GraphError(
            f"{path} cannot be read ({error}); expected a {path.suffix[1:]} table with the columns "
            f"{', '.join(required)}"
        ) from error
    names = table.column_names
    if twice := repeated_names(names):
        raise GraphError(f"{path}: column {twice[0]!r} occurs twice, expected distinct names")
    for column in required:
        if column not in names:
            raise GraphError(
                f"{path}: no column {column!r} among {', '.join(map(repr, names[:8]))}; "
                f"expected {', '.join(required)}"
            )
    return table, path


def _read_csv(path: Path) -> pa.Table:
    """Read ids, labels and split as text, so that "007" stays, and all numbers as float64.

    The types are set here because Arrow infers them from the first block only, and would refuse 0.5
    after a block of integers.
    """
    check_file(path)
    with csv.open_csv(path) as first_block:
        fields = list(first_block.schema)
    types = {name: pa.string() for name in _TEXT_COLUMNS}
    for field in fields:
        if field.name not in types and (pa.types.is_integer(field.type) or field.type == pa.null()):
            types[field.name] = pa.float64()
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=types))


def _refuse(wrong: Any, column: Any, where: str, expected: str) -> None:
    """Raise a `GraphError` about the first entry of `column` where the mask `wrong` is true."""
    mask = np.asarray(wrong)
    if mask.any():
        row = int(mask.argmax())
        value = column[row].as_py()
        given = "nothing" if value in (None, "") else repr(value)
        raise GraphError(f"{where} holds {given} in data row {row}, expected {expected}")


def _id_type(types: list[pa.DataType]) -> pa.DataType:
    """Return the type to compare ids by: integers if all ids are integers, else text."""
    integer = all(pa.types.is_integer(each) and each != pa.uint64() for each in types)
    return pa.int64() if integer else pa.large_string()


def _read_ids(column: pa.ChunkedArray, kind: pa.DataType, where: str) -> pa.Array:
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(plain) or pa.types.is_large_string(plain) or plain == pa.null()
    if not text and not pa.types.is_integer(plain):
        raise GraphError(f"{where} is of type {plain}, expected integers or text")
    ids = column.cast(plain).cast(kind)
    empty = pc.is_null(ids) if kind == pa.int64() else pc.fill_null(pc.equal(ids, ""), True)
    _refuse(empty, ids, where, "an id")
    return joined(ids)


def _read_ends(column: pa.ChunkedArray, ids: pa.Array, where: str, nodes: str) -> NDArray[Any]:
    """Return the node numbers of the ids in `column`, (E,)."""
    ends = _read_ids(column, ids.type, where)
    numbers = pc.index_in(ends, value_set=ids)
    _refuse(
        numbers.is_null(),
        ends,
        where,
        f"an id of {nodes} (blanks count): add the node or drop the edge",
    )
    return np.asarray(numbers)


def _names(ids: pa.Array) -> NDArray[np.str_] | None:
    """Return the ids as text; None if they are the row numbers."""
    if ids.equals(pa.array(np.arange(len(ids))).cast(ids.type)):
        return None
    text: NDArray[np.str_] = ids.to_numpy(zero_copy_only=False).astype(np.str_)
    return text


def _feature_columns(nodes: pa.Table) -> list[str]:
    return [name for name in nodes.column_names if name not in ("id", "label", "split")]


def _read_features(nodes: pa.Table, path: Path) -> NDArray[np.float32] | None:
    """Return all feature columns side by side, (N, F); None if there are none."""
    names = _feature_columns(nodes)
    features = np.empty((nodes.num_rows, len(names)), np.float32)
    for number, name in enumerate(names):
        features[:, number] = _read_numbers(nodes[name], name, path, _PREPARED)
    return features if names else None


def _read_numbers(
    column: pa.ChunkedArray, name: str, path: Path, hint: str = ""
) -> NDArray[np.float32]:
    """Return a column of numbers or booleans as float32; `hint` ends the message of a refusal."""
    kind, where = column.type, f"{path}: column {name!r}"
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        column = pc.cast(column, pa.float64(), safe=False)
    elif not pa.types.is_floating(kind):
        _refuse(column.is_valid(), column, where, f"a number: encode or drop the column{hint}")
    _refuse(column.is_null(), column, where, f"a number: fill it or drop the column{hint}")
    return np.asarray(pc.cast(column, pa.float32(), safe=False))


def _read_labels(
    nodes: pa.Table, where: str
) -> tuple[NDArray[np.int64] | None, NDArray[np.str_] | None]:
    """Return class indices, (N,), `MISSING_LABEL` where missing, and the class names, (C,).

    Both are None without the column; the names are None if the labels are class indices.
    """
    if "label" not in nodes.column_names:
        return None, None
    values = _label_values(nodes["label"], where)
    codes, class_names = values.drop_null(), None
    if codes.type != pa.int64() or pc.any(pc.less(codes, 0)).as_py():
        classes = pc.unique(codes)
        classes = classes.take(pc.array_sort_indices(classes))
        codes = pc.index_in(codes, value_set=classes)
        class_names = classes.to_numpy(zero_copy_only=False).astype(np.str_)
    labels = np.full(len(values), MISSING_LABEL, np.int64)
    labels[np.asarray(values.is_valid())] = np.asarray(codes)
    return labels, class_names


def _label_values(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return the column as int64 if all labels are integers, else as text; null where missing."""
    if pa.types.is_floating(column.type):
        # pandas turns integers with gaps into floating-point numbers with NaN.
        column = column.cast(pa.float64())
        numbers = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
        whole = pc.and_(
            pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), _WHOLE_FLOATS)
        )
        _refuse(pc.invert(pc.fill_null(whole, True)), numbers, where, "integers or text")
        return numbers.cast(pa.int64(), safe=False)
    text = _as_text(column, where)
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    if pc.all(pc.match_substring_regex(text, r"^-?\d{1,18}(\.0)?$")).as_py() is False:
        return text
    return pc.replace_substring_regex(text, r"\.0$", "").cast(pa.int64())


def _as_text(column: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise GraphError(f"{where} is of type {column.type}, expected text") from error


def _read_split(nodes: pa.Table, labels: NDArray[np.int64] | None, where: str) -> Split | None:
    """Return the split in the column `split`; None if the column is missing or empty."""
    if "split" not in nodes.column_names:
        return None
    column = _as_text(nodes["split"], where)
    subsets, unknown = read_subsets(joined(column))
    _refuse(unknown, column, where, SUBSET_HELP)
    given = np.asarray(pc.fill_null(pc.not_equal(column, ""), False))
    unlabelled = given if labels is None else given & (labels == MISSING_LABEL)
    _refuse(unlabelled, column, where, "nothing, since the node has no label: add one")
    return Split(**subsets) if given.any() else None

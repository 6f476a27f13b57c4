"""Damage that knows a format: arrays, tables, models and sealed documents with wrong contents."""

import json
import random
from pathlib import Path
from typing import Any

from hostile.damage import change_value

_CELLS = ("", "nan", "inf", "1e999", "-1", "9" * 5000, "=cmd", '"', "\udcff", "a\0b", "n1", "x;y")


def change_arrays(path: Path, rng: random.Random) -> None:
    """Give one array of an npz file another type, shape or content."""
    import numpy as np

    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    kind = rng.randrange(9)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = array.reshape(-1)[: max(array.size // 2, 0)]
    elif kind == 2:
        arrays[name] = array.astype(np.str_)
    elif kind == 3:
        arrays[name] = np.full(array.shape, np.nan)
    elif kind == 4:
        arrays[name] = np.full(array.shape, -(2**40))
    elif kind == 5:
        arrays[name] = np.full(array.shape, 2**62)
    elif kind == 6:
        arrays[name] = np.float64(1e300)
    elif kind == 7:
        arrays[name] = array[None, ...]
    else:
        arrays[name] = np.empty((0, *array.shape[1:]), array.dtype)
    np.savez(path, **arrays)


def change_cell(path: Path, rng: random.Random) -> None:
    """Write a hostile text into one cell of a CSV file or one line of a list."""
    lines = path.read_bytes().decode().splitlines()
    place = rng.randrange(len(lines))
    cells = lines[place].split(",")
    cells[rng.randrange(len(cells))] = rng.choice(_CELLS)
    if rng.random() < 0.2:
        cells.append("more")
    lines[place] = ",".join(cells)
    path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))


def change_column(path: Path, rng: random.Random) -> None:
    """Give one column of a Parquet file another type, name or content."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    place = rng.randrange(table.num_columns)
    name, rows = table.column_names[place], table.num_rows
    columns: list[Any] = [
        pa.nulls(rows),
        pa.array([float("nan")] * rows),
        pa.array([2**62] * rows),
        pa.array(["x"] * rows),
        pa.array([b"\xff"] * rows),
        pa.array([[1]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([True] * rows),
        pa.array([1e300] * rows),
    ]
    kind = rng.randrange(len(columns) + 3)
    if kind < len(columns):
        table = table.set_column(place, name, columns[kind])
    elif kind == len(columns):
        table = table.drop_columns([name])
    elif kind == len(columns) + 1:
        table = table.rename_columns(
            ["two\nlines" if each == name else each for each in table.column_names]
        )
    else:
        table = table.slice(0, 0)
    parquet.write_table(table, path)


def forge_document(path: Path, rng: random.Random) -> None:
    """Change an entry of a JSON document and seal it again, so that the entry is looked at."""
    from gpn_scale.block_checksums import text_checksum
    from gpn_scale.ppr.sealed import sealed

    document = json.loads(path.read_text())
    seal = document.pop("checksum", None)
    document = change_value(document, rng)
    if seal is not None and "format_version" in document and path.name != "graph.json":
        path.write_text(sealed(document) if _is_finite(document) else json.dumps(document))
        return
    if seal is not None:
        document["checksum"] = text_checksum(json.dumps(document, sort_keys=True))
    path.write_text(json.dumps(document, indent=2))


def _is_finite(document: Any) -> bool:
    """Return whether JSON can hold a document."""
    return "NaN" not in json.dumps(document)


def forge_model(path: Path, rng: random.Random) -> None:
    """Change a fact in the header of a model or checkpoint file, and leave out its checksum."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if rng.random() < 0.8:
        facts = json.loads(header["__metadata__"]["facts"])
        facts.pop("checksum", None)
        header["__metadata__"]["facts"] = json.dumps(change_value(facts, rng))
    else:
        header = change_value(header, rng)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])

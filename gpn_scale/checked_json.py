"""JSON documents that contain their own checksum, so that readers detect damage.

Documents without the entry `checksum` are not checked: earlier versions did not write it, and a
user who edits a document may remove it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpn_scale.block_checksums import text_checksum
from gpn_scale.errors import FileError
from gpn_scale.files import write_json
from gpn_scale.reading import read_json

CHECKSUM = "checksum"
"""Entry of a document that holds the checksum of all other entries."""


def json_checksum(values: Mapping[str, Any]) -> str:
    """Return the checksum of an object; the order of its entries does not matter.

    >>> json_checksum({"a": 1, "b": 2}) == json_checksum({"b": 2, "a": 1, "checksum": "f00d"})
    True
    """
    rest = {key: value for key, value in values.items() if key != CHECKSUM}
    return text_checksum(json.dumps(rest, sort_keys=True))


def write_checked_json(path: Path, values: Mapping[str, Any]) -> None:
    """Replace the content of the file `path` with an object and its checksum, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_checked_json(Path(folder, "facts.json"), {"epochs": 30})
    ...     read_checked_json(Path(folder, "facts.json"))
    {'epochs': 30}

    Raises:
        ValueError: the object holds NaN or infinity, which JSON does not have.
    """
    write_json(path, {**values, CHECKSUM: json_checksum(values)})


def read_checked_json(path: Path) -> dict[str, Any]:
    """Return the object in the file `path`, without its checksum.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_checked_json(Path(folder, "facts.json"), {"epochs": 30})
    ...     _ = Path(folder, "facts.json").write_text(
    ...         Path(folder, "facts.json").read_text().replace("30", "31")
    ...     )
    ...     read_checked_json(Path(folder, "facts.json"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: .../facts.json is damaged: its checksum is ..., expected ...

    Raises:
        FileError: the file is not a regular file or not JSON, does not hold an object, or its
            checksum is wrong.
        OSError: the file does not exist or cannot be read.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise FileError(f"{path} holds {type(values).__name__}, expected an object")
    wanted = values.pop(CHECKSUM, None)
    if wanted is not None and (actual := json_checksum(values)) != wanted:
        raise FileError(f"{path} is damaged: its checksum is {actual}, expected {wanted}")
    return values

"""JSON files of a store, which contain their own checksum, and replacement of a store's files."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from gpn_scale.errors import FileError, StoreError
from gpn_scale.files import replacing
from gpn_scale.reading import open_file, parse_json, read_bytes, read_text

FORMAT = "gpn_scale.ppr"
FORMAT_VERSION = 4
REBUILD = "build the store again with existing='overwrite'"
RESUME = "continue the build with existing='resume'"
REBUILD_ARGUMENTS, RESUME_ARGUMENTS = ("existing=overwrite",), ("existing=resume",)
"""Names under which `gpn_scale.flags` knows the commands for `REBUILD` and `RESUME`."""


def sealed(value: Mapping[str, Any]) -> str:
    """Return `value` as JSON text with its own checksum in it; equal values give equal texts.

    >>> sorted(json.loads(sealed({"k": 32})))
    ['checksum', 'k']
    """
    bare = {key: part for key, part in value.items() if key != "checksum"}
    return _to_json(bare | {"checksum": checksum(_to_json(bare).encode())})


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the value of a file whose text is from `sealed`.

    >>> from tempfile import TemporaryDirectory
    >>> value = {"format": FORMAT, "format_version": FORMAT_VERSION, "k": 32}
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "facts.json").write_text(sealed(value))
    ...     read_sealed(Path(folder) / "facts.json")["k"]
    32

    Raises:
        StoreError: the file is missing, damaged, or of another kind or format version.
    """
    try:
        text = read_text(path)
        value = parse_json(text, "its text")
    except OSError as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    except ValueError as error:
        raise StoreError(f"{path} is corrupt or not part of a PPR store ({error})") from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StoreError(f"{path} is corrupt or not part of a PPR store")
    if (version := value.get("format_version")) != FORMAT_VERSION:
        raise StoreError(
            f"{path}: format version: stored {version!r}, wanted {FORMAT_VERSION}; {REBUILD}",
            arguments=REBUILD_ARGUMENTS,
        )
    if text != sealed(value):
        raise StoreError(
            f"{path} is corrupt: wrong checksum; to repair it, {RESUME}",
            arguments=RESUME_ARGUMENTS,
        )
    return value


def as_stored(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value as it is read back from JSON, so that it can be compared with a stored one.

    >>> as_stored({"shape": (2, 3)})
    {'shape': [2, 3]}

    Raises:
        ValueError: `value` holds NaN or infinity, which JSON does not have.
    """
    stored: dict[str, Any] = parse_json(json.dumps(dict(value), allow_nan=False), "the value")
    return stored


def differences(
    stored: Mapping[str, Any], wanted: Mapping[str, Any], *, exact: bool = False
) -> str:
    """Return a clause that lists how `stored` differs from `wanted`, or an empty text.

    With `exact`, entries of `stored` that `wanted` does not have count as well, and 1 differs from
    1.0.

    >>> differences({"k": 32, "parameters": {"steps": "10"}}, {"parameters": {"steps": "inf"}})
    "parameter steps: stored '10', wanted 'inf'"
    """
    left, right = _flat(stored), _flat(wanted)
    clauses = []
    for name in sorted(left.keys() | right.keys() if exact else right.keys()):
        old, new = (repr(side[name]) if name in side else "nothing" for side in (left, right))
        if old != new and (exact or name not in left or left[name] != right[name]):
            clauses.append(f"{name}: stored {old}, wanted {new}")
    return "; ".join(clauses)


def _flat(build: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key.replace("_", " "): value for key, value in build.items() if key != "parameters"}
    return flat | {f"parameter {key}": value for key, value in build["parameters"].items()}


def checksum(data: bytes | bytearray) -> str:
    """Return the blake2b-128 hash of `data`.

    >>> checksum(b"abc")
    'cf4ab791c62b8d2b2109c90275287816'
    """
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def file_checksum(path: Path, start: int = 0, *, most_bytes: int | None = None) -> str:
    """Return the blake2b-128 hash of the bytes of `path` from offset `start` to the end.

    A damaged file may have grown without end; with `most_bytes`, a larger file is not read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "data").write_bytes(b"head:abc")
    ...     file_checksum(Path(folder) / "data", start=5) == checksum(b"abc")
    True

    Raises:
        StoreError: the file is missing, cannot be read, or is too large.
    """
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if most_bytes is not None and size > most_bytes:
                raise StoreError(
                    f"{path} is damaged: it has {size:,} bytes, expected at most {most_bytes:,}"
                )
            file.seek(start)
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    except (OSError, FileError) as error:
        raise StoreError(f"{path} is missing or cannot be read ({error})") from error
    return digest.hexdigest()


@contextmanager
def replacing_file(path: Path, num_bytes: int) -> Iterator[BinaryIO]:
    """Yield a file of `num_bytes` that replaces `path` if the block ends without an error.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing_file(Path(folder) / "data", num_bytes=3) as file:
    ...         _ = file.write(b"abc")
    ...     (Path(folder) / "data").read_bytes()
    b'abc'

    Raises:
        StoreError: the disk is full or not writable; no temporary file is left.
    """
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"disk full while writing {path}: free {num_bytes} bytes, then {RESUME}",
                arguments=RESUME_ARGUMENTS,
            ) from error
        raise StoreError(f"{path} cannot be written ({error})") from error


def write_if_other(path: Path, data: bytes) -> None:
    """Replace the content of the file `path` by `data`, unless it already holds these bytes.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_if_other(Path(folder) / "data", b"abc")
    ...     holds(Path(folder) / "data", b"abc")
    True

    Raises:
        StoreError: the disk is full or not writable; the file keeps its former content.
    """
    if not holds(path, data):
        with replacing_file(path, len(data)) as file:
            file.write(data)


def holds(path: Path, data: bytes) -> bool:
    """Return whether the file `path` exists and holds exactly `data`.

    >>> holds(Path("no_file"), b"")
    False
    """
    try:
        return path.stat().st_size == len(data) and read_bytes(path, len(data)) == data
    except (OSError, FileError):
        return False


def _to_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n"

"""Reads arrays from `.npz` archives whose content is not trusted."""

import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from gpn_scale.errors import FileError, GraphError
from gpn_scale.reading import file_size, open_file, unpacked_limit
from gpn_scale.scratch import MEMORY_BYTES, GrowingArray

UNREADABLE = (
    *(OSError, ValueError, EOFError, RuntimeError, MemoryError, TypeError, OverflowError),
    *(KeyError, SyntaxError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
"""Errors of NumPy and of zipfile about damaged files; RecursionError is a RuntimeError."""
_PART_BYTES = 1 << 24
_LENGTHS_OFFSET = 26
"""Where the header of a member of a zip archive has the lengths of its name and extras."""


def read_arrays(path: Path, is_wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    """Return the requested arrays of the archive `path`; other arrays are not read.

    Sizes are checked before memory is allocated: an archive that unpacks to far more than its own
    size, or an array whose shape needs more numbers than the archive holds, is refused.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.npz"
    ...     np.savez(path, x=[1, 2], y=[0])
    ...     read_arrays(path, lambda name: name == "x")
    {'x': array([1, 2])}

    Raises:
        GraphError: the file is missing, damaged or too large, or a wanted array is pickled.
    """
    try:
        file = open_file(path)  # opened here, because np.load leaves a damaged archive open
    except FileError as error:
        raise GraphError(f"{error} (a graph in .npz format is expected)") from error
    except OSError as error:
        raise GraphError(f"{path} cannot be opened ({error}): make it readable") from error
    with file:
        try:
            with _without_warnings():
                return _wanted_arrays(np.load(file, allow_pickle=False), path, is_wanted)
        except GraphError:
            raise
        except UNREADABLE as error:
            reason = str(error) or type(error).__name__
            raise GraphError(
                f"{path} cannot be read as .npz without pickle ({reason}); "
                "expected a complete file of plain arrays: write it again with np.savez"
            ) from error


def load_array(source: Path | BinaryIO, *, mapped: bool = False) -> NDArray[Any]:
    """Return the array in a `.npy` file, which is mapped if wanted and never unpickled.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> np.save(file, [1, 2])
    >>> _ = file.seek(0)
    >>> load_array(file)
    array([1, 2])

    Raises:
        ValueError: the file holds several arrays; and any other of `UNREADABLE` if it is damaged.
    """
    with _without_warnings():
        array = np.load(source, mmap_mode="r" if mapped else None, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("it is an archive of several arrays")
    return array


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence NumPy about headers that Python 2 wrote, and about damaged ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def mapped_arrays(
    path: Path,
    names: Sequence[str],
    directory: Path | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> dict[str, NDArray[Any]]:
    """Return arrays of the archive `path` that may be larger than memory.

    Uncompressed arrays become mapped parts of the archive. Compressed ones are unpacked into
    unnamed files, which disappear with the arrays. All are read once to check them.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.npz"
    ...     np.savez(path, x=[1, 2], y=[0])
    ...     x = mapped_arrays(path, ["x"])["x"]
    >>> type(x).__name__, x.tolist()
    ('memmap', [1, 2])

    Args:
        path: The archive.
        names: Names of the arrays.
        directory: Folder of temporary files; None for the system's default.
        memory_bytes: Size above which an array that was compressed is in a file.

    Raises:
        GraphError: the file is missing or damaged, an array is missing or pickled.
        ConfigError: there is too little space for a compressed array.
    """
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            for name in names:
                if f"{name}.npy" not in archive.namelist():
                    raise GraphError(f"{path} has no array {name!r}: download the file again")
            total = sum(_checked_bytes(archive, name, path) for name in names)
            if total > unpacked_limit(file_size(path)):
                raise GraphError(f"{path} unpacks to {total:,} bytes: download the file again")
            return {name: _mapped(archive, name, path, directory, memory_bytes) for name in names}
    except GraphError:
        raise
    except (FileError, *UNREADABLE) as error:
        reason = str(error) or type(error).__name__
        raise GraphError(
            f"{path} cannot be read as .npz without pickle ({reason}): download the file again"
        ) from error


def _mapped(
    archive: zipfile.ZipFile, name: str, path: Path, directory: Path | None, memory_bytes: int
) -> NDArray[Any]:
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as stream:
        shape, is_fortran, dtype = _read_header(stream, name)
        if dtype.hasobject:
            raise GraphError(f"{path}: array {name!r} is pickled: download the file again")
        begin = stream.tell()
        content = GrowingArray(np.uint8, directory, memory_bytes)
        is_stored = member.compress_type == zipfile.ZIP_STORED
        while part := stream.read(_PART_BYTES):  # the end of the stream checks the checksum
            if not is_stored:
                content.append(np.frombuffer(part, np.uint8))
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    if not is_stored:
        size = dtype.itemsize * math.prod(shape)
        return content.array()[:size].view(dtype).reshape(shape, order=order)
    offset = _content_offset(archive, member) + begin
    if not math.prod(shape):
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, mode="r", offset=offset, shape=shape, order=order)


def _content_offset(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return where the content of a member begins: behind its header, its name and its extras."""
    assert archive.fp is not None  # it is while the archive is open
    archive.fp.seek(member.header_offset + _LENGTHS_OFFSET)
    name_bytes, extra_bytes = struct.unpack("<HH", archive.fp.read(4))
    return member.header_offset + _LENGTHS_OFFSET + 4 + int(name_bytes) + int(extra_bytes)


def _wanted_arrays(
    opened: Any, path: Path, is_wanted: Callable[[str], bool]
) -> dict[str, NDArray[Any]]:
    if not isinstance(opened, np.lib.npyio.NpzFile):
        raise GraphError(f"{path} holds one bare array, expected an .npz archive of several")
    with opened:
        assert opened.zip is not None  # it is while the archive is open
        names = [name for name in opened.files if is_wanted(name)]
        limit, total = unpacked_limit(file_size(path)), 0
        for name in names:
            total += _checked_bytes(opened.zip, name, path)
        if total > limit:
            raise GraphError(
                f"{path} unpacks to {total:,} bytes, expected at most {limit:,} of a file of its "
                "size: write it again with np.savez"
            )
        return {name: opened[name] for name in names}


def _checked_bytes(archive: zipfile.ZipFile, name: str, path: Path) -> int:
    """Return the unpacked size of an array, after checking it against the array's shape."""
    members = archive.namelist()
    member = archive.getinfo(f"{name}.npy" if f"{name}.npy" in members else name)
    with archive.open(member) as stream:
        shape, _, dtype = _read_header(stream, name)
    count = 1
    for length in shape:
        count *= length
    if min(shape, default=0) < 0 or count * max(dtype.itemsize, 1) > member.file_size:
        if dtype.hasobject:  # NumPy says that it is pickled
            return member.file_size
        raise GraphError(
            f"{path}: array {name!r} of shape {shape} and type {dtype} does not fit the "
            f"{member.file_size:,} bytes that the file holds of it: write it again with np.savez"
        )
    return member.file_size


def _read_header(stream: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether the order is Fortran's, and type of the array in a stream."""
    version = npy_format.read_magic(stream)
    read_header = {
        (1, 0): npy_format.read_array_header_1_0,
        (2, 0): npy_format.read_array_header_2_0,
    }.get(version)
    if read_header is None:  # version 3 has names of fields, which no graph has
        raise ValueError(f"array {name!r} is of version {version[0]} of the .npy format")
    shape, is_fortran, dtype = read_header(stream)
    return shape, is_fortran, dtype

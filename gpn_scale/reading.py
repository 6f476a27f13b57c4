"""The only code that opens files for reading: regular files of bounded size and depth.

The content of a file is never trusted. A pipe, a device, a socket or a folder in place of a file is
refused at once, without waiting for it. So is a text, a JSON document or an archive that would take
more memory than a file of its kind needs.
"""

import gzip
import io
import json
import math
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from gpn_scale.errors import FileError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TEXT_BYTES = 1 << 30
"""Largest size in bytes of a text file that is read as a whole."""
JSON_BYTES = 64 << 20
"""Largest size in bytes of a JSON document."""
JSON_DEPTH = 64
"""Largest depth of nested objects and lists in a JSON document."""
UNPACKED_BYTES = 256 << 20
"""Number of unpacked bytes that any compressed file may hold."""
UNPACKED_FACTOR = 200
"""Largest ratio of unpacked to packed size beyond this limit; zip bombs have about 1000."""

_PADDING_BYTES = 1 << 16
"""Number of zero bytes at the end of a gzip file that is too large for legitimate padding."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_file(path: Path | str) -> io.BufferedReader:
    """Open the regular file `path` for reading bytes; never blocks.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file, open_file(file.name) as opened:
    ...     opened.read()
    b''

    Raises:
        FileError: the path does not lead to a regular file, or is not a valid path.
        OSError: the file does not exist or cannot be opened.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (ValueError, OverflowError) as error:  # a zero byte, or a surrogate
        raise FileError(f"{str(path)!r} cannot be the path of a file ({error})") from error
    try:
        _check_kind(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_file(path: Path | str) -> None:
    """Refuse a path that does not lead to a regular file, before another package reads it.

    >>> check_file("/dev/null")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: /dev/null is a device, expected a regular file

    Raises:
        FileError: see `open_file`.
        OSError: the file does not exist or cannot be opened.
    """
    open_file(path).close()


def file_size(path: Path | str) -> int:
    """Return the size in bytes of the regular file `path`.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     file_size(file.name)
    0

    Raises:
        FileError: see `open_file`.
        OSError: the file does not exist or cannot be opened.
    """
    with open_file(path) as file:
        return os.fstat(file.fileno()).st_size


def read_bytes(path: Path | str, limit: int) -> bytes:
    """Return the content of the file `path`, which may have at most `limit` bytes.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     _ = file.write(b"12345")
    ...     file.flush()
    ...     read_bytes(file.name, 5)
    b'12345'

    Raises:
        FileError: the file is larger, or not a regular file.
        OSError: the file does not exist or cannot be read.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > limit else file.read(limit + 1)  # it may have grown since
    if size > limit or len(content) > limit:
        raise FileError(
            f"{path} holds {max(size, len(content)):,} bytes, expected at most {limit:,}"
        )
    return content


def read_text(path: Path | str, limit: int = TEXT_BYTES) -> str:
    """Return the text of the UTF-8 file `path`, which may have at most `limit` bytes.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     read_text(file.name)
    ''

    Raises:
        FileError: the file is larger, not UTF-8, or not a regular file.
        OSError: the file does not exist or cannot be read.
    """
    content = read_bytes(path, limit)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not text in UTF-8 (byte {error.start + 1:,} is {content[error.start]:#04x})"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: Path | str, limit: int = JSON_BYTES, *, allow_nan: bool = False) -> Any:
    """Return the value of the JSON document in the file `path`; see `parse_json`.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w") as file:
    ...     json.dump({"epochs": 30}, file)
    ...     file.flush()
    ...     read_json(file.name)
    {'epochs': 30}

    Raises:
        FileError: the file is larger than `limit` bytes, not a regular file, or not such a
            document.
        OSError: the file does not exist or cannot be read.
    """
    return parse_json(read_text(path, limit), str(path), allow_nan=allow_nan)


def parse_json(text: str | bytes, what: str, *, allow_nan: bool = False) -> Any:
    """Return the value of a JSON document whose content is not trusted.

    >>> parse_json('{"epochs": 30}', "config")
    {'epochs': 30}
    >>> parse_json("[" * 10_000, "config")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: config is not JSON that can be read (nested more than 64 deep)

    Args:
        text: The document.
        what: Name of the document in messages.
        allow_nan: Whether NaN, Infinity and numbers too large for float64 are allowed.

    Raises:
        FileError: the text is not JSON, nested too deeply, or holds a number that is not allowed.
    """
    constant = float if allow_nan else _refuse_constant
    number = float if allow_nan else _finite
    try:
        value = json.loads(text, parse_constant=constant, parse_float=number)
        _check_depth(value)
    except RecursionError as error:
        reason = f"nested more than {JSON_DEPTH} deep"
        raise FileError(f"{what} is not JSON that can be read ({reason})") from error
    except ValueError as error:
        reason = "a number has too many digits" if "digits" in str(error) else str(error)
        raise FileError(f"{what} is not JSON that can be read ({reason})") from error
    return value


def open_gzip(path: Path | str) -> io.BufferedReader:
    """Return the unpacked content of a gzip file as a stream of bounded size.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     _ = file.write(gzip.compress(b"1,2"))
    ...     file.flush()
    ...     with open_gzip(file.name) as stream:
    ...         stream.read()
    b'1,2'

    Raises:
        FileError: the path does not lead to a regular file. Reading the stream raises it too, if
            the content exceeds both `UNPACKED_BYTES` and `UNPACKED_FACTOR` times the file's size.
        OSError: the file does not exist or cannot be opened.
    """
    packed = open_file(path)
    size = os.fstat(packed.fileno()).st_size
    limit = unpacked_limit(size)
    if size > _PADDING_BYTES:
        packed.seek(-_PADDING_BYTES, os.SEEK_END)
        is_padded = not any(packed.read(_PADDING_BYTES))
        packed.seek(0)
        if is_padded:
            packed.close()
            raise FileError(
                f"{path} ends with more than {_PADDING_BYTES:,} zero bytes, so it was never "
                "completely written: write it again"
            )
    return io.BufferedReader(_BoundedGzip(packed, limit, str(path)), 1 << 20)


def unpacked_limit(packed_bytes: int) -> int:
    """Return how many bytes a compressed file of this size may hold.

    >>> unpacked_limit(10) == UNPACKED_BYTES, unpacked_limit(1 << 30) == UNPACKED_FACTOR << 30
    (True, True)
    """
    return max(UNPACKED_BYTES, UNPACKED_FACTOR * packed_bytes)


class _BoundedGzip(io.RawIOBase):
    """Stream that unpacks a gzip file, and raises a `FileError` beyond `limit` bytes."""

    def __init__(self, packed: BinaryIO, limit: int, path: str) -> None:
        self._packed = packed
        self._unpacked = gzip.GzipFile(fileobj=packed)
        self._limit, self._path, self._done = limit, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        count = self._unpacked.readinto(buffer)
        self._done += count
        if self._done > self._limit:
            raise FileError(
                f"{self._path} holds more than {self._limit:,} bytes when unpacked, which is more "
                "than a table of its size can hold"
            )
        return count

    def close(self) -> None:
        if not self.closed:
            self._unpacked.close()
            self._packed.close()
        super().close()


def _check_kind(facts: os.stat_result, path: Path | str) -> None:
    if not stat.S_ISREG(facts.st_mode):
        kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "no regular file")
        step = ""
        if stat.S_ISFIFO(facts.st_mode):  # such as <(...) of a shell
            step = ": write its output to a file, and name that file"
        raise FileError(f"{path} is {kind}, expected a regular file{step}")


def _check_depth(value: Any) -> None:
    """Raise a RecursionError if lists and objects are more than `JSON_DEPTH` deep."""
    level = [value]
    for _ in range(JSON_DEPTH + 1):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += [child for child in each.values() if isinstance(child, dict | list)]
            elif isinstance(each, list):
                inner += [child for child in each if isinstance(child, dict | list)]
        if not inner:
            return
        level = inner
    raise RecursionError


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds {name}, expected finite numbers")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds {text[:40]}, expected finite numbers")
    return number

"""Arrays of a store, such as one number per node: read whole, checked, and written atomically."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.npz_arrays import UNREADABLE, load_array
from gpn_scale.errors import FileError, StoreError
from gpn_scale.ppr.sealed import (
    RESUME,
    RESUME_ARGUMENTS,
    checksum,
    file_checksum,
    replacing_file,
)
from gpn_scale.reading import read_bytes

_HEADER_BYTES = 1 << 16


def most_file_bytes(count: int) -> int:
    """Return the largest size of a `.npy` file of `count` numbers.

    >>> most_file_bytes(1_000_000) > 8_000_000
    True
    """
    return _HEADER_BYTES + 16 * count


def read_node_file(path: Path, wanted: str, dtype: str, size: int, *, below: float) -> NDArray[Any]:
    """Return the vector in a `.npy` file of a store, after checking it.

    The file is read, not mapped: 4 bytes per node, of which a training uses all.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "clusters.npy"
    ...     np.save(path, np.array([0, 1, 0], np.int32))
    ...     wanted = checksum(path.read_bytes())
    ...     read_node_file(path, wanted, "<i4", 3, below=2)
    array([0, 1, 0], dtype=int32)

    Args:
        path: The file.
        wanted: Its checksum, from the manifest.
        dtype: Type of the numbers.
        size: Expected number of elements.
        below: Upper limit of the elements, which must be at least 0 and below it.

    Raises:
        StoreError: the file is missing, damaged, or does not hold such a vector.
    """
    try:
        data = read_bytes(path, most_file_bytes(size))
    except (OSError, FileError) as error:
        raise StoreError(
            f"{path} is missing or cannot be read ({error}); to repair it, {RESUME}",
            arguments=RESUME_ARGUMENTS,
        ) from error
    if (actual := checksum(data)) != wanted:
        raise _damage(path, f"its checksum is {actual}, expected {wanted}")
    stream = io.BytesIO(data)
    try:
        values = load_array(stream)
    except UNREADABLE as error:
        raise _damage(path, str(error) or type(error).__name__) from error
    if values.dtype.str != dtype or values.shape != (size,):
        raise _damage(path, f"it holds {values.dtype} of shape {values.shape}")
    if stream.tell() != len(data):
        raise _damage(path, f"{len(data) - stream.tell():,} bytes follow its numbers")
    if size and not (values.min() >= 0 and values.max() < below):
        raise _damage(path, f"a number is out of the range [0, {below})")
    return values


def _damage(path: Path, problem: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {problem}; to repair it, {RESUME}", arguments=RESUME_ARGUMENTS
    )


def write_node_file(path: Path, array: NDArray[Any]) -> None:
    """Write an array to the `.npy` file `path`, unless the file already holds it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_node_file(Path(folder) / "ids.npy", np.array([3, 5]))
    ...     np.load(Path(folder) / "ids.npy")
    array([3, 5])

    Raises:
        StoreError: the disk is full or not writable; `path` keeps its former content.
    """
    data = np.ascontiguousarray(array)
    header = _npy_header(data)
    digest = hashlib.blake2b(header, digest_size=16)
    digest.update(data.view(np.uint8).data)
    size = len(header) + data.nbytes
    if path.is_file() and path.stat().st_size == size and file_checksum(path) == digest.hexdigest():
        return
    with replacing_file(path, size) as file:
        file.write(header)
        file.write(data.view(np.uint8).data)


def npy_bytes(array: NDArray[Any]) -> bytes:
    """Return the content of a `.npy` file.

    >>> np.load(io.BytesIO(npy_bytes(np.array([3, 5]))))
    array([3, 5])
    """
    return _npy_header(array) + array.tobytes()


def _npy_header(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, np.lib.format.header_data_from_array_1_0(array))
    return buffer.getvalue()

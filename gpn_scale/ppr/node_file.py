"""Arrays of a store that hold one number per node or root, read whole and checked."""

import io
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gpn_scale.data.npz_arrays import UNREADABLE, load_array
from gpn_scale.errors import FileError, StoreError
from gpn_scale.ppr.sealed import RESUME, RESUME_ARGUMENTS, checksum
from gpn_scale.reading import read_bytes

_HEADER_BYTES = 1 << 16


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
        size: Number of the numbers.
        below: They are at least 0 and below this.

    Raises:
        StoreError: the file is missing, damaged, or not such a vector.
    """
    try:
        data = read_bytes(path, _HEADER_BYTES + 16 * size)
    except (OSError, FileError) as error:
        raise StoreError(
            f"{path} is missing or cannot be read ({error}); to repair it, {RESUME}",
            arguments=RESUME_ARGUMENTS,
        ) from error
    if (actual := checksum(data)) != wanted:
        raise _damage(path, f"its checksum is {actual}, expected {wanted}")
    try:
        values = load_array(io.BytesIO(data))
    except UNREADABLE as error:
        raise _damage(path, str(error) or type(error).__name__) from error
    if values.dtype.str != dtype or values.shape != (size,):
        raise _damage(path, f"it holds {values.dtype} of shape {values.shape}")
    if size and not (values.min() >= 0 and values.max() < below):
        raise _damage(path, f"a number is out of the range [0, {below})")
    return values


def _damage(path: Path, problem: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: {problem}; to repair it, {RESUME}", arguments=RESUME_ARGUMENTS
    )

"""Large arrays in temporary files that disappear with the last array that maps them."""

import mmap
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import ConfigError
from gpn_scale.files import scratch_map


def scratch_array(
    shape: tuple[int, ...], directory: Path | None, dtype: type[np.generic] = np.float32
) -> NDArray[Any]:
    """Return an array of zeros in an unnamed file of `directory` (None: the system's default).

    The file disappears when no array maps it any more, however the process ends.

    >>> scratch_array((2, 3), directory=None).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]

    Raises:
        ConfigError: the directory does not exist, is not writable or has too little space.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        return np.ndarray(shape, dtype, scratch_map(directory, max(size, 1)))
    except OSError as error:
        raise ConfigError(
            f"the scratch directory {directory or tempfile.gettempdir()} cannot hold {size:,} bytes"
            f" ({error}): pass another scratch=, or a larger memory_bytes=",
            arguments=("memory_bytes",),
        ) from error


def release_pages(*arrays: NDArray[Any] | None) -> None:
    """Return the memory of memory-mapped arrays to the system; their content does not change.

    >>> array = scratch_array((3,), directory=None)
    >>> array[:] = 7.0
    >>> release_pages(array)
    >>> array.tolist()
    [7.0, 7.0, 7.0]
    """
    for array in arrays:
        base: Any = array
        private = False
        while isinstance(base, np.ndarray):
            private |= getattr(base, "mode", "") == "c"  # such pages exist nowhere else
            base = base.base
        if isinstance(base, mmap.mmap) and not private and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)

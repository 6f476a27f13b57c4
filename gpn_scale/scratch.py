"""Large arrays in files that vanish with the last array that maps them."""

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import ConfigError


def scratch_array(
    shape: tuple[int, ...], directory: Path | None, dtype: type[np.generic] = np.float32
) -> NDArray[Any]:
    """Zeros in a file without a name in `directory` (None: the system's for such files).

    The file is gone when nobody maps it any more, however the process ends.

    Raises:
        ConfigError: the directory cannot hold it.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            # Without its blocks the file would be made, and the process killed when they run out.
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
            return np.memmap(file, dtype, mode="r+", shape=shape)
    except OSError as error:
        raise ConfigError(
            f"the scratch directory {directory or tempfile.gettempdir()} cannot hold {size:,} bytes"
            f" ({error}): name another one, or allow more memory"
        ) from error


def release_pages(*arrays: NDArray[Any] | None) -> None:
    """Hands the memory of arrays that are mapped files back; their content stays as it is."""
    for array in arrays:
        mapping = getattr(array, "_mmap", None)
        private = getattr(array, "mode", "") == "c"  # whose pages live nowhere else
        if mapping is not None and not private and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)

"""Large arrays in temporary files that disappear with the last array that maps them."""

import mmap
import tempfile
import weakref
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpn_scale.errors import ConfigError
from gpn_scale.files import scratch_map

MEMORY_BYTES = 1 << 26
"""Size above which a `GrowingArray` goes to a file."""
_ADVICE = "pass another scratch=, or a larger memory_bytes="


def scratch_array(
    shape: tuple[int, ...],
    directory: Path | None,
    dtype: DTypeLike = np.float32,
    *,
    advice: str = _ADVICE,
) -> NDArray[Any]:
    """Return an array of zeros in an unnamed file of `directory` (None: the system's default).

    The file disappears when no array maps it any more, however the process ends.

    >>> scratch_array((2, 3), directory=None).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]

    Args:
        shape: Shape of the array.
        directory: Folder of the file.
        dtype: Type of the elements.
        advice: What the error suggests if there is too little space.

    Raises:
        ConfigError: the directory does not exist, is not writable or has too little space.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        return np.ndarray(shape, dtype, scratch_map(directory, max(size, 1)))
    except OSError as error:
        raise _too_small(directory, size, error, advice) from error


class GrowingArray:
    """A vector that grows at its end: in memory and, once it is large, in an unnamed file.

    >>> ids = GrowingArray(np.int32, directory=None, memory_bytes=4)
    >>> ids.append(np.array([3, 1]))
    >>> ids.append(np.array([4]))
    >>> ids.array().tolist(), len(ids)
    ([3, 1, 4], 3)

    Args:
        dtype: Type of the elements.
        directory: Folder of the file; None for the system's default.
        memory_bytes: Size above which the vector moves to a file.
    """

    def __init__(
        self, dtype: DTypeLike, directory: Path | None, memory_bytes: int = MEMORY_BYTES
    ) -> None:
        self._dtype, self._directory, self._limit = np.dtype(dtype), directory, memory_bytes
        self._parts: list[NDArray[Any]] = []
        self._file: BinaryIO | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> None:
        """Add a vector, converted to the type of the array.

        Raises:
            ConfigError: the directory does not exist, is not writable or has too little space.
        """
        part = np.array(values, self._dtype)
        self._length += len(part)
        size = self._length * self._dtype.itemsize
        if self._file is None and size <= self._limit:
            self._parts.append(part)
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 # it stays
                weakref.finalize(self, self._file.close)
            for each in (*self._parts, part):
                self._file.write(each.view(np.uint8).data)
            self._file.flush()
        except OSError as error:
            raise _too_small(self._directory, size, error, "free some disk space") from error
        self._parts = []

    def array(self) -> NDArray[Any]:
        """Return all elements; those in a file are mapped and read-only."""
        if self._file is None:
            return np.concatenate([np.empty(0, self._dtype), *self._parts])
        return np.memmap(self._file, self._dtype, mode="r", shape=(self._length,))


def _too_small(directory: Path | None, size: int, error: OSError, advice: str) -> ConfigError:
    return ConfigError(
        f"the scratch directory {directory or tempfile.gettempdir()} cannot hold {size:,} bytes"
        f" ({error}): {advice}",
        arguments=("memory_bytes",) if advice == _ADVICE else (),
    )


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

"""A hash of named arrays, which may be mapped and larger than memory."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.scratch import release_pages

_HASH_BYTES = 1 << 24


def array_hash(arrays: Iterable[tuple[str, NDArray[Any] | None]]) -> str:
    """Return a hash of names, types, shapes and contents; None stands for an absent array.

    >>> len(array_hash([("x", np.arange(3)), ("y", None)]))
    32
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, array in arrays:
        if array is None:
            continue
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        for part in byte_chunks(array):
            digest.update(part)
    return digest.hexdigest()


def byte_chunks(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield the bytes of an array in C order; a mapped array is read part by part.

    >>> [part.tolist() for part in byte_chunks(np.array([1, 2], np.int16))]
    [[1, 0, 2, 0]]
    """
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), _HASH_BYTES):
        yield flat[start : start + _HASH_BYTES].data
        release_pages(array)

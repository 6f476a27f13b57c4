"""Rounding of float64 numbers in one direction, so that bounds stay bounds in smaller types."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True, inline="always")
def rounded_down(value: float) -> np.float32:
    """Return the largest float32 that is not above a non-negative float64; compiled.

    >>> rounded_down(0.1) <= 0.1, rounded_down(0.75)
    (True, 0.75)
    """
    nearest = np.float32(value)
    # The next number below a positive one has the bits of the integer below; no branch, no call.
    bits = np.int32(nearest.view(np.int32) - np.int32(np.float64(nearest) > value))
    below: np.float32 = bits.view(np.float32)
    return below


@njit(cache=True, nogil=True, inline="always")
def sum_rounded_down(a: float, b: float) -> float:
    """Return a float64 that is not above the exact sum of two non-negative ones; compiled.

    Any number of such sums stays below the exact one.

    >>> sum_rounded_down(0.25, 0.5), sum_rounded_down(1.0, 2.0**-53 * 1.5) == 1.0
    (0.75, True)
    """
    total = a + b
    rest = total - a
    error = (a - (total - rest)) + (b - rest)  # total + error is the exact sum (Knuth's TwoSum)
    if error < 0.0:
        total = np.nextafter(total, 0.0)
    return total


def round_down_to_single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the largest float32 that is not above each non-negative value.

    >>> round_down_to_single(np.array([0.5, 0.1])) <= np.array([0.5, 0.1])
    array([ True,  True])
    """
    single = values.astype(np.float32)
    above = single > values
    single[above] = np.nextafter(single[above], np.float32(0.0))
    return single


def round_up_to_single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the smallest float32 that is not below each value.

    >>> round_up_to_single(np.array([0.5, 0.1])) >= np.array([0.5, 0.1])
    array([ True,  True])
    """
    single = values.astype(np.float32)
    below = single < values
    single[below] = np.nextafter(single[below], np.float32(np.inf))
    return single


def round_up_to_half(values: NDArray[np.floating[Any]]) -> NDArray[np.float16]:
    """Return the smallest float16 that is not below each value.

    >>> round_up_to_half(np.array([0.5, 0.1])) >= np.array([0.5, 0.1])
    array([ True,  True])
    """
    half = values.astype(np.float16)
    below = half < values
    half[below] = np.nextafter(half[below], np.float16(np.inf))
    return half

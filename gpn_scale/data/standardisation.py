"""Centre and scale of a column of numbers, independent of the order of its rows.

Shapes: N rows.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FARTHEST = 1e6
"""Largest standardised number. No number of a table of up to 10^12 rows is farther from its mean;
those of a later table count as this far."""

_CHUNK_ROWS = 1 << 16


class Standardisation(NamedTuple):
    """Centre and scale of a column of numbers.

    >>> Standardisation.of(np.array([1.0, 3.0]))
    Standardisation(centre=2.0, scale=1.0)
    """

    centre: float
    scale: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Standardisation":
        """Return mean and standard deviation of finite numbers, (N,); the scale of a constant is 1.

        The sums are exact, so that the order of the numbers makes no difference.
        """
        if not len(values):
            return cls(0.0, 1.0)
        low, high = float(values.min()), float(values.max())
        if low == high:
            return cls(low, 1.0)
        # Numbers divided by a power of two keep their digits, and their squares are finite.
        exponent = math.frexp(max(abs(low), abs(high)))[1]
        small = np.ldexp(values, -exponent)
        mean = math.fsum(_elements(small)) / len(small)
        deviation = math.sqrt(math.fsum(_elements((small - mean) ** 2)) / len(small))
        scale = math.ldexp(deviation, exponent)
        return cls(math.ldexp(mean, exponent), scale if scale > 0 else 1.0)

    def applied(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return standardised numbers, 0 for NaN, (N,).

        >>> Standardisation(centre=2.0, scale=4.0).applied(np.array([4.0, np.nan, 1e300])).tolist()
        [0.5, 0.0, 1000000.0]
        """
        with np.errstate(over="ignore"):
            scaled = (values - self.centre) / self.scale
        scaled[np.isnan(values)] = 0.0
        return np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)


def _elements(values: NDArray[np.float64]) -> Iterator[float]:
    """Yield all numbers; lists of a chunk are much faster to add up than arrays."""
    for start in range(0, len(values), _CHUNK_ROWS):
        yield from values[start : start + _CHUNK_ROWS].tolist()

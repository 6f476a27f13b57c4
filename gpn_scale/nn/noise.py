"""Random bits of a training step; a row gets the same bits on every rank."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

NOISE_ROWS = 128
"""Number of rows that share a generator; ranks divide batches at multiples of it."""

_MASK = 2**64 - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The increment and the two factors of splitmix64."""
_ROW_DRAWS = 2**20
"""Draws of 64 bits that a row's hashed noise has room for."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Source of the random bits of one step.

    Every block of `NOISE_ROWS` rows has its own generator, so ranks that divide the rows of a batch
    draw the same bits as a single process. On a GPU that would take an operation for every block,
    so there the bits are a hash of seed, row and column, of all rows and layers at once.

    >>> noise, cpu = Noise(rng_seed=1), torch.device("cpu")
    >>> bits = noise.bits(depth=0, rows=256, width=8, device=cpu)
    >>> second_half = noise.from_row(128).bits(depth=0, rows=128, width=8, device=cpu)
    >>> bits[128:].equal(second_half)
    True
    """

    rng_seed: int
    first_row: int = 0
    """Position of the first row in the whole batch, a multiple of `NOISE_ROWS`."""
    hashed: bool = False
    """Whether the bits are a hash, the same on every device, instead of a generator's."""

    @classmethod
    def drawn(
        cls, generator: torch.Generator, first_row: int = 0, *, hashed: bool = False
    ) -> "Noise":
        """Return the noise of a run's next step, drawn from the run's generator."""
        draw = torch.randint(2**63 - 1, (), generator=generator, device=generator.device)
        return cls(int(draw), first_row, hashed)

    def from_row(self, row: int) -> "Noise":
        """Return the noise of the rows that start at `row`, a multiple of `NOISE_ROWS`."""
        return replace(self, first_row=self.first_row + row)

    def bits(self, depth: int, rows: int, width: int, device: torch.device) -> Tensor:
        """Return independent uniform int16 numbers, (rows, width), for the layer `depth`."""
        num_draws = -(-width // 4)  # one draw of 64 bits serves four units
        if self.hashed:
            hashes = self._hashed(depth * num_draws, rows, num_draws, device)
            return hashes.view(torch.int16)[:, :width]
        draws = torch.empty(rows, num_draws, dtype=torch.int64, device=device)
        for start in range(0, rows, NOISE_ROWS):
            block = (self.first_row + start) // NOISE_ROWS
            generator = torch.Generator(device).manual_seed(self._seed(depth, block))
            draws[start : start + NOISE_ROWS].random_(-(2**63), None, generator=generator)
        return draws.view(torch.int16)[:, :width]

    def bits_of_layers(self, layers: int, rows: int, width: int, device: torch.device) -> Tensor:
        """Return `bits` of the first `layers` layers, (rows, layers, width).

        >>> noise, cpu = Noise(rng_seed=1, hashed=True), torch.device("cpu")
        >>> bits = noise.bits_of_layers(2, rows=3, width=8, device=cpu)
        >>> bits[:, 1].equal(noise.bits(depth=1, rows=3, width=8, device=cpu))
        True
        """
        if not self.hashed:
            bits = [self.bits(depth, rows, width, device) for depth in range(layers)]
            return torch.stack(bits, dim=1)
        num_draws = -(-width // 4)
        draws = self._hashed(0, rows, layers * num_draws, device).view(torch.int16)
        return draws.view(rows, layers, 4 * num_draws)[:, :, :width]

    def _hashed(self, first: int, rows: int, num_draws: int, device: torch.device) -> Tensor:
        """Return draws of 64 bits from the column `first` on: splitmix64 of their places."""
        kind: dict[str, Any] = {"dtype": torch.int64, "device": device}
        start = self.rng_seed + _GOLDEN * (1 + _ROW_DRAWS * self.first_row + first)
        row_N1 = torch.arange(rows, **kind).mul_(_signed(_GOLDEN * _ROW_DRAWS)).unsqueeze(1)
        column_W = torch.arange(num_draws, **kind).mul_(_signed(_GOLDEN)).add_(_signed(start))
        state = row_N1 + column_W
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            state.bitwise_xor_(_shifted(state, shift)).mul_(_signed(factor))
        return state.bitwise_xor_(_shifted(state, 31))

    def _seed(self, depth: int, block: int) -> int:
        """Return a seed mixed by splitmix64, since adjacent seeds give similar generators."""
        state = (self.rng_seed + _GOLDEN * (1 + 2**20 * depth + block)) & _MASK
        state = ((state ^ (state >> 30)) * _FIRST) & _MASK
        state = ((state ^ (state >> 27)) * _SECOND) & _MASK
        return (state ^ (state >> 31)) >> 1


def _signed(number: int) -> int:
    """Return the number modulo 2^64 as a signed one, which torch's products overflow like."""
    number &= _MASK
    return number - 2**64 if number >= 2**63 else number


def _shifted(draws: Tensor, bits: int) -> Tensor:
    """Return the draws shifted to the right without their sign."""
    return (draws >> bits).bitwise_and_(2 ** (64 - bits) - 1)

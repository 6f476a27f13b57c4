"""Random bits of a training step; a row gets the same bits on every rank."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

NOISE_ROWS = 128
"""Number of rows that share a generator; ranks divide batches at multiples of it."""

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Noise:
    """Source of the random bits of one step.

    Every block of `NOISE_ROWS` rows has its own generator, so ranks that divide the rows of a batch
    draw the same bits as a single process.

    >>> noise, cpu = Noise(rng_seed=1), torch.device("cpu")
    >>> bits = noise.bits(depth=0, rows=256, width=8, device=cpu)
    >>> second_half = noise.from_row(128).bits(depth=0, rows=128, width=8, device=cpu)
    >>> bits[128:].equal(second_half)
    True
    """

    rng_seed: int
    first_row: int = 0
    """Position of the first row in the whole batch, a multiple of `NOISE_ROWS`."""

    @classmethod
    def drawn(cls, generator: torch.Generator, first_row: int = 0) -> "Noise":
        """Return the noise of a run's next step, drawn from the run's generator."""
        draw = torch.randint(2**63 - 1, (), generator=generator, device=generator.device)
        return cls(int(draw), first_row)

    def from_row(self, row: int) -> "Noise":
        """Return the noise of the rows that start at `row`, a multiple of `NOISE_ROWS`."""
        return replace(self, first_row=self.first_row + row)

    def bits(self, depth: int, rows: int, width: int, device: torch.device) -> Tensor:
        """Return independent uniform int16 numbers, (rows, width), for the layer `depth`."""
        padded = -(-width // 4) * 4  # one draw of 64 bits serves four units
        draws = torch.empty(rows, padded // 4, dtype=torch.int64, device=device)
        for start in range(0, rows, NOISE_ROWS):
            block = (self.first_row + start) // NOISE_ROWS
            generator = torch.Generator(device).manual_seed(self._seed(depth, block))
            draws[start : start + NOISE_ROWS].random_(-(2**63), None, generator=generator)
        return draws.view(torch.int16)[:, :width]

    def _seed(self, depth: int, block: int) -> int:
        """Return a seed mixed by splitmix64, since adjacent seeds give similar generators."""
        state = (self.rng_seed + 0x9E3779B97F4A7C15 * (1 + 2**20 * depth + block)) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return (state ^ (state >> 31)) >> 1

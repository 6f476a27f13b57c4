import pytest
import torch

from gpn_scale.nn.noise import NOISE_ROWS, Noise


@pytest.mark.parametrize("width", [1, 4, 7])
def test_rows_have_the_same_noise_whoever_draws_it(width):
    cpu, rows = torch.device("cpu"), 2 * NOISE_ROWS + 5
    whole = Noise(7).bits(1, rows, width, cpu)
    for first in (0, NOISE_ROWS, 2 * NOISE_ROWS):
        part = Noise(7, first).bits(1, rows - first, width, cpu)
        assert torch.equal(part, whole[first:])
    for other in (Noise(7).bits(0, rows, width, cpu), Noise(8).bits(1, rows, width, cpu)):
        assert (other != whole).double().mean() > 0.99
    blocks = whole[: 2 * NOISE_ROWS].view(2, NOISE_ROWS, width)
    assert (blocks[0] != blocks[1]).double().mean() > 0.99


def test_noise_from_a_later_row_continues_the_whole():
    cpu, rows = torch.device("cpu"), 3 * NOISE_ROWS
    whole = Noise(3).bits(0, rows, 5, cpu)
    later = Noise(3).from_row(NOISE_ROWS).from_row(NOISE_ROWS)
    assert torch.equal(later.bits(0, NOISE_ROWS, 5, cpu), whole[2 * NOISE_ROWS :])


def test_steps_of_one_generator_have_different_noise():
    generator = torch.Generator().manual_seed(1)
    seeds = {Noise.drawn(generator).rng_seed for _ in range(100)}
    assert len(seeds) == 100


def test_bits_are_uniform_over_16_bits():
    bits = Noise(1).bits(0, 200, 500, torch.device("cpu"))
    assert bits.dtype == torch.int16
    # The mean of 100,000 uniform numbers has a deviation of 60.
    assert abs(bits.double().mean().item() + 0.5) < 300
    assert (bits < 0).double().mean().item() == pytest.approx(0.5, abs=0.01)


def test_no_rows_have_no_bits():
    assert Noise(1).bits(0, 0, 3, torch.device("cpu")).shape == (0, 3)

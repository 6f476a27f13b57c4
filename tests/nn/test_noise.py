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


def splitmix(state):
    """One output of splitmix64, with Python's own numbers."""
    mask = 2**64 - 1
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return state ^ (state >> 31)


@pytest.mark.parametrize("rng_seed", [0, 7, 2**63 - 2])
def test_hashed_noise_is_splitmix64_of_seed_row_and_column(rng_seed):
    rows, width, depth, first = 3, 6, 2, 5 * NOISE_ROWS
    noise = Noise(rng_seed, first, hashed=True)
    bits = noise.bits(depth, rows, width, torch.device("cpu"))
    for row in range(rows):
        lanes = []
        for word in range(2):  # of 64 bits, for four units each
            place = 1 + 2**20 * (first + row) + 2 * depth + word
            draw = splitmix((rng_seed + 0x9E3779B97F4A7C15 * place) % 2**64)
            lanes += [(draw >> (16 * lane)) & 0xFFFF for lane in range(4)]
        assert [number % 2**16 for number in bits[row].tolist()] == lanes[:width]


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("width", [1, 4, 7])
def test_noise_of_all_layers_is_that_of_each(hashed, width):
    cpu, noise = torch.device("cpu"), Noise(7, NOISE_ROWS, hashed=hashed)
    together = noise.bits_of_layers(3, NOISE_ROWS + 1, width, cpu)
    for depth in range(3):
        assert torch.equal(together[:, depth], noise.bits(depth, NOISE_ROWS + 1, width, cpu))


def test_hashed_rows_have_the_same_noise_whoever_draws_it():
    cpu, whole = torch.device("cpu"), Noise(7, hashed=True)
    later = whole.from_row(NOISE_ROWS).bits(1, 20, 5, cpu)
    assert torch.equal(later, whole.bits(1, NOISE_ROWS + 20, 5, cpu)[NOISE_ROWS:])


def test_hashed_bits_are_uniform_and_independent():
    bits = Noise(1, hashed=True).bits_of_layers(2, 400, 256, torch.device("cpu")).double()
    values = bits.flatten()
    counts = torch.histc(values, bins=64, min=-(2.0**15), max=2.0**15)
    expected = len(values) / 64  # chi-square with 63 degrees of freedom: 63 +- 11
    assert ((counts - expected).square() / expected).sum() < 63 + 5 * 11.2
    normal = (values + 0.5) / (2.0**16 / 12**0.5)
    limit = 5 / len(values) ** 0.5
    for lag in (1, 2, 3, 4, 256, 512, 1024):  # lanes, words, layers, rows
        assert (normal[lag:] * normal[:-lag]).mean().abs() < limit

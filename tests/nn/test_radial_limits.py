"""Limits of the fused flows; `test_radial` runs flows on both sides of them."""

import pytest
import torch

from gpn_scale.nn import flow as flow_module
from gpn_scale.nn.flow import RadialFlow
from gpn_scale.nn.radial import _Chunk, _Flow
from gpn_scale.nn.radial_limits import (
    CACHE_ELEMENTS,
    chunk_rows,
    has_few_layers,
    is_representable,
    scratch_bytes_per_row,
)


@pytest.mark.parametrize(
    ("strength", "fits"), [(0.0, True), (9.0, True), (1e20, False), (-1.0, False), (-0.9, True)]
)
def test_products_over_layers_must_neither_overflow_nor_vanish(strength, fits):
    scale_RC, strength_RC = torch.ones(3, 2), torch.zeros(3, 2)
    strength_RC[:, 1] = strength  # one class decides
    assert is_representable(scale_RC, strength_RC) == fits


def test_an_undefined_parameter_is_not_representable():
    assert not is_representable(torch.ones(1, 1), torch.full((1, 1), torch.nan))


@pytest.mark.parametrize(("layers", "few"), [(0, True), (10, True), (800, True), (850, False)])
def test_differences_between_centres_stay_within_a_fixed_size(layers, few):
    assert has_few_layers(num_classes=3, latent=16, layers=layers) == few


def test_flows_of_many_layers_take_memory_that_grows_with_the_layers_alone(generator, monkeypatch):
    """A model file of 200 KB with 850 layers would otherwise take 560 MB, with 10,000, 77 GB."""
    sizes = {"num_classes": 3, "latent": 16, "radial_layers": 850, "memory_mib": 512}
    model = RadialFlow(**sizes, generator=generator).eval()
    z_ND = torch.randn(2, 16, generator=generator)
    monkeypatch.setattr(flow_module, "RadialLogDensity", None)
    with torch.no_grad():
        assert torch.equal(model(z_ND), model.log_density(z_ND))


def _members(value):
    return value if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("classes", "latent", "layers"), [(7, 16, 10), (2, 3, 1), (40, 4, 20)])
def test_the_bytes_per_row_bound_what_a_chunk_allocates(dtype, classes, latent, layers):
    centre_RCD = torch.zeros(layers, classes, latent, dtype=dtype)
    ones_RC = torch.ones(layers, classes, dtype=dtype)
    chunk = _Chunk(_Flow(centre_RCD, ones_RC, ones_RC), 64, keep=True)
    values = [each for value in vars(chunk).values() for each in _members(value)]
    storages = [value.untyped_storage() for value in values if isinstance(value, torch.Tensor)]
    allocated = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    bound = 64 * scratch_bytes_per_row(classes, latent, layers, dtype.itemsize)
    assert 0.5 * bound < allocated <= bound


def test_a_chunk_fits_the_cache_and_has_a_row():
    rows = [chunk_rows(classes) for classes in range(1, 200)]
    assert rows == sorted(rows, reverse=True)
    assert all(count * classes <= CACHE_ELEMENTS for classes, count in enumerate(rows, 1))
    assert chunk_rows(10 * CACHE_ELEMENTS) == 1

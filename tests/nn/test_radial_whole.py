"""The whole-row path against the plain one, which test_flow.py holds against the Jacobian."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.device import GPU_RULE, forced_rule
from gpn_scale.nn import flow as flow_module
from gpn_scale.nn.radial_limits import whole_bytes_per_row
from tests.nn.test_radial import assert_fused_is_plain, random_flow, value_and_gradients
from tests.peak_memory import peak_bytes


@pytest.fixture(autouse=True)
def as_on_a_gpu():
    with forced_rule(GPU_RULE):
        yield


@given(
    rows=st.integers(0, 9),
    classes=st.integers(1, 4),
    latent=st.integers(3, 6),
    layers=st.integers(1, 6),
    part=st.integers(1, 9),
    spread=st.floats(0.01, 2.0),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    rng_seed=st.integers(0, 1000),
)
def test_whole_is_plain_for_all_shapes(
    rows, classes, latent, layers, part, spread, dtype, rng_seed
):
    generator = torch.Generator().manual_seed(rng_seed)
    shape = {"num_classes": classes, "latent": latent, "radial_layers": layers}
    model = random_flow(generator, dtype=dtype, spread=spread, **shape)
    model.whole_rows = lambda device, dtype: part
    assert_fused_is_plain(model, torch.randn(rows, latent, generator=generator).to(dtype))


@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("away", [0.0, 30.0], ids=["at the origin", "far from it"])
def test_float32_holds_close_to_centres(generator, gap, away):
    model = random_flow(generator, dtype=torch.float32, latent=16, radial_layers=10)
    direction_D = torch.nn.functional.normalize(torch.randn(16, generator=generator), dim=0)
    with torch.no_grad():
        for layer in model.layers:
            layer.centre_CD.add_(away * direction_D)
        centre_KD = torch.cat([layer.centre_CD for layer in model.layers])
    offset_KD = torch.randn(centre_KD.shape, generator=generator)
    assert_fused_is_plain(model, centre_KD + gap * torch.nn.functional.normalize(offset_KD))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e-8, 1e-4, 1e6])
def test_no_distance_breaks_values_or_gradients(generator, dtype, distance):
    model = random_flow(generator, dtype=dtype, latent=16, radial_layers=30)
    with torch.no_grad():
        for layer in model.layers:
            layer.centre_CD.copy_(model.layers[0].centre_CD[:1].expand(3, -1))
            layer.raw_strength_C.mul_(0.3)
        z_ND = model.layers[0].centre_CD + distance
    value, gradients = value_and_gradients(model, model, z_ND)
    assert value.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    plain = value_and_gradients(model, model.log_density, z_ND)[1]
    for got, true in zip(gradients, plain, strict=True):
        assert got.abs().max() <= 2.0 * true.abs().max() + 1.0


def test_gradients_of_latents_or_flows_alone(generator):
    model = random_flow(generator)
    z_ND = torch.randn(6, 4, generator=generator).double().requires_grad_()
    parameters = list(model.parameters())
    both = torch.autograd.grad(model(z_ND).sum(), [z_ND, *parameters])
    flows_only = torch.autograd.grad(model(z_ND.detach()).sum(), parameters)
    torch.testing.assert_close(flows_only, both[1:], rtol=0, atol=0)
    model.requires_grad_(False)
    latents_only = torch.autograd.grad(model(z_ND).sum(), [z_ND])
    torch.testing.assert_close(latents_only, both[:1], rtol=0, atol=0)
    assert not model(z_ND.detach()).requires_grad


def test_a_second_backward_pass_computes_the_forward_pass_again(generator):
    model = random_flow(generator)
    z_ND = torch.randn(6, 4, generator=generator).double().requires_grad_()
    total = model(z_ND).sum()
    (first,) = torch.autograd.grad(total, z_ND, retain_graph=True)
    (second,) = torch.autograd.grad(total, z_ND)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_a_second_derivative_is_refused_rather_than_wrong(generator):
    z_ND = torch.randn(5, 4, generator=generator).double().requires_grad_()
    with pytest.raises(NotImplementedError, match=r"use RadialFlow\.log_density"):
        torch.autograd.grad(random_flow(generator)(z_ND).sum(), z_ND, create_graph=True)


def test_a_chunk_is_as_large_as_the_share_of_memory_allows(generator, monkeypatch):
    model = random_flow(generator, num_classes=40, latent=16, radial_layers=10)
    row = whole_bytes_per_row(40, 16, 10, 4)
    monkeypatch.setattr(flow_module, "scratch_bytes", lambda device: 7 * row + row // 2)
    assert model.whole_rows(torch.device("cpu"), torch.float32) == 7
    monkeypatch.setattr(flow_module, "scratch_bytes", lambda device: row // 2)
    assert model.whole_rows(torch.device("cpu"), torch.float32) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("classes", "latent", "layers"), [(7, 16, 10), (2, 3, 1), (20, 4, 20)])
def test_the_bytes_per_row_are_those_of_the_measured_peak(
    generator, dtype, classes, latent, layers
):
    shape = {"num_classes": classes, "latent": latent, "radial_layers": layers}
    model = random_flow(generator, dtype=dtype, spread=0.3, **shape)

    def both_passes(rows):
        z_ND = torch.zeros(rows, latent, dtype=dtype, requires_grad=True)
        return peak_bytes(lambda: model(z_ND).sum().backward())

    per_row = (both_passes(1500) - both_passes(500)) / 1000
    expected = whole_bytes_per_row(classes, latent, layers, dtype.itemsize)
    assert 0.8 * expected < per_row <= expected

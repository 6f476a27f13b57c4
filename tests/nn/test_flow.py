import pytest
import torch

from gpn_scale.nn.flow import RadialFlow, RadialLayer
from tests.oracles import jacobian_log_det


def flow(generator, **options):
    settings = {"num_classes": 3, "latent": 4, "radial_layers": 5, "memory_mib": 64}
    return RadialFlow(**(settings | options), generator=generator).double()


@pytest.mark.parametrize("latent", [1, 2, 5])
def test_log_determinant_is_that_of_the_jacobian(generator, latent):
    layer = RadialLayer(3, latent, generator).double()
    for z_D in torch.randn(4, latent, generator=generator).double():
        log_det_C = layer(z_D.expand(1, 3, -1))[1][0]
        for label in range(3):
            oracle = jacobian_log_det(layer, z_D, label)
            torch.testing.assert_close(log_det_C[label], oracle)


def test_density_integrates_to_one(generator):
    model = flow(generator, latent=2)
    with torch.no_grad():
        for parameter in model.parameters():  # far from the identity
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
        axis = torch.arange(-15, 15, 0.05).double()
        grid = torch.cartesian_prod(axis, axis)
        mass = model(grid).exp().sum(0) * 0.05**2
    torch.testing.assert_close(mass, torch.ones(3).double(), atol=2e-3, rtol=0)


def test_without_layers_it_is_the_standard_normal(generator):
    z_ND = torch.randn(5, 4, generator=generator).double()
    normal = torch.distributions.MultivariateNormal(torch.zeros(4).double(), torch.eye(4).double())
    density = flow(generator, radial_layers=0)(z_ND)
    torch.testing.assert_close(density, normal.log_prob(z_ND).unsqueeze(1).expand(-1, 3))


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_chunks_change_neither_values_nor_gradients(generator, rows):
    model = flow(generator)
    z_ND = torch.randn(rows, 4, generator=generator).double().requires_grad_()
    results = []
    for memory_bytes in (1 << 30, 1):
        model.memory_bytes = memory_bytes
        density = model(z_ND)
        model.zero_grad()
        gradient = torch.autograd.grad(density.square().sum(), [z_ND, *model.parameters()])
        with torch.no_grad():
            results.append((density, model(z_ND), *gradient))
    assert model.chunk_rows(z_ND) == 1
    torch.testing.assert_close(results[0], results[1])


def test_far_away_the_density_vanishes(generator):
    with torch.no_grad():
        near, far = flow(generator)(torch.tensor([[0.1] * 4, [1e6] * 4]).double())
    assert (far < near - 1e6).all()


def test_at_a_centre_all_is_finite(generator):
    model = flow(generator, num_classes=1, radial_layers=1)
    z_ND = model.layers[0].centre_CD.detach().clone().requires_grad_()
    density = model(z_ND)
    density.sum().backward()
    assert density.isfinite().all()
    assert z_ND.grad.isfinite().all()


def test_the_map_is_invertible_for_any_parameters(generator):
    layer = RadialLayer(2, 3, generator)
    with torch.no_grad():
        layer.raw_strength_C.copy_(torch.tensor([-50.0, 50.0]))
        layer.raw_scale_C.copy_(torch.tensor([5.0, -5.0]))
    scale_C, strength_C = layer.constrained()
    assert (scale_C > 0).all()
    assert (strength_C >= -scale_C).all()

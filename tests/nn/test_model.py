import torch

from gpn_scale.config import RunConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.nn.model import GPN
from gpn_scale.nn.noise import Noise


def test_forward_composes_the_parts(generator):
    model = GPN(
        RunConfig(model="GPN"),
        num_features=3,
        class_prior_C=torch.tensor([0.5, 0.5]),
        generator=generator,
    ).double()
    graph = build_graph([0, 1], [1, 2], num_nodes=3)
    diffusion = exact_diffusion(
        graph, RunConfig(model="GPN").diffusion, torch.device("cpu"), torch.float64
    )
    features = torch.randn(3, 3, generator=generator).double()
    output = model(features, diffusion)
    evidence = model.evidence(model.flow(model.encoder(features)))
    torch.testing.assert_close(output.without_network.alpha_NC, 1 + evidence)
    torch.testing.assert_close(output.with_network.alpha_NC, 1 + diffusion(evidence))


def test_every_parameter_gets_a_gradient(generator):
    model = GPN(
        RunConfig(model="GPN"),
        num_features=3,
        class_prior_C=torch.tensor([0.5, 0.5]),
        generator=generator,
    )
    noise = Noise.drawn(generator)
    model(torch.randn(4, 3, generator=generator), lambda evidence: evidence, noise)
    evidence = model.feature_evidence(torch.randn(4, 3, generator=generator), noise)
    evidence.log().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_the_same_seed_gives_the_same_initial_weights():
    first, second = (
        GPN(
            RunConfig(model="GPN"),
            num_features=3,
            class_prior_C=torch.tensor([0.5, 0.5]),
            generator=torch.Generator().manual_seed(5),
        ).state_dict()
        for _ in range(2)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)

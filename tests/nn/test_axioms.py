"""The paper's three axioms (section 3.1), on models with random weights and on a trained one."""

import numpy as np
import pytest
import torch

from gpn_scale.config import DiffusionConfig, EncoderConfig, FlowConfig, RunConfig, TrainConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.nn.model import GPN
from gpn_scale.nn.posterior import DirichletPosterior

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(small_graph) -> GPNClassifier:
    config = RunConfig(model="GPN", train=TrainConfig(epochs=60))
    return GPNClassifier(config, dtype=torch.float64).fit(small_graph)


def random_model(seed: int) -> GPN:
    config = RunConfig(
        model="GPN", encoder=EncoderConfig(latent=4), flow=FlowConfig(radial_layers=4)
    )
    source = torch.Generator().manual_seed(seed)
    prior = torch.tensor([0.5, 0.3, 0.2])
    model = GPN(config, num_features=8, class_prior_C=prior, generator=source)
    return model.double().eval()


@pytest.fixture(params=["trained", 0, 1, 2])
def model(request) -> GPN:
    if request.param == "trained":
        return request.getfixturevalue("trained").trained.network
    return random_model(request.param)


@torch.no_grad()
def test_far_features_leave_no_evidence_without_network(model, generator):
    direction = torch.randn(20, 8, generator=generator).double()
    totals = [model.feature_evidence(scale * direction).sum(1) for scale in (1e2, 1e4, 1e6)]
    assert (totals[1] <= totals[0]).all()
    assert (totals[2] <= totals[1]).all()
    torch.testing.assert_close(totals[2], torch.zeros(20).double(), atol=1e-9, rtol=0)
    prior_mean = DirichletPosterior.from_evidence(model.feature_evidence(1e6 * direction)).mean_NC
    torch.testing.assert_close(
        prior_mean, torch.full((20, 3), 1 / 3, dtype=torch.float64), atol=1e-9, rtol=0
    )


@torch.no_grad()
def test_without_neighbours_only_own_features_count(model, generator):
    alone = build_graph([], [], num_nodes=5)
    diffusion = exact_diffusion(alone, RunConfig(model="GPN").diffusion, CPU, torch.float64)
    output = model(torch.randn(5, 8, generator=generator).double(), diffusion)
    torch.testing.assert_close(output.with_network.alpha_NC, output.without_network.alpha_NC)


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@torch.no_grad()
def test_a_more_certain_node_makes_its_neighbours_more_certain(
    small_graph, generator, normalisation
):
    config = DiffusionConfig(normalisation=normalisation)
    diffusion = exact_diffusion(small_graph, config, CPU, torch.float64)
    evidence = torch.rand(small_graph.num_nodes, 3, generator=generator).double()
    total = DirichletPosterior.from_evidence(diffusion(evidence)).alpha_0_N
    node = int(np.argmax(small_graph.out_degree))
    evidence[node] *= 10.0
    raised = DirichletPosterior.from_evidence(diffusion(evidence)).alpha_0_N
    row = slice(small_graph.indptr[node], small_graph.indptr[node + 1])
    neighbours = torch.from_numpy(small_graph.indices[row].astype(np.int64))
    assert (raised[neighbours] > total[neighbours]).all()
    assert (raised >= total).all()


def star_prediction(neighbour_evidence: torch.Tensor) -> Prediction:
    """Of node 0, whose neighbours 1..n have the given evidence and which has none of its own."""
    count = len(neighbour_evidence)
    star = build_graph(np.zeros(count, int), np.arange(1, count + 1), num_nodes=count + 1)
    diffusion = exact_diffusion(star, RunConfig(model="GPN").diffusion, CPU, torch.float64)
    evidence = torch.cat([neighbour_evidence.new_zeros(1, 3), neighbour_evidence])
    posterior = DirichletPosterior.from_evidence(diffusion(evidence))
    mean, total = posterior.mean_NC[:1].float().numpy(), posterior.alpha_0_N[:1].float().numpy()
    return Prediction(
        probabilities=mean,
        probabilities_no_network=mean,
        alpha_0=total,
        alpha_0_no_network=total,
    )


def test_conflict_among_neighbours_raises_entropy_at_the_same_total_evidence():
    agreeing = 50.0 * torch.eye(3).double()[[0, 0, 0, 0]]
    conflicting = 50.0 * torch.eye(3).double()[[0, 0, 0, 1]]
    more = 50.0 * torch.eye(3).double()[[0, 0, 1, 1]]
    predictions = [star_prediction(evidence) for evidence in (agreeing, conflicting, more)]
    entropies = [prediction.aleatoric_entropy[0] for prediction in predictions]
    assert entropies == sorted(entropies)
    assert len(set(entropies)) == 3
    totals = [prediction.alpha_0[0] for prediction in predictions]
    np.testing.assert_allclose(totals, totals[0], rtol=1e-6)


def test_undecided_neighbours_raise_entropy_at_the_same_total_evidence():
    decided = torch.tensor([[90.0, 5.0, 5.0]]).double().expand(4, -1)
    undecided = torch.tensor([[40.0, 30.0, 30.0]]).double().expand(4, -1)
    assert star_prediction(undecided).aleatoric_entropy > star_prediction(decided).aleatoric_entropy

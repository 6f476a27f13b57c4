"""Losses and probabilities of both parts, node by node."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.nn.model import GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.train.objective import EvidenceObjective, OpinionObjective
from tests.oracles import textbook_entropy


def output_of(alpha_NC):
    posterior = DirichletPosterior(alpha_NC)
    return GPNOutput(with_network=posterior, without_network=DirichletPosterior(alpha_NC + 7.0))


def drawn(num_nodes, num_classes, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(num_nodes, num_classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(num_classes, (num_nodes,), generator=generator)
    return values, labels


SIZES = {
    "num_nodes": st.integers(0, 6),
    "num_classes": st.integers(2, 4),
    "seed": st.integers(0, 9),
}


@given(**SIZES, entropy_weight=st.sampled_from([0.0, 0.1]))
def test_the_evidence_s_loss_is_a_sum_over_nodes(num_nodes, num_classes, seed, entropy_weight):
    values, labels = drawn(num_nodes, num_classes, seed)
    alpha_NC = 1.0 + values.exp()
    objective, total = EvidenceObjective(entropy_weight), 0.0
    for alpha, label in zip(alpha_NC, labels, strict=True):
        nll = torch.digamma(alpha.sum()) - torch.digamma(alpha[label])
        entropy = textbook_entropy(alpha.unsqueeze(0))
        total += float(nll - entropy_weight * entropy)
    loss = objective.loss(output_of(alpha_NC), labels)
    assert loss.item() == pytest.approx(total, rel=1e-9, abs=1e-9)
    means = objective.probabilities(output_of(alpha_NC))
    torch.testing.assert_close(means, alpha_NC / alpha_NC.sum(1, keepdim=True))


@given(**SIZES, num_train=st.integers(1, 9))
def test_the_opinion_s_loss_is_the_mean_over_the_training_nodes(
    num_nodes, num_classes, seed, num_train
):
    logits_NC, labels = drawn(num_nodes, num_classes, seed)
    total = 0.0
    for logits, label in zip(logits_NC, labels, strict=True):
        total -= float(logits[label] - logits.exp().sum().log())
    objective = OpinionObjective(num_train)
    loss = objective.loss(logits_NC, labels).item()
    assert loss == pytest.approx(total / num_train, rel=1e-9, abs=1e-9)
    expected = logits_NC.exp() / logits_NC.exp().sum(1, keepdim=True)
    torch.testing.assert_close(objective.probabilities(logits_NC), expected)


def test_only_the_nodes_with_labels_count():
    values, _ = drawn(5, 3, 1)
    nodes, labels = torch.tensor([4, 0]), torch.tensor([2, 1])
    opinion, evidence = OpinionObjective(2), EvidenceObjective(0.1)
    assert torch.equal(opinion.loss(values, labels, nodes), opinion.loss(values[nodes], labels))
    alpha = 1.0 + values.exp()
    assert torch.equal(
        evidence.loss(output_of(alpha), labels, nodes),
        evidence.loss(output_of(alpha[nodes]), labels),
    )

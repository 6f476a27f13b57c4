"""What `ablation_parts` measures of encoders that feature evidence and opinion share.

Shapes: N nodes, B labelled nodes, C classes, D latent dimensions.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from ablation_case import ISOLATED_NODES, Case, Key, joint_p
from torch import Tensor, nn

from gpn_scale.config import RunConfig
from gpn_scale.data.shifts import noise_rows
from gpn_scale.evaluation.known_calibration import PART_SCORES
from gpn_scale.evaluation.metrics import accuracy, auroc
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.temperature import fitted_temperature, scaled
from gpn_scale.inference.opinion_values import energy_of
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.model import GPN, Aggregation, GPNOutput
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.train.objective import EvidenceObjective
from gpn_scale.train.task import ExactTask
from gpn_scale.train.trainer import Trainer

Output = tuple[GPNOutput | None, Tensor]
"""Posteriors by feature evidence, None of a frozen GPN, and diffused logits (N, C)."""


class SharedEncoder(nn.Module):
    """A GPN whose latent positions also give an opinion: a linear map of them, diffused."""

    def __init__(self, gpn: GPN, generator: torch.Generator, *, frozen: bool) -> None:
        super().__init__()
        self.gpn = gpn.requires_grad_(not frozen)
        self.frozen = frozen
        weight_CD = torch.empty(gpn.flow.num_classes, gpn.flow.latent)
        bound = gpn.flow.latent**-0.5
        self.weight_CD = nn.Parameter(nn.init.uniform_(weight_CD, -bound, bound, generator))
        self.bias_C = nn.Parameter(torch.zeros(gpn.flow.num_classes))

    @property
    def encoder(self) -> nn.Module:
        """The encoder, whose weights decay."""
        return self.gpn.encoder

    def warmup_parameters(self) -> list[nn.Parameter]:
        """Return the parameters that train before the encoder: flows and linear map."""
        own = [self.weight_CD, self.bias_C]
        return own if self.frozen else [*self.gpn.flow.parameters(), *own]

    def forward(self, inputs: Inputs, aggregate: Aggregation, noise: Noise | None = None) -> Output:
        """Return the posteriors and the diffused logits of all nodes."""
        latent_ND = self.encoder(inputs, noise)
        logits_NC = aggregate(latent_ND @ self.weight_CD.T + self.bias_C)
        if self.frozen:
            return None, logits_NC
        evidence_NC = self.gpn.evidence(self.gpn.flow(latent_ND))
        posteriors = GPNOutput(
            with_network=DirichletPosterior.from_evidence(aggregate(evidence_NC)),
            without_network=DirichletPosterior.from_evidence(evidence_NC),
        )
        return posteriors, logits_NC


@dataclass(frozen=True)
class SharedObjective:
    """GPN's loss plus the cross-entropy of the logits, both summed over the training nodes."""

    evidence: EvidenceObjective

    def loss(self, output: Output, label_B: Tensor, nodes_B: Tensor) -> Tensor:
        """Return the loss; of a frozen GPN, the cross-entropy alone."""
        posteriors, logits_NC = output
        loss = nn.functional.cross_entropy(logits_NC[nodes_B], label_B, reduction="sum")
        if posteriors is None:
            return loss
        return loss + self.evidence.loss(posteriors, label_B, nodes_B)

    def probabilities(self, output: Output) -> Tensor:
        """Return what early stopping looks at; -log of the root is the mean of both -log p."""
        posteriors, logits_NC = output
        own_NC = logits_NC.softmax(1)
        return own_NC if posteriors is None else (own_NC * posteriors.with_network.mean_NC).sqrt()


def encoders(case: Case) -> dict[Key, float]:
    """Measure separate encoders, one that both losses train, and the encoder of a finished GPN."""
    separate = case.classifier.trained.network
    fresh = case.classifier.trainer(case.graph).model
    values = _quality(case, "separate", case.plus, case.gpn, separate)
    for name, gpn, frozen in (("shared", fresh, False), ("frozen", separate, True)):
        model, output = _trained(case, gpn, frozen=frozen)
        values |= _quality(case, name, *_predictions(case, output), model.gpn)
    return values


def _trained(case: Case, gpn: GPN, *, frozen: bool) -> tuple[SharedEncoder, Output]:
    """Return the trained network with a shared encoder, and its output of all nodes."""
    config: RunConfig = case.classifier.config
    generator = torch.Generator().manual_seed(config.train.rng_seed)
    model = SharedEncoder(copy.deepcopy(gpn), generator, frozen=frozen)
    objective = SharedObjective(EvidenceObjective(config.train.entropy_weight))
    task = ExactTask(case.graph, config, objective, torch.device("cpu"))
    trainer = Trainer(model, task, config.train, generator)
    for _ in trainer.records():
        pass
    trainer.restore_best()
    with torch.no_grad():
        return model, model(task.inputs, task.diffusion)


def _predictions(case: Case, output: Output) -> tuple[Prediction, Prediction]:
    """Return the predictions by both parts and by feature evidence alone, of all nodes."""
    posteriors, logits_NC = output
    gpn = case.gpn if posteriors is None else Prediction.from_output(posteriors)
    probability_NC = logits_NC.softmax(1).numpy()
    own = case.calibration
    temperature = fitted_temperature(probability_NC[own], case.calibration_labels)
    plus = replace(
        gpn,
        probabilities=scaled(probability_NC, temperature).astype(np.float32),
        energy=energy_of(logits_NC).numpy(),
        label_evidence=case.plus.label_evidence,
    )
    return plus, gpn


def _quality(
    case: Case, name: str, plus: Prediction, gpn: Prediction, network: GPN
) -> dict[Key, float]:
    scores = case.scores(plus, gpn)
    own_V = case.own_surprise(scores, PART_SCORES).sum(0)
    every_N = case.surprise(scores, PART_SCORES).sum(0)
    around_N = case.around({name: every_N})[name]
    p_N = joint_p(own_V + around_N[case.calibration], every_N + around_N)
    labels = case.graph.labels[case.known]
    values = {
        "accuracy": accuracy(plus.probabilities[case.known], labels),
        "accuracy of GPN": accuracy(gpn.probabilities[case.known], labels),
        "left-out -alpha_0": case.auroc(gpn.epistemic),
        "left-out p_known": case.auroc(-p_N),
    }
    known_N = gpn.epistemic_no_network[case.known]
    for kind in ("bernoulli", "normal"):
        rows = noise_rows(kind, ISOLATED_NODES, case.graph.num_features, case.rng_seed)
        with torch.no_grad():
            evidence_BC = network.feature_evidence(torch.from_numpy(rows))
        score = np.append(known_N, -evidence_BC.sum(1).numpy() - case.graph.num_classes)
        values[kind] = auroc(np.arange(len(score)) >= len(known_N), score)
    return {("encoders", name, metric): value for metric, value in values.items()}

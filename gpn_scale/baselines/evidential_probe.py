"""EPN: a perceptron that estimates the evidence for a node from a trained network's layers.

Yu, Li, Saha, Lou & Chen (2025), "Evidential Uncertainty Probes for Graph Neural Networks".

Shapes: N nodes, B labelled nodes, C classes, H hidden units of the network.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractLayeredNetwork
from gpn_scale.baselines.options import require_in_range, require_positive
from gpn_scale.baselines.post_hoc_base import AbstractPostHoc
from gpn_scale.baselines.training import evaluating, train
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.encoder import Encoder
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.train.checkpoint import check_tensors

_LOG_LIMIT = 30.0
"""Limit to which log-evidence is clamped, so that evidence stays finite far from all data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """Options of `EvidentialProbe`."""

    hidden: int = 64
    """Number of hidden units of the probe."""
    intra_class_weight: float = 1.0
    """Weight of the intra-class evidence (ICE) regulariser."""
    confidence_weight: float = 1.0
    """Weight of the positive-confidence (PCL) term."""

    def __post_init__(self) -> None:
        require_positive("model.hidden", self.hidden, "hidden unit")
        for name in ("intra_class_weight", "confidence_weight"):
            weight = getattr(self, name)
            require_in_range(
                f"model.{name}", weight, allowed=not weight < 0.0, expected="at least 0"
            )


@dataclass(frozen=True, slots=True)
class LabelledNodes:
    """Facts about labelled nodes that the probe's loss needs."""

    representation_BH: Tensor
    probability_BC: Tensor
    label_B: Tensor


class EvidentialProbe(AbstractPostHoc):
    """A small perceptron on the last hidden values of a network that is not changed.

    It predicts evidence per class, e_c, whose total e scales the network's probabilities p to
    Dir(1 + e p). Its loss on the training nodes is GPN's loss of that Dirichlet, plus

    - ICE, the expected cross-entropy of Dir(1 + e_c): a node's total evidence must come from its
      own class, so that it measures resemblance to that class;
    - PCL, learning from positive data with confidence (Ishida et al., 2018), which has no unknown
      nodes to learn from: `positive_confidence_loss`.

    Class probabilities are those of the network; the epistemic score is the vacuity C / (C + e).

    Deviation: written without the full text of the paper. Its two regularisers are known to us by
    name and purpose, and their formulas are ours (docs/deviations.md).
    """

    Options = ProbeOptions

    def check_limits(self, graph: Graph) -> None:
        """Refuse networks without hidden values.

        Raises:
            ConfigError: the network has a single layer, or is of a kind without hidden layers.
        """
        if not issubclass(self.Base, AbstractLayeredNetwork) or self.config.encoder.layers < 2:
            raise ConfigError(
                f"{self.name} reads the last hidden layer of {self.Base.name}, and there is none: "
                "use a network with hidden layers and encoder.layers of at least 2",
                arguments=("encoder.layers",),
            )

    def adjust(self, view: GraphView) -> None:
        """Train the probe; the network stays as it is."""
        training, validation = self._labelled(view)
        probe = self._new_probe(view.graph.num_classes)

        def loss(nodes: LabelledNodes) -> Tensor:
            evidence_BC = probed_evidence(probe, nodes.representation_BH)
            weight = self.config.train.entropy_weight
            return probe_loss(evidence_BC, nodes, self.options, weight)

        train(
            probe,
            lambda epoch: iter([loss(training)]),
            lambda: float(loss(validation)),
            self.config.train,
        )
        self._probe = probe

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the network's probabilities, and the vacuity that the probe predicts."""
        with evaluating(self._probe):
            evidence_NC = probed_evidence(self._probe, self._representation(view)).double()
        num_classes = evidence_NC.shape[1]
        vacuity_N = num_classes / (num_classes + evidence_NC.sum(1))
        return self.prediction(self.base_logits(view).softmax(1), vacuity_N)

    def own_state(self) -> dict[str, Tensor]:
        """Return the tensors of the probe."""
        return self._probe.state_dict()

    def restore_own(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        probe = self._new_probe(graph.num_classes)
        check_tensors(source, tensors, probe.state_dict())
        probe.load_state_dict(tensors)
        self._probe = probe.eval()

    def _new_probe(self, num_classes: int) -> Encoder:
        """Return an untrained probe; initial weights are drawn on the CPU for every device."""
        probe = Encoder(
            num_features=self.config.encoder.hidden,
            hidden=self.options.hidden,
            layers=2,
            latent=num_classes,
            dropout=0.0,
            batch_norm=False,
            generator=torch.Generator().manual_seed(self.config.train.rng_seed),
        )
        return probe.to(self.device, self.dtype)

    def _labelled(self, view: GraphView) -> tuple[LabelledNodes, LabelledNodes]:
        """Return what the probe learns from: training and validation nodes."""
        representation_NH = self._representation(view)
        probability_NC = self.base_logits(view).softmax(1)
        first, second = (
            LabelledNodes(representation_NH[nodes], probability_NC[nodes], labels)
            for nodes, labels in (view.training, view.validation)
        )
        return first, second

    def _representation(self, view: GraphView) -> Tensor:
        """Return what the network's last linear map gets, (N, H)."""
        base = self.base
        assert isinstance(base, AbstractLayeredNetwork)
        with evaluating(base.module):
            return base.representation(view)


def probe_loss(
    evidence_BC: Tensor, nodes: LabelledNodes, options: ProbeOptions, entropy_weight: float
) -> Tensor:
    """Return the mean of E[-log p_y] - weight * H under Dir(1 + e p), ICE and PCL; a scalar."""
    total_B1 = evidence_BC.sum(1, keepdim=True)
    posterior = DirichletPosterior.from_evidence(total_B1 * nodes.probability_BC)
    loss = bayesian_loss(posterior, nodes.label_B, entropy_weight=entropy_weight) / len(total_B1)
    intra_class = DirichletPosterior.from_evidence(evidence_BC).expected_nll(nodes.label_B).mean()
    confidence_B = nodes.probability_BC.max(1).values
    num_classes = evidence_BC.shape[1]
    positive = positive_confidence_loss(total_B1.squeeze(1), confidence_B, num_classes).mean()
    return loss + options.intra_class_weight * intra_class + options.confidence_weight * positive


def positive_confidence_loss(total_B: Tensor, confidence_B: Tensor, num_classes: int) -> Tensor:
    """Return -log(1 - u) - (1 - r) / r log u with the vacuity u = C / (C + e), (B,).

    The risk of telling known from unknown nodes when only known ones, and the confidence r that a
    node is known, are given (Ishida et al., 2018). It is smallest at 1 - u = r.
    """
    log_odds_B = total_B.log() - math.log(num_classes)
    known_B, unknown_B = functional.softplus(-log_odds_B), functional.softplus(log_odds_B)
    return known_B + (1.0 - confidence_B) / confidence_B * unknown_B


def probed_evidence(probe: Encoder, representation_NH: Tensor) -> Tensor:
    """Return the evidence per class that a probe predicts, (N, C)."""
    log_evidence_NC: Tensor = probe(representation_NH)
    return log_evidence_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()

"""LOP-GPN: opinions of nodes, Dirichlet distributions, are pooled instead of their evidence.

Damke & Hüllermeier (2024), "Linear Opinion Pooling for Uncertainty Quantification on Graphs".

Shapes: N nodes, B roots of a batch, U nodes of their rows, C classes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.network import AbstractNetwork
from gpn_scale.baselines.row_batches import row_batch, stored_rows
from gpn_scale.baselines.training import evaluating, random_batches
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import class_prior
from gpn_scale.diffusion.power_iteration import PowerIteration, config_steps
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.model import GPN
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.train.new_trainer import new_network

Pool = Callable[[Tensor], Tensor]
"""Function from values of nodes to their means under the weights of the mixtures; linear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """Options of LOP-GPN."""

    epistemic: Literal["entropy", "evidence", "mutual_information"] = "entropy"
    """Epistemic score of a mixture.

    `entropy` is the mean differential entropy of the pooled Dirichlets, a lower bound on that of
    the mixture, `evidence` minus their mean alpha_0, which is GPN's score, and
    `mutual_information` H[E p] - E H[p], between the class and its probabilities.
    """


class AbstractOpinionPool(AbstractNetwork):
    """The network of a GPN, whose posteriors without network are mixed with PPR weights.

    The posterior of node v is the mixture sum_u w_vu Dir(1 + beta_u), where w_v is a row of the
    diffusion. The expected loss of a mixture is the mean of those of its Dirichlets. Its entropy
    has no closed form; the mean entropy of its Dirichlets, a lower bound on it, takes its place in
    the loss, as the weights' own entropy, the gap to an upper bound, does not depend on the
    network.

    Deviation: hyper-parameters are those of GPN, and the epistemic score is the bound on the
    entropy, since mutual information detects left-out classes worse (docs/deviations.md).
    """

    Options = PoolOptions

    def check_limits(self, graph: Graph) -> None:
        """Refuse weights of mixtures that do not sum to 1.

        Raises:
            ConfigError: the diffusion's rows do not sum to 1, or it diffuses logarithms.
        """
        diffusion = self.config.diffusion
        if diffusion.normalisation != "rw" or diffusion.of != "evidence":
            raise ConfigError(
                f"{self.name} mixes distributions with weights that sum to 1, got "
                f"diffusion.normalisation={diffusion.normalisation} and diffusion.of="
                f"{diffusion.of}: use rw and evidence",
                arguments=("diffusion.normalisation", "diffusion.of"),
            )

    def build(self, view: GraphView, generator: torch.Generator) -> GPN:  # noqa: D102
        prior_C = torch.from_numpy(class_prior(view.graph)).float()
        self._num_train = len(view.training[1])
        width = view.feature_rows.features.shape[1]
        return new_network(self.config, width, prior_C, 0, generator)

    def flow(self, module: nn.Module) -> nn.Module:  # noqa: D102
        assert isinstance(module, GPN)
        return module.flow

    def opinions(self, inputs: Inputs, generator: torch.Generator | None) -> DirichletPosterior:
        """Return the posteriors of nodes from their own features, with dropout if asked for."""
        assert isinstance(self.module, GPN)
        noise = None if generator is None else Noise.drawn(generator)
        return DirichletPosterior.from_evidence(self.module.feature_evidence(inputs, noise))

    def loss(self, opinions: DirichletPosterior, pool: Pool, labels_B: Tensor) -> Tensor:
        """Return the sum of the loss over training nodes, estimated from some roots.

        It is a sum, not a mean, as in GPN, whose weight decay is meant for sums.

        Args:
            opinions: Dirichlet distributions of nodes.
            pool: Map from values of these nodes to those of the roots' mixtures.
            labels_B: Labels of the roots.
        """
        weight = self.config.train.entropy_weight
        return self._num_train * pooled_loss(opinions, pool, labels_B, weight)

    def exact_pool(self, view: GraphView) -> Pool:
        """Return the diffusion over the whole graph."""
        config = self.config.diffusion
        matrix = view.edges.transition(config.normalisation, self_loops=config.self_loops)
        steps = config_steps(config)
        return PowerIteration(matrix, teleport=config.teleport, steps=steps).linear

    def validation_loss(self, view: GraphView) -> float:
        """Return the cross-entropy of the mixtures' means."""
        nodes, labels = view.validation
        mean_NC = self.exact_pool(view)(self.opinions(view.feature_rows.inputs, None).mean_NC)
        return float(-mean_NC[nodes].gather(1, labels.unsqueeze(1)).log().mean())

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return the mixtures' means and the chosen score."""
        with evaluating(self.module):
            alpha_NC = view.project(lambda inputs: self.opinions(inputs, None).alpha_NC)
            opinions = DirichletPosterior(alpha_NC.double())
            diffuse = self.exact_pool(view)
            mean_NC = diffuse(opinions.mean_NC.to(self.dtype))
            score_N1 = diffuse(_own_score(opinions, self.options.epistemic).to(self.dtype))
        score_N = score_N1.squeeze(1)
        if self.options.epistemic == "mutual_information":
            score_N = score_N + torch.special.entr(mean_NC).sum(1)
        return self.prediction(mean_NC, score_N)


class OpinionPool(AbstractOpinionPool):
    """LOP-GPN, which pools over the whole graph in every training step."""

    name = "LOP-GPN"

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:  # noqa: D102
        nodes, labels = view.training
        diffuse = self.exact_pool(view)
        opinions = self.opinions(view.feature_rows.inputs, generator)
        yield self.loss(opinions, lambda values: diffuse(values)[nodes], labels)


class RowOpinionPool(AbstractOpinionPool):
    """LOP-GPN trained on stored rows, whose kept weights are scaled to sum to 1."""

    name = "LOP-GPN-minibatch"
    mode = "minibatch"
    needs_rows = True

    def prepare(self, view: GraphView, store: Path | None) -> None:
        """Open the PPR store.

        Raises:
            StoreError: no store was given, or it belongs to another graph or diffusion.
        """
        self._rows = stored_rows(self, view, store)

    def losses(self, view: GraphView, generator: torch.Generator, epoch: int) -> Iterator[Tensor]:
        """Yield the losses of random batches that contain every training node once."""
        for roots, labels_B in random_batches(view, self.config.minibatch, generator):
            batch = row_batch(view, self._rows, roots, normalised=True)
            opinions = self.opinions(batch.inputs, generator)
            yield self.loss(opinions, batch.weights.__matmul__, labels_B)


def pooled_loss(
    opinions: DirichletPosterior, pool: Pool, labels_B: Tensor, entropy_weight: float
) -> Tensor:
    """Return the mean over roots of E[-log p_y] - weight * (bound on H[mixture]); a scalar.

    Args:
        opinions: Dirichlet distributions of the nodes.
        pool: Linear map to the means of mixtures, (N, ...) -> (B, ...).
        labels_B: Labels of the roots.
        entropy_weight: Weight of the entropy.
    """
    total_N1 = opinions.alpha_0_N.unsqueeze(1)
    nll_NC = torch.digamma(total_N1) - torch.digamma(opinions.alpha_NC)
    entropy_N1 = opinions.entropy().unsqueeze(1)
    pooled = pool(torch.cat([nll_NC, entropy_N1], dim=1))
    nll_B = pooled.gather(1, labels_B.unsqueeze(1)).squeeze(1)
    return (nll_B - entropy_weight * pooled[:, -1]).mean()


def expected_entropy(opinions: DirichletPosterior) -> Tensor:
    """Return E H[p] = sum_c alpha_c / alpha_0 (digamma(alpha_0 + 1) - digamma(alpha_c + 1)), (N,).

    The expected entropy of class probabilities under every Dirichlet.
    """
    total_N1 = opinions.alpha_0_N.unsqueeze(1)
    surprise_NC = torch.digamma(total_N1 + 1.0) - torch.digamma(opinions.alpha_NC + 1.0)
    return (opinions.mean_NC * surprise_NC).sum(1)


def _own_score(opinions: DirichletPosterior, kind: str) -> Tensor:
    """Return what is pooled for a score, (N, 1)."""
    if kind == "entropy":
        return opinions.entropy().unsqueeze(1)
    if kind == "evidence":
        return -opinions.alpha_0_N.unsqueeze(1)
    return -expected_entropy(opinions).unsqueeze(1)

"""VGCN-Ensemble: networks with different initial values (Lakshminarayanan et al., 2017).

Shapes: N nodes, C classes.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from torch import Tensor

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.gcn import VGCN, AbstractGCN
from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import require_positive
from gpn_scale.baselines.predictions import sampled_prediction
from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleOptions:
    """Options of `Ensemble`."""

    members: int = 10
    """Number of networks, each with its own initial values."""

    def __post_init__(self) -> None:
        require_positive("model.members", self.members, "network")


class Ensemble(AbstractBaseline):
    """Several VGCNs with different initial values and dropout; the score is their variance."""

    name = "VGCN-Ensemble"
    Options = EnsembleOptions
    Member: ClassVar[type[AbstractGCN]] = VGCN
    """Class of the members."""

    @property
    def reach(self) -> int:
        """Number of hops over which features act: one per layer."""
        return self.config.encoder.layers

    def fit_view(self, view: GraphView, store: Path | None) -> None:  # noqa: D102
        self._members = self._new_members()
        for member in self._members:
            member.fit_on(view, store)

    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Return mean and variance of the members' predictions."""
        logits = (member.final_logits(view) for member in self._members)
        return sampled_prediction(self.name, (logits_NC.softmax(1) for logits_NC in logits))

    def state(self) -> dict[str, Tensor]:
        """Return the tensors of all members."""
        return {
            f"member{number}.{name}": tensor
            for number, member in enumerate(self._members)
            for name, tensor in member.state().items()
        }

    def restore(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:  # noqa: D102
        self._members = self._new_members()
        for number, member in enumerate(self._members):
            prefix = f"member{number}."
            own = {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            member.load_state(graph, own, source)

    def _new_members(self) -> list[AbstractGCN]:
        # Runs with different seeds share no member.
        seed = 10_007 * self.config.train.rng_seed
        return [
            self.Member(
                replace(self.config, train=replace(self.config.train, rng_seed=seed + number)),
                device=str(self.device),
                dtype=self.dtype,
            )
            for number in range(self.options.members)
        ]

"""`RunFacts`: all that a page shows, already reduced; drawing needs no model and no graph.

Shapes: B bins, S points of a curve, L drawn nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import RunConfig
from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.evaluation.report import Report

BINS = 40
_WIDEST = 1e300

FloatArray = NDArray[np.float64]

SCORE_NAMES = ("aleatoric_no_network", "aleatoric", "epistemic_no_network", "epistemic")
"""The four scores, in the order of a page."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """Densities of groups of values over the same bins."""

    edges: FloatArray
    """(B + 1,)."""
    densities: Mapping[str, FloatArray]
    """Per group, (B,); each integrates to 1, or is 0 for a group without values."""
    counts: Mapping[str, int]
    """Values of each group."""


def histogram_of(groups: Mapping[str, NDArray[np.floating]], bins: int = BINS) -> Histogram:
    """Densities of the finite values of each group, over bins that hold them all."""
    finite = {name: np.asarray(v, np.float64)[np.isfinite(v)] for name, v in groups.items()}
    low, high = data_range(np.concatenate([np.empty(0), *finite.values()]))
    edges = np.linspace(low, high, bins + 1)
    counted = {name: np.histogram(values, edges)[0] for name, values in finite.items()}
    scale = {name: max(len(values), 1) * (edges[1] - edges[0]) for name, values in finite.items()}
    return Histogram(
        edges=edges,
        densities={name: counts / scale[name] for name, counts in counted.items()},
        counts={name: len(values) for name, values in finite.items()},
    )


def data_range(values: NDArray[np.floating]) -> tuple[float, float]:
    """Smallest and largest finite value, apart from each other; (0, 1) for none."""
    finite = np.asarray(values, np.float64)[np.isfinite(values)]
    if len(finite) == 0:
        return 0.0, 1.0
    low, high = (float(np.clip(v, -_WIDEST, _WIDEST)) for v in (finite.min(), finite.max()))
    if high - low > max(1e-9 * max(abs(low), abs(high)), 1 / _WIDEST):
        return low, high
    pad = 0.1 * abs(low) or 0.5
    return low - pad, high + pad


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCurve:
    """Risk over coverage of one score."""

    score: str
    coverage: FloatArray
    """(S,)."""
    risk: FloatArray
    """(S,)."""
    area: float
    """AURC of the whole curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformalFacts:
    """Conformal sets, calibrated on some test nodes and measured on the others."""

    miss: float
    calibration_nodes: int
    measured_nodes: int
    coverage: float
    mean_size: float
    """Classes in a set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemperatureFacts:
    """What another temperature of the probabilities does to their calibration."""

    fitted: float
    """Of the validation nodes."""
    nodes: int
    """Validation nodes."""
    ece: float
    """Of the test nodes at `fitted`."""
    nll: float
    log_temperature: FloatArray
    """log10, (S,)."""
    eces: FloatArray
    """Of the test nodes, (S,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributorFacts:
    """A node that supplied evidence to another."""

    name: str
    itself: bool
    """Whether it is the explained node."""
    adjacent: bool
    """Whether an edge joins it to the explained node."""
    speaks_for: int
    """The class that its own features have most evidence for."""
    weight: float
    """Its diffusion weight."""
    share: float
    """Of the explained node's evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedNode:
    """One node, and where its evidence comes from."""

    name: str
    marks: tuple[str, ...]
    """Marks that it stands in; none for a node of a known kind."""
    label: int
    """Its class, or -1."""
    predicted: int
    probability: float
    """Of the predicted class."""
    evidence: float
    """Pseudo-counts of all classes, with network."""
    own_evidence: float
    """The same without network."""
    contributors: tuple[ContributorFacts, ...]
    """By falling share."""

    @property
    def rest_share(self) -> float:
        """What all others supplied."""
        return max(1.0 - sum(each.share for each in self.contributors), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The nodes that the model is surest and least sure of."""

    certain: tuple[ExplainedNode, ...] = ()
    uncertain: tuple[ExplainedNode, ...] = ()
    typical_evidence: float = 0.0
    """Median pseudo-counts of the known test nodes."""
    source: str = ""
    """Where the weights come from, as a sentence."""
    absent: str = ""
    """Why there are none, as a sentence; empty if there are."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentPoints:
    """Latent positions in two dimensions."""

    position: FloatArray
    """(L, 2)."""
    label: NDArray[np.int64]
    """Class or -1, (L,)."""
    log_evidence: FloatArray
    """log10 of the pseudo-counts without network, (L,)."""
    marked: NDArray[np.bool_]
    """(L,)."""
    explained: tuple[float, float] | None
    """Share of the variance along each axis; None where axes mean nothing."""
    method: str = "principal components"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionFacts:
    """What takes a trained model and its graph."""

    class_names: tuple[str, ...]
    known_nodes: int
    """Test nodes without a mark."""
    marked_nodes: int
    detection: Mapping[str, Mapping[str, float]]
    """Per mark, then per score: AUC-ROC; `all` for all marks together; {} without marks."""
    alpha_0: Histogram
    """log10 of the total concentration, with network."""
    alpha_0_no_network: Histogram
    reliability: Reliability
    risk: tuple[ScoreCurve, ...]
    conformal: ConformalFacts | None
    """None for fewer than two test nodes."""
    temperature: TemperatureFacts | None
    """None without validation or test nodes."""
    vacuity: Histogram
    """log10, of known and unknown nodes."""
    dissonance: Histogram
    """Of right and wrong predictions."""
    missing_mass: Histogram | None
    """Of the stored rows; None in exact mode and where the rows were not found."""
    explained: Explained
    latent: LatentPoints
    neighbours: LatentPoints | None
    """The same nodes, or some of them, placed so that near ones stay near; None for too few."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingCurves:
    """The lines of metrics.jsonl, (S,) each."""

    epoch: FloatArray
    loss: FloatArray
    val_cross_entropy: FloatArray
    val_accuracy: FloatArray
    best_epoch: int
    """0 before there is one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFacts:
    """A run, as far as it went."""

    config: RunConfig
    training: TrainingCurves
    report: Report | None = None
    """None for a run that is not finished."""
    prediction: PredictionFacts | None = None
    """None for a run that is not finished, or has neither test nor marked nodes."""
    missing: tuple[str, ...] = ()
    """What is not there, and how to get it; one sentence each."""

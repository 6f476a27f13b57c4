"""`RunFacts`: everything that the page of a run shows, reduced to what is drawn.

Drawing needs neither a model nor a graph.

Shapes: S points of a curve.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpn_scale.config import RunConfig
from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.evaluation.report import Report
from gpn_scale.page.class_facts import ClassFacts
from gpn_scale.page.detection_curves import DetectionCurve
from gpn_scale.page.histograms import FloatArray, Histogram
from gpn_scale.page.node_rows import NodeRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCurve:
    """Risk-coverage curve of one score."""

    score: str
    """Name of the score."""
    coverage: FloatArray
    """Fraction of nodes that are predicted, (S,)."""
    risk: FloatArray
    """Fraction of errors among them, (S,)."""
    area: float
    """AURC of the whole curve."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemperatureFacts:
    """Effect of temperature scaling on the calibration of the probabilities."""

    fitted: float
    """Temperature fitted to the validation nodes."""
    nodes: int
    """Number of validation nodes."""
    ece: float
    """Calibration error on the test nodes at the fitted temperature."""
    nll: float
    """Negative log-likelihood on the test nodes at the fitted temperature."""
    log_temperature: FloatArray
    """log10 of the temperatures of the curve, (S,)."""
    eces: FloatArray
    """Calibration errors on the test nodes at these temperatures, (S,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFacts:
    """Facts about the p-values."""

    validation_nodes: int
    notes: tuple[str, ...]
    """Notes for readers, one sentence each."""
    p_known: Histogram | None
    """P-values that a node is known, of known test nodes and of unknown nodes; None for few."""
    distance: float | None
    """Kolmogorov-Smirnov distance of the known test nodes' p-values from uniform ones.

    None for too few nodes.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionFacts:
    """The facts that need a trained model and its graph."""

    class_names: tuple[str, ...]
    known_nodes: int
    """Number of test nodes without a mark."""
    unknown_nodes: int
    """Number of nodes with a mark."""
    left_out: tuple[str, ...]
    """Figures that are not shown because of too few nodes, one sentence each."""
    detection: UnknownDetection | None
    """Detection of unknown nodes by the four scores; None without marks."""
    detection_intervals: Mapping[str, Any]
    """Intervals of its metrics, and under `marks` those of each mark; too few nodes have none."""
    alpha_0: Histogram | None
    """log10 of the total concentration with network, of known and unknown nodes; None for few."""
    alpha_0_no_network: Histogram | None
    """log10 of the total concentration without network, of known and unknown nodes."""
    reliability: Reliability | None
    """Accuracy by confidence; None for too few test nodes."""
    risk: tuple[ScoreCurve, ...]
    """Risk-coverage curves; () for too few test nodes."""
    conformal: ConformalSummary | None
    """Size and coverage of conformal sets; None for too few test nodes."""
    temperature: TemperatureFacts | None
    """Effect of temperature scaling; None for too few validation or test nodes."""
    vacuity: Histogram | None
    """log10 of the vacuity of known and unknown nodes; None for too few."""
    dissonance: Histogram | None
    """Dissonance of correct and wrong predictions; None for too few."""
    missing_mass: Histogram | None
    """Missing mass of the stored rows; None in exact mode, or if no store was given."""
    known: KnownFacts | None
    """P-values that a node is known; None for a model without them."""
    classes: ClassFacts
    errors: tuple[DetectionCurve, ...]
    """Detection of errors among the test nodes by each score; () if there are too few."""
    unknown: tuple[DetectionCurve, ...]
    """Detection of unknown nodes by each score; () if there are too few."""
    nodes: NodeRows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingCurves:
    """The epochs of metrics.jsonl, at most a few hundred of them; (S,) each."""

    epoch: FloatArray
    loss: FloatArray
    val_cross_entropy: FloatArray
    val_accuracy: FloatArray
    best_epoch: int
    """Epoch whose weights are kept; 0 if there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFacts:
    """The facts of a run, finished or not."""

    config: RunConfig
    training: TrainingCurves
    report: Report | None = None
    """Report of the run; None if it is not finished."""
    prediction: PredictionFacts | None = None
    """None if the run is not finished, or has neither test nor unknown nodes."""
    missing: tuple[str, ...] = ()
    """Notes on what is not shown and how to get it, one sentence each."""

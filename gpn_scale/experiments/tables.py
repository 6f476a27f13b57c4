"""Tables of means and standard errors over the runs of a matrix, next to the paper's figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.catalogue import EXPERIMENTS, LEFT_OUT_EXPERIMENTS
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.paper_figures import Figure, PaperKey, paper_key
from gpn_scale.experiments.standard_errors import Seeds, mean_and_error
from gpn_scale.table_text import csv_text, markdown_row, markdown_text

_NOT_FRACTIONS = (
    *("aurc", "nll", "conformal_size", "epistemic_confidence", "temperature"),
    *("cpu_seconds", "added_mib"),
)
"""Metrics that are not fractions, and so not in percent."""

CONFIDENCES = ("aleatoric_confidence", "epistemic_confidence")
"""Metrics that shifts divide by their value on the clean graph."""
RELATIVE = "relative_"
"""Prefix of confidences under a shift, divided by the confidence on the clean graph."""

_CSV_COLUMNS = (
    *("dataset", "model", "experiment", "metric", "mean", "standard_error", "runs"),
    *("paper", "paper_standard_error", "difference"),
)


RunValues = dict[tuple[str, str, str, str], dict[Seeds, float]]
"""Values of runs by seeds, for each dataset, model, experiment and metric."""


@dataclass(frozen=True)
class Entry:
    """One number of a table: the mean of a metric over all seeds of a graph and a model."""

    dataset: str
    model: str
    experiment: str
    metric: str
    mean: float
    error: float
    """Standard error of the mean over crossed seeds; NaN for a single run."""
    runs: int
    paper: Figure | None = None

    @property
    def difference(self) -> float | None:
        """Difference of the mean from the paper's figure; None without one."""
        return None if self.paper is None else self.mean - self.paper.value


def entries(
    results: Mapping[Cell, CellResult],
    paper: Mapping[PaperKey, Figure] | None = None,
) -> list[Entry]:
    """Return every metric of every experiment; fractions are in percent.

    The order is that of the cells, then that of `EXPERIMENTS`. The paper leaves out the last
    classes, so numbers of other class sets have no figure of the paper beside them.
    """
    other_sets = {(cell.dataset, cell.model) for cell in results if cell.class_set}

    def figure(dataset: str, model: str, experiment: str, metric: str) -> Figure | None:
        if experiment in LEFT_OUT_EXPERIMENTS and (dataset, model) in other_sets:
            return None
        return (paper or {}).get(paper_key(dataset, model, experiment, metric))

    return [
        Entry(*key, *mean_and_error(runs), len(runs), paper=figure(*key))
        for key, runs in run_values(results).items()
    ]


def run_values(results: Mapping[Cell, CellResult]) -> RunValues:
    """Return the values of every metric by seeds; fractions are in percent."""
    values: RunValues = {}
    for cell, result in results.items():
        for experiment in sorted(result.results, key=_order):
            for metric, value in with_relative(result.results[experiment]).items():
                runs = values.setdefault((cell.dataset, cell.model, experiment, metric), {})
                runs[cell.seeds] = unit_of(metric) * value
    return values


def _order(experiment: str) -> int:
    names = list(EXPERIMENTS)
    return names.index(experiment) if experiment in names else len(names)


def with_relative(metrics: Metrics) -> Metrics:
    """Return the metrics, and confidences under a shift divided by the run's clean confidence."""
    extended = dict(metrics)
    for name in CONFIDENCES:
        clean = metrics.get(f"{name}@clean", math.nan)
        for metric, value in metrics.items():
            if metric.startswith(f"{name}@"):
                extended[RELATIVE + metric] = _relative(value, clean)
    return extended


def _relative(confidence: float, clean: float) -> float:
    """Return the ratio, above 1 for more confidence than clean; NaN where it has no meaning.

    A confidence below 0 is minus a variance or an energy; the inverse ratio is then returned.
    """
    if clean > 0.0:
        return confidence / clean
    return clean / confidence if clean < 0.0 and confidence < 0.0 else math.nan


def unit_of(metric: str) -> float:
    """Return the factor of a metric in tables: 100 for fractions, which are in percent, else 1."""
    return 1.0 if metric.startswith(_NOT_FRACTIONS) else 100.0


def to_csv(table: Iterable[Entry]) -> str:
    """Return the table as CSV, one line per number."""
    rows: list[Sequence[object]] = [_CSV_COLUMNS]
    for entry in table:
        paper = entry.paper or Figure(math.nan, math.nan)
        numbers = (entry.mean, entry.error, entry.runs, paper.value, paper.error)
        difference = math.nan if entry.difference is None else entry.difference
        rows.append(
            [
                *(entry.dataset, entry.model, entry.experiment, entry.metric),
                *(_plain(number) for number in (*numbers, difference)),
            ]
        )
    return csv_text(rows)


def to_markdown(table: Sequence[Entry]) -> str:
    """Return a Markdown table per experiment: graphs and models in rows, metrics in columns."""
    parts = []
    for experiment, metrics, rows in _pivot(table):
        parts.append(f"## {markdown_text(experiment)}\n")
        lines = [["graph", "model", *metrics], ["---"] * (2 + len(metrics))]
        lines += [[*head, *(cell_text(entry) for entry in cells)] for head, cells in rows]
        parts.append("\n".join(map(markdown_row, lines)) + "\n")
    return "\n".join(parts)


Pivot = list[tuple[str, list[str], list[tuple[tuple[str, str], list[Entry | None]]]]]
"""Tables of experiments: (experiment, metrics, [((graph, model), an entry per metric)])."""


def _pivot(table: Sequence[Entry]) -> Pivot:
    """Arrange the entries as one table per experiment."""
    tables: Pivot = []
    for experiment in dict.fromkeys(entry.experiment for entry in table):
        own = [entry for entry in table if entry.experiment == experiment]
        metrics = list(dict.fromkeys(entry.metric for entry in own))
        by_key = {((entry.dataset, entry.model), entry.metric): entry for entry in own}
        heads = dict.fromkeys((entry.dataset, entry.model) for entry in own)
        rows = [(head, [by_key.get((head, metric)) for metric in metrics]) for head in heads]
        tables.append((experiment, metrics, rows))
    return tables


def cell_text(entry: Entry | None) -> str:
    """Return mean, error and the paper's figure as text for a table cell."""
    if entry is None or math.isnan(entry.mean):
        return "n.a."
    text = _number(entry, entry.mean)
    text += "" if math.isnan(entry.error) else f" ± {_number(entry, entry.error, 2)}"
    if entry.paper is not None and entry.difference is not None:
        text += f" (paper {_number(entry, entry.paper.value)}, {entry.difference:+.1f})"
    return text


def _number(entry: Entry, value: float, digits: int = 3) -> str:
    """Return percentages with one decimal, others with `digits` digits, but whole at least."""
    if unit_of(entry.metric) != 1.0:
        return f"{value:.1f}"
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def _plain(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"

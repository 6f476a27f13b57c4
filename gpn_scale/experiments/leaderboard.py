"""The leaderboard: all models on all graphs, each with one declared score per task."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gpn_scale.evaluation.scores import DETECTION_SCORES, EPISTEMIC_LOCAL
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.declared_scores import declared_scores
from gpn_scale.experiments.leaderboard_columns import COLUMNS, COSTS, TASKS, Column
from gpn_scale.experiments.measured_cells import Cells
from gpn_scale.experiments.standard_errors import Seeds
from gpn_scale.experiments.stored_results import paired_differences
from gpn_scale.experiments.tables import Entry, RunValues, entries, run_values

REFERENCE = "GPN"
"""Model that all others are compared with, run by run."""
OWN_MODEL = "GPN+"
"""Our default model, for the table of where others are better."""
SCORE_PLACES = {
    "errors, AUC-ROC": ("misclassification", "auroc_{}", "errors"),
    "left-out, AUC-ROC": ("left-out-classes", "auroc_{}", "unknown"),
    "Bernoulli, AUC-ROC": ("isolated", "auroc_{}@bernoulli", "perturbed"),
    "Gaussian, AUC-ROC": ("isolated", "auroc_{}@normal", "perturbed"),
}
"""Columns of the table of all scores: experiment, metric, and the task of the declared score."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A score of a model on a graph, tried at every task."""

    dataset: str
    model: str
    score: str
    entries: tuple[Entry | None, ...]
    """An entry for each of `SCORE_PLACES`."""
    declared: tuple[bool, ...]
    """Whether the model enters the leaderboard with this score, for each of `SCORE_PLACES`."""


@dataclass(frozen=True)
class Leaderboard:
    """Numbers, ranks and differences of all models.

    Best numbers and ranks are those of complete models alone. A model is complete on a graph if it
    has a number for every run that any model has there, and it is ranked in a column if it is
    complete on all graphs: neither means over different runs nor ranks among different models can
    be compared.
    """

    cells: Cells
    """The measured cells."""
    reference: str = REFERENCE
    """Model that all others are compared with."""

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """Names of the graphs, sorted."""
        return tuple(sorted({cell.dataset for cell in self.cells}))

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models: the best mean rank first, those without one last and by name."""
        names = sorted({cell.model for cell in self.cells})
        rank = {name: self.overall_rank(name) for name in names}
        return tuple(sorted(names, key=lambda name: (math.isnan(rank[name]), rank[name])))

    def number(self, dataset: str, model: str, column: Column) -> Entry | None:
        """Return the mean of a column and its error, for a cost the median; None without runs."""
        return self._numbers.get((dataset, model, column.name))

    def difference(self, dataset: str, model: str, column: Column) -> Entry | None:
        """Return the mean of model - reference over common runs; None without such runs."""
        return self._differences.get((dataset, model, column.name))

    def best(self, dataset: str, column: Column) -> set[str]:
        """Return the complete models with the best mean on a graph."""
        means = self._means(dataset, column)
        if not means:
            return set()
        top = max(means.values()) if column.higher_is_better else min(means.values())
        return {model for model, mean in means.items() if mean == top}

    def ranks(self, dataset: str, column: Column) -> dict[str, float]:
        """Return the rank of each model that is complete on all graphs; equal ones share it."""
        means = self._means(dataset, column)
        everywhere = [
            model
            for model in means
            if all(model in self._means(other, column) for other in self.datasets)
        ]
        sign = -1.0 if column.higher_is_better else 1.0
        values = {model: sign * means[model] for model in everywhere}
        return {
            model: 1.0
            + sum(other < own for other in values.values())
            + 0.5 * (sum(other == own for other in values.values()) - 1)
            for model, own in values.items()
        }

    def mean_rank(self, model: str, column: Column) -> float:
        """Return the rank in a column, averaged over graphs; NaN for a model that is not ranked."""
        ranks = [self.ranks(dataset, column).get(model, math.nan) for dataset in self.datasets]
        return statistics.fmean(ranks) if ranks else math.nan

    def task_rank(self, model: str, task: str) -> float:
        """Return the mean rank, averaged over the columns of a task."""
        columns = [column for column in COLUMNS if column.task == task]
        return statistics.fmean(self.mean_rank(model, column) for column in columns)

    def overall_rank(self, model: str) -> float:
        """Return the mean rank, averaged over tasks."""
        return statistics.fmean(self.task_rank(model, task) for task in TASKS)

    def graph_mean(self, model: str, column: Column) -> float:
        """Return the mean of a column, averaged over graphs; NaN unless complete on all graphs."""
        means = [self._means(dataset, column).get(model, math.nan) for dataset in self.datasets]
        return statistics.fmean(means) if means else math.nan

    @cached_property
    def values(self) -> RunValues:
        """Values of all runs in the columns of quality, in percent if they are fractions."""
        return run_values(self._declared)

    @cached_property
    def score_rows(self) -> list[ScoreRow]:
        """Every score of every model, in the order of the tables."""
        by_place = {(e.dataset, e.model, e.experiment, e.metric): e for e in entries(self.cells)}
        rows = []
        for dataset in self.datasets:
            for model in self.models:
                enters = declared_scores(model)
                for score in (*DETECTION_SCORES, EPISTEMIC_LOCAL.name):
                    own = tuple(
                        by_place.get((dataset, model, experiment, metric.format(score)))
                        for experiment, metric, _ in SCORE_PLACES.values()
                    )
                    declared = tuple(
                        getattr(enters, task) == score for _, _, task in SCORE_PLACES.values()
                    )
                    if any(entry is not None and not math.isnan(entry.mean) for entry in own):
                        rows.append(ScoreRow(dataset, model, score, own, declared))
        return rows

    @cached_property
    def _declared(self) -> dict[Cell, CellResult]:
        return declared_results(self.cells, COLUMNS)

    @cached_property
    def _numbers(self) -> dict[tuple[str, str, str], Entry]:
        table = [*entries(self._declared), *cost_entries(self.cells)]
        return {(entry.dataset, entry.model, entry.metric): entry for entry in table}

    @cached_property
    def _differences(self) -> dict[tuple[str, str, str], Entry]:
        return {
            (entry.dataset, model, entry.metric): entry
            for model in self.models
            if model != self.reference
            for entry in paired_differences(self._declared, model, self.reference)
        }

    def _means(self, dataset: str, column: Column) -> dict[str, float]:
        """Return the means of all complete models."""
        runs = self._runs.get((dataset, column.name), {})
        every = set[Seeds]().union(*runs.values())
        return {
            model: self._numbers[dataset, model, column.name].mean
            for model, own in runs.items()
            if own == every
        }

    @cached_property
    def _runs(self) -> dict[tuple[str, str], dict[str, set[Seeds]]]:
        """Runs with a number, by graph and column, then by model."""
        runs: dict[tuple[str, str], dict[str, set[Seeds]]] = {}
        for cell, result in self._declared.items():
            for metrics in result.results.values():
                for name, value in metrics.items():
                    if not math.isnan(value):
                        of_models = runs.setdefault((cell.dataset, name), {})
                        of_models.setdefault(cell.model, set()).add(cell.seeds)
        return runs


def declared_results(cells: Cells, columns: Sequence[Column]) -> dict[Cell, CellResult]:
    """Return the results of the columns, with the same names for all models."""
    declared: dict[Cell, CellResult] = {}
    for cell, result in cells.items():
        own = declared.setdefault(cell, CellResult(result.fingerprint))
        for column in columns:
            metrics = result.results.get(column.experiment, {})
            value = metrics.get(column.metric_of(cell.model))
            if value is not None:
                own.results.setdefault(column.experiment, {})[column.name] = value
    return declared


def cost_entries(cells: Cells) -> list[Entry]:
    """Return the median cost of the trainings of each graph and model."""
    values: dict[tuple[str, str, Column], list[float]] = {}
    for (cell, result), column in ((item, c) for item in cells.items() for c in COSTS):
        value = result.results.get(column.experiment, {}).get(column.metric)
        if value is not None:
            values.setdefault((cell.dataset, cell.model, column), []).append(value)
    return [
        Entry(
            *(dataset, model, column.experiment, column.name),
            *(statistics.median(costs), math.nan, len(costs)),
        )
        for (dataset, model, column), costs in values.items()
    ]


def is_shown(model: str, experiment: str, metric: str) -> bool:
    """Return whether the leaderboard shows a metric of a model."""
    columns = {(column.experiment, column.metric_of(model)) for column in (*COLUMNS, *COSTS)}
    kinds = {place: kind.partition("{}")[0] for place, kind, _ in SCORE_PLACES.values()}
    is_score = experiment in kinds and metric.startswith(kinds[experiment])
    return is_score or (experiment, metric) in columns

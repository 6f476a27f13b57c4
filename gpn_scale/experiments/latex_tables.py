"""Results of a matrix as LaTeX tables: models in rows, graphs and metrics in columns."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpn_scale.experiments.latex import (
    MISSING,
    LatexTable,
    column_decimals,
    escaped,
    label_text,
    number_texts,
)
from gpn_scale.experiments.metric_columns import MetricColumn
from gpn_scale.experiments.paper_figures import Figure
from gpn_scale.experiments.standard_errors import Seeds, mean_and_error
from gpn_scale.experiments.tables import Entry, RunValues, unit_of

_Item = TypeVar("_Item")

MOST_COLUMNS = 8
"""Numbers in a row of a table at most; more than that do not fit on a page."""
_PAPER = " (paper)"
_ARROWS = {True: r" $\uparrow$", False: r" $\downarrow$", None: ""}
_EMPHASIS = (
    "Bold: best mean of a column. Underlined: at most one standard error from the best, by "
    "differences between runs with the same seeds"
)
_FEWER = r"^\dagger"
_FEWER_TEXT = f"${_FEWER}$: fewer runs than other models, not compared with them"


@dataclass(frozen=True)
class ResultTables:
    """The tables of some metrics of a matrix."""

    values: RunValues
    """Values of all runs, by graph, model, experiment and metric."""
    columns: Sequence[MetricColumn]
    """The metrics."""
    models: Sequence[str]
    """Names of the models, in the order of the rows."""
    datasets: Sequence[str]
    """Names of the graphs, in the order of the columns."""
    paper: Mapping[tuple[str, str, str, str], Figure]
    """The paper's figures, by the keys of `values`."""
    name: str = "results"
    """First part of all labels."""

    def tables(self) -> Iterator[LatexTable]:
        """Yield one table of all metrics if it is narrow enough, else tables of one metric each."""
        if len(self.columns) * len(self.datasets) <= MOST_COLUMNS:
            yield self._table(self.columns, self.datasets, ())
        elif len(self.datasets) == 1:
            for number, columns in enumerate(_pieces(self.columns), start=1):
                yield self._table(columns, self.datasets, (str(number),))
        else:
            pieces = _pieces(self.datasets)
            for column in self.columns:
                for number, datasets in enumerate(pieces, start=1):
                    piece = () if len(pieces) == 1 else (str(number),)
                    yield self._table([column], datasets, piece)

    def _table(
        self, columns: Sequence[MetricColumn], datasets: Sequence[str], piece: tuple[str, ...]
    ) -> LatexTable:
        """Return the table of some columns on some graphs; `piece` tells its label from others."""
        places = [(dataset, column) for dataset in datasets for column in columns]
        cells = [self._cells(dataset, column) for dataset, column in places]
        rows = tuple(
            (escaped(name), *(of_place.get(name, MISSING) for of_place in cells))
            for name in self._rows()
            if name in self.models or any(name in of_place for of_place in cells)
        )
        names = [escaped(dataset) for dataset, _ in places]
        has_fewer = any(_FEWER in cell for row in rows for cell in row)
        if len(columns) == 1:
            parts = [columns[0].experiment, columns[0].metric]
            header, groups, subject = names, list[str](), _subject(columns[0])
        else:
            parts, header = [], [_stacked(column) for _, column in places]
            groups = names if len(datasets) > 1 else []
            subject = f"Results on {escaped(', '.join(datasets))}"
        return LatexTable(
            caption=self._caption(subject, columns, has_fewer=has_fewer),
            label=label_text(self.name, *parts, *piece),
            header=("model", *header),
            rows=rows,
            groups=tuple(groups),
        )

    def _caption(self, subject: str, columns: Sequence[MetricColumn], *, has_fewer: bool) -> str:
        """Return what the numbers are, and how the best ones are marked."""
        sentences = [f"{subject}: {self._numbers_text(columns)}"]
        plain = [column.heading for column in columns if unit_of(column.metric) == 1.0]
        if not plain:
            sentences[0] += ", in percent"
        elif len(plain) < len(columns):
            besides = escaped(", ".join(dict.fromkeys(plain)))
            sentences[0] += f", in percent except for {besides}"
        if any(column.higher_is_better is not None for column in columns) and len(self.models) > 1:
            sentences.append(_EMPHASIS)
        sentences += [_FEWER_TEXT] if has_fewer else []
        return ". ".join(sentences) + "."

    def _numbers_text(self, columns: Sequence[MetricColumn]) -> str:
        keys = {(column.experiment, column.metric) for column in columns}
        counts = {len(_numbers(runs)) for key, runs in self.values.items() if key[2:] in keys}
        most = max(counts, default=0)
        if most < 2:
            return "one run"
        return f"mean $\\pm$ standard error over {'up to ' if len(counts) > 1 else ''}{most} runs"

    def _rows(self) -> list[str]:
        """Return the names of all rows: models, and after each its figures in the paper."""
        in_paper = {key[1] for key in self.paper}
        return [
            name
            for model in self.models
            for name in (model, *([model + _PAPER] if model in in_paper else []))
        ]

    def _cells(self, dataset: str, column: MetricColumn) -> dict[str, str]:
        """Return the cells of a column by the names of their rows."""
        keys = {model: (dataset, model, column.experiment, column.metric) for model in self.models}
        runs = {model: _numbers(self.values.get(key, {})) for model, key in keys.items()}
        runs = {model: values for model, values in runs.items() if values}
        numbers = {model: mean_and_error(values) for model, values in runs.items()}
        for model, key in keys.items():
            if key in self.paper:
                figure = self.paper[key]
                numbers[model + _PAPER] = (figure.value, figure.error)
        decimals = column_decimals(
            [mean for mean, _ in numbers.values()],
            [error for _, error in numbers.values()],
            percent=unit_of(column.metric) != 1.0,
        )
        best, near, fewer = compared(runs, column.higher_is_better)
        cells = {}
        for name, (mean, error) in numbers.items():
            text, error_text = number_texts(mean, error, decimals)
            command = r"\mathbf" if name in best else r"\underline" if name in near else ""
            text = f"{command}{{{text}}}" if command else text
            text += "" if error_text is None else f" \\pm {error_text}"
            cells[name] = f"${text}{_FEWER if name in fewer else ''}$"
        return cells


def compared(
    runs: Mapping[str, Mapping[Seeds, float]], higher_is_better: bool | None
) -> tuple[set[str], set[str], set[str]]:
    """Compare models by their runs on a graph.

    Args:
        runs: Values of the runs of each model.
        higher_is_better: Which values are better; None for neither.

    Returns:
        The models with the best mean, those that are within one standard error of it by differences
        between runs with the same seeds, and those with fewer runs than others. These last are not
        compared, and nothing is if less than two models are left.
    """
    every = set[Seeds]().union(*runs.values())
    fewer = {model for model, values in runs.items() if values.keys() != every}
    complete = {model: values for model, values in runs.items() if model not in fewer}
    if higher_is_better is None or len(complete) < 2:
        return set(), set(), fewer
    means = {model: mean_and_error(values)[0] for model, values in complete.items()}
    top = max(means.values()) if higher_is_better else min(means.values())
    best = {model for model, mean in means.items() if mean == top}
    first = complete[min(best)]
    near = set()
    for model in complete.keys() - best:
        pairs = {seeds: value - first[seeds] for seeds, value in complete[model].items()}
        difference, error = mean_and_error(pairs)
        if abs(difference) <= error:  # false for NaN, the error of a single run
            near.add(model)
    return best, near, fewer


def matrix_tables(
    values: RunValues, table: Sequence[Entry], columns: Sequence[MetricColumn]
) -> ResultTables:
    """Return the tables of some metrics of a matrix.

    Args:
        values: Values of all runs.
        table: Means of the same runs, with the paper's figures.
        columns: The metrics to show.
    """
    paper = {
        (entry.dataset, entry.model, entry.experiment, entry.metric): entry.paper
        for entry in table
        if entry.paper is not None
    }
    return ResultTables(
        values=values,
        columns=columns,
        models=list(dict.fromkeys(model for _, model, *_ in values)),
        datasets=list(dict.fromkeys(dataset for dataset, *_ in values)),
        paper=paper,
    )


def _numbers(values: Mapping[Seeds, float]) -> dict[Seeds, float]:
    return {seeds: value for seeds, value in values.items() if not math.isnan(value)}


def _pieces(items: Sequence[_Item]) -> list[list[_Item]]:
    """Cut a list into pieces that fit into a table."""
    return [list(items[at : at + MOST_COLUMNS]) for at in range(0, len(items), MOST_COLUMNS)]


def _subject(column: MetricColumn) -> str:
    """Return what the table of one metric shows."""
    title = f"{column.task}, {column.heading}" if column.task else column.heading
    return escaped(title[:1].upper() + title[1:]) + _ARROWS[column.higher_is_better]


def _stacked(column: MetricColumn) -> str:
    """Return a heading, with the task of the metric above its name."""
    name = escaped(column.heading) + _ARROWS[column.higher_is_better]
    return rf"\shortstack[r]{{{escaped(column.task)}\\{name}}}" if column.task else name

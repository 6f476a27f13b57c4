"""The tables of the leaderboard, as texts for Markdown, HTML and CSV."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpn_scale.experiments.declared_scores import declared_scores
from gpn_scale.experiments.leaderboard import OWN_MODEL, SCORE_PLACES, Leaderboard
from gpn_scale.experiments.leaderboard_columns import COLUMNS, COSTS, TASKS, Column
from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.table_text import csv_text, markdown_row, markdown_text

_EVERY = (*COLUMNS, *COSTS)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts; the cells that are best in their columns are marked."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    """Positions (row, column) of the best cells."""

    def formatted(self, bold: Callable[[str], str]) -> list[list[str]]:
        """Return the rows, with `bold` applied to the best cells."""
        return [
            [
                bold(text) if (row, column) in self.best else text
                for column, text in enumerate(texts)
            ]
            for row, texts in enumerate(self.rows)
        ]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = self.formatted(lambda text: f"**{text}**")
        lines = [self.header, ["---"] * len(self.header), *rows]
        return "\n".join(map(markdown_row, lines)) + "\n"


def claim(board: Leaderboard) -> str:
    """Return the result of the leaderboard in one sentence."""
    ranked = [model for model in board.models if not math.isnan(board.overall_rank(model))]
    if not ranked:
        return "No model has been run on every graph yet, so there are no ranks."
    graphs = ", ".join(board.datasets)
    ranks = [f"{board.overall_rank(model):.1f}" for model in ranked]
    sentence = f"{ranked[0]} has the best mean rank, {ranks[0]} among {len(ranked)} models"
    if len(ranked) > 1:
        sentence += f"; {ranked[1]} follows with {ranks[1]}"
    return f"{sentence} ({len(TASKS)} tasks on {graphs})."


def rank_table(board: Leaderboard) -> TextTable:
    """Return the mean rank of each ranked model in every task and in all of them."""
    values = []
    for model in board.models:
        ranks = [board.task_rank(model, task) for task in TASKS]
        values.append([*ranks, board.overall_rank(model)])
    rows = tuple(
        (model, *("n.a." if math.isnan(rank) else f"{rank:.1f}" for rank in ranks))
        for model, ranks in zip(board.models, values, strict=True)
    )
    known = [ranks for ranks in values if not any(map(math.isnan, ranks))]
    best = frozenset(
        (row, column + 1)
        for column in range(len(TASKS) + 1)
        for row, ranks in enumerate(values)
        if ranks in known and ranks[column] == min(each[column] for each in known)
    )
    return TextTable(("model", *TASKS, "all tasks"), rows, best)


def winner_table(board: Leaderboard) -> TextTable:
    """Return the best model of each column by the mean over graphs, beside the reference."""
    rows = []
    for column in COLUMNS:
        means = {model: board.graph_mean(model, column) for model in board.models}
        known = {model: mean for model, mean in means.items() if not math.isnan(mean)}
        if known:
            top = (max if column.higher_is_better else min)(known.values())
            best = ", ".join(model for model, mean in known.items() if mean == top)
            reference = _mean_text(column, known.get(board.reference))
            rows.append((column.arrow_heading, best, _mean_text(column, top), reference))
    return TextTable(("column", "best", "its mean", board.reference), tuple(rows))


def mean_table(board: Leaderboard) -> TextTable:
    """Return the mean over graphs of every ranked model, with a row per column."""
    ranked = [model for model in board.models if not math.isnan(board.overall_rank(model))]
    rows = [
        (column.arrow_heading, *(_mean_text(column, board.graph_mean(m, column)) for m in ranked))
        for column in COLUMNS
    ]
    return TextTable(("column", *ranked), tuple(rows))


def behind_table(board: Leaderboard, model: str = OWN_MODEL) -> TextTable:
    """Return where another model is better than `model`: the best one of each graph and column."""
    rows = []
    for dataset in board.datasets:
        for column in COLUMNS:
            best, own = board.best(dataset, column), board.number(dataset, model, column)
            if own is None or not best or model in best:
                continue
            numbers = {name: board.number(dataset, name, column) for name in sorted(best)}
            top = cell_text(next(iter(numbers.values())))
            rows.append((dataset, column.arrow_heading, ", ".join(numbers), top, cell_text(own)))
    return TextTable(("graph", "column", "best", "its mean", model), tuple(rows))


def graph_table(board: Leaderboard, dataset: str) -> TextTable:
    """Return all numbers of a graph, with a row per model."""
    models = [m for m in board.models if any(board.number(dataset, m, c) for c in _EVERY)]
    rows = []
    for model in models:
        numbers = [board.number(dataset, model, column) for column in _EVERY]
        rows.append((model, _runs_text(board, dataset, model), *map(cell_text, numbers)))
    best = frozenset(
        (row, place + 2)
        for place, column in enumerate(COLUMNS)
        for row, model in enumerate(models)
        if model in board.best(dataset, column)
    )
    header = ("model", "runs", *(column.arrow_heading for column in _EVERY))
    return TextTable(header, tuple(rows), best)


def difference_table(board: Leaderboard, dataset: str) -> TextTable:
    """Return the differences of all models from the reference on a graph, run by run."""
    rows = []
    for model in board.models:
        differences = [board.difference(dataset, model, column) for column in COLUMNS]
        if any(differences):
            rows.append((f"{model} - {board.reference}", *map(difference_text, differences)))
    return TextTable(("difference", *(column.arrow_heading for column in COLUMNS)), tuple(rows))


def score_table(board: Leaderboard, dataset: str) -> TextTable:
    """Return every score of every model on a graph; declared scores have a star."""
    own = [row for row in board.score_rows if row.dataset == dataset]
    rows = tuple(
        (
            *(row.model, row.score),
            *(
                cell_text(entry) + (" ★" if declared else "")
                for entry, declared in zip(row.entries, row.declared, strict=True)
            ),
        )
        for row in own
    )
    best = frozenset(
        (place, column + 2)
        for column in range(len(SCORE_PLACES))
        for place, row in enumerate(own)
        if _mean(row.entries[column]) > -math.inf
        and _mean(row.entries[column]) == max(_mean(other.entries[column]) for other in own)
    )
    header = ("model", "score", *(f"{heading} ↑" for heading in SCORE_PLACES))
    return TextTable(header, rows, best)


def declared_table(board: Leaderboard) -> TextTable:
    """Return the declared scores of each model."""
    rows = [
        (model, scores.errors, scores.unknown, scores.perturbed)
        for model in board.models
        for scores in [declared_scores(model)]
    ]
    return TextTable(("model", "errors", "left-out classes", "perturbed features"), tuple(rows))


def table_csv(board: Leaderboard) -> str:
    """Return all numbers as CSV, with a line per graph, model and column."""
    head = ("dataset", "model", "column", "mean", "standard_error", "runs", "rank")
    rows: list[Sequence[object]] = [(*head, "difference", "difference_standard_error")]
    for dataset in board.datasets:
        for model in board.models:
            for column in _EVERY:
                entry = board.number(dataset, model, column)
                if entry is None:
                    continue
                rank = math.nan
                if column in COLUMNS:
                    rank = board.ranks(dataset, column).get(model, math.nan)
                paired = board.difference(dataset, model, column)
                difference = (math.nan,) * 2 if paired is None else (paired.mean, paired.error)
                numbers = (entry.mean, entry.error, entry.runs, rank, *difference)
                rows.append((dataset, model, column.name, *map(_plain, numbers)))
    return csv_text(rows)


def sections(board: Leaderboard) -> dict[str, str]:
    """Return the parts of the Markdown page that follow from the runs, by the names of markers."""
    graphs, scores = [], []
    for dataset in board.datasets:
        differences = difference_table(board, dataset)
        graphs.append(f"### {markdown_text(dataset)}\n\n{graph_table(board, dataset).markdown()}")
        if differences.rows:
            graphs.append(differences.markdown())
        table = score_table(board, dataset).markdown()
        scores.append(f"### All scores on {markdown_text(dataset)}\n\n{table}")
    return {
        "claim": f"**{claim(board)}**",
        "ranks": rank_table(board).markdown(),
        "winners": winner_table(board).markdown(),
        "means": mean_table(board).markdown(),
        "behind": behind_table(board).markdown(),
        "graphs": "\n".join(graphs),
        "scores": "\n".join(scores),
        "declared": declared_table(board).markdown(),
        "runs": runs_sentence(board),
    }


def runs_sentence(board: Leaderboard) -> str:
    """Return what has been run so far."""
    splits = {cell.split for cell in board.cells}
    sets = {cell.class_set for cell in board.cells if cell.left_out}
    return (
        f"So far: {len(board.cells):,} trainings of {len(board.models)} models on "
        f"{', '.join(board.datasets) or 'no graph'}, with {_counted(len(splits), 'split')} and "
        f"{_counted(len(sets), 'set')} of left-out classes."
    )


def _counted(count: int, word: str) -> str:
    """Return a count with its noun in the singular or plural."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def difference_text(entry: Entry | None) -> str:
    """Return a difference with its sign, and its error."""
    text = cell_text(entry)
    return f"+{text}" if entry is not None and entry.mean > 0 else text


def _runs_text(board: Leaderboard, dataset: str, model: str) -> str:
    """Return the numbers of trainings with all classes and with left-out classes."""
    own = [cell for cell in board.cells if (cell.dataset, cell.model) == (dataset, model)]
    left_out = sum(cell.left_out for cell in own)
    return f"{len(own) - left_out} + {left_out}"


def _mean_text(column: Column, mean: float | None) -> str:
    if mean is None:
        return "n.a."
    return cell_text(Entry("", "", column.experiment, column.name, mean, math.nan, 1))


def _mean(entry: Entry | None) -> float:
    return -math.inf if entry is None or math.isnan(entry.mean) else entry.mean


def _plain(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"

"""The page of the leaderboard: ranks, a table and plots per graph, all scores."""

import math
from pathlib import Path

from gpn_scale.experiments.leaderboard import Leaderboard
from gpn_scale.experiments.leaderboard_columns import COLUMNS, Column
from gpn_scale.experiments.leaderboard_document import (
    TextTable,
    claim,
    declared_table,
    difference_table,
    graph_table,
    rank_table,
    runs_sentence,
    score_table,
    winner_table,
)
from gpn_scale.files import write_text
from gpn_scale.page.components import Section, columns, figure, paragraph, table
from gpn_scale.page.document import document, write_plots
from gpn_scale.page.dot_plot import Dot, dot_plot
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.shift_plots import anchor
from gpn_scale.page.svg import Plot

_PLOTTED = tuple(
    column for column in COLUMNS if column.heading not in ("left-out, AUC-PR", "left-out, FPR95")
)
_READING = (
    "Fractions are in percent. Numbers are means with standard errors over splits and sets of "
    "left-out classes; runs that share either are not counted as independent. Costs are medians. "
    "Runs are counted with all classes + with left-out classes. An arrow points to better numbers; "
    "the best number of a column is bold. A model with fewer runs than another is neither ranked "
    "nor bold."
)


def write_leaderboard_page(path: Path, board: Leaderboard) -> None:
    """Write the page, and its plots next to it in `plots/`."""
    sections = [_overview(board), *(_graph_section(board, name) for name in board.datasets)]
    sections.append(_score_section(board))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_plots(path.parent / "plots", sections)
    title = "Leaderboard"
    write_text(path, document(title, "Graph Posterior Networks", tag("h1", title), sections))


def write_pictures(folder: Path, board: Leaderboard) -> dict[str, str]:
    """Write the plots of a Markdown page; return their file names by title."""
    column = next(each for each in COLUMNS if each.heading == "left-out, AUC-ROC")
    plots = [rank_plot(board), *(column_plot(board, name, column) for name in board.datasets)]
    write_plots(folder, [Section("pictures", "Pictures", "", tuple(plots))])
    return {plot.title: f"{plot.name}.svg" for plot in plots}


def rank_plot(board: Leaderboard) -> Plot:
    """Draw the mean rank over all tasks and graphs of every ranked model."""
    ranks = {model: board.overall_rank(model) for model in board.models}
    known = {model: rank for model, rank in ranks.items() if not math.isnan(rank)}
    best = min(known.values(), default=math.nan)
    dots = [Dot(model, rank, is_best=rank == best) for model, rank in known.items()]
    return dot_plot("leaderboard-ranks", "Mean rank over all tasks", dots, "mean rank ↓")


def column_plot(board: Leaderboard, dataset: str, column: Column) -> Plot:
    """Draw one column of a graph for all models."""
    best, dots = board.best(dataset, column), []
    for model in board.models:
        entry = board.number(dataset, model, column)
        if entry is not None and not math.isnan(entry.mean):
            dots.append(Dot(model, entry.mean, entry.error, model in best))
    name = anchor(f"leaderboard-{dataset}-{column.name}")
    return dot_plot(name, f"{dataset}: {column.heading}", dots, column.arrow_heading)


def _overview(board: Leaderboard) -> Section:
    plot = rank_plot(board)
    body = tag("p", tag("strong", escaped(claim(board))))
    body += paragraph(runs_sentence(board)) + paragraph(_READING)
    body += _table(rank_table(board), "Mean ranks by task")
    caption = "A rank per graph and column; columns of a task count as one. Diamond: the best."
    body += columns(figure(plot, caption))
    body += _table(winner_table(board), "Best model by column, mean over graphs")
    return Section("overview", "Overview", body, (plot,))


def _graph_section(board: Leaderboard, dataset: str) -> Section:
    plots = tuple(column_plot(board, dataset, column) for column in _PLOTTED)
    body = _table(graph_table(board, dataset), dataset)
    caption = "Lines are standard errors. Diamond: the best model with all runs."
    body += columns(*(figure(plot, caption) for plot in plots))
    differences = difference_table(board, dataset)
    if differences.rows:
        body += paragraph(
            f"Differences from {board.reference}, run by run: both models had the same split, "
            "left-out classes and seed, so that what these do to both cancels."
        )
        body += _table(differences, f"{dataset}, differences from {board.reference}")
    return Section(anchor(dataset), dataset, body, plots)


def _score_section(board: Leaderboard) -> Section:
    body = paragraph(
        "Every score of every model. A star marks the scores that a model enters the leaderboard "
        "with; they were declared before any run."
    )
    body += _table(declared_table(board), "Declared scores")
    for dataset in board.datasets:
        shown = _table(score_table(board, dataset), f"All scores on {dataset}")
        body += tag("details", tag("summary", escaped(dataset)), shown)
    return Section("scores", "All scores", body)


def _table(content: TextTable, caption: str) -> str:
    # Numbers and their errors stay on one line.
    rows = tuple(
        (escaped(row[0]), *(escaped(text.replace(" ", "\u00a0")) for text in row[1:]))
        for row in content.rows
    )
    plain = TextTable(content.header, rows, content.best)
    return table(content.header, plain.formatted(lambda text: tag("strong", text)), caption)

"""The page of the leaderboard: ranks, a table and charts per graph, all scores."""

import math
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

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
from gpn_scale.files import make_folder, write_text
from gpn_scale.page.chart import Chart
from gpn_scale.page.document import document, write_charts
from gpn_scale.page.dot_chart import Dot, dot_chart
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.texts import anchor

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
    """Write the page, and its charts next to it in `plots/`."""
    sections = [_overview(board), *(_graph_section(board, name) for name in board.datasets)]
    sections.append(_score_section(board))
    make_folder(path.parent)
    write_charts(path.parent / "plots", sections)
    title = "Leaderboard"
    write_text(path, document(title, "Graph Posterior Networks", sections, heading=title))


def write_pictures(folder: Path, board: Leaderboard) -> dict[str, str]:
    """Write the charts of a Markdown page; return their file names by title."""
    column = next(each for each in COLUMNS if each.heading == "left-out, AUC-ROC")
    charts = [rank_chart(board), *(column_chart(board, name, column) for name in board.datasets)]
    write_charts(folder, [Section("pictures", "Pictures", Markup(""), tuple(charts))])
    return {chart.title: f"{chart.name}.svg" for chart in charts}


def rank_chart(board: Leaderboard) -> Chart:
    """Draw the mean rank over all tasks and graphs of every ranked model."""
    ranks = {model: board.overall_rank(model) for model in board.models}
    known = {model: rank for model, rank in ranks.items() if not math.isnan(rank)}
    best = min(known.values(), default=math.nan)
    dots = [Dot(model, rank, is_best=rank == best) for model, rank in known.items()]
    return dot_chart("leaderboard-ranks", "Mean rank over all tasks", dots, "mean rank ↓")


def column_chart(board: Leaderboard, dataset: str, column: Column) -> Chart:
    """Draw one column of a graph for all models."""
    best, dots = board.best(dataset, column), []
    for model in board.models:
        entry = board.number(dataset, model, column)
        if entry is not None and not math.isnan(entry.mean):
            dots.append(Dot(model, entry.mean, entry.error, model in best))
    name = anchor(f"leaderboard-{dataset}-{column.name}")
    return dot_chart(name, f"{dataset}: {column.heading}", dots, column.arrow_heading)


def _overview(board: Leaderboard) -> Section:
    caption = "A rank per graph and column; columns of a task count as one. Diamond: the best."
    return section(
        "overview",
        "Overview",
        "leaderboard_overview.html",
        figures=(Figure(rank_chart(board), caption),),
        claim=claim(board),
        runs=runs_sentence(board),
        reading=_READING,
        ranks=_table(rank_table(board), "Mean ranks by task"),
        winners=_table(winner_table(board), "Best model by column, mean over graphs"),
    )


def _graph_section(board: Leaderboard, dataset: str) -> Section:
    caption = "Lines are standard errors. Diamond: the best model with all runs."
    charts = (column_chart(board, dataset, column) for column in _PLOTTED)
    differences = difference_table(board, dataset)
    named = f"{dataset}, differences from {board.reference}"
    return section(
        anchor(dataset),
        dataset,
        "leaderboard_graph.html",
        figures=tuple(Figure(chart, caption) for chart in charts),
        table=_table(graph_table(board, dataset), dataset),
        reference=board.reference,
        differences=_table(differences, named) if differences.rows else None,
    )


def _score_section(board: Leaderboard) -> Section:
    return section(
        "scores",
        "All scores",
        "leaderboard_scores.html",
        declared=_table(declared_table(board), "Declared scores"),
        tables=[
            (dataset, _table(score_table(board, dataset), f"All scores on {dataset}"))
            for dataset in board.datasets
        ],
    )


def _table(content: TextTable, caption: str) -> dict[str, Any]:
    # Numbers and their errors stay on one line, and so do headings and their arrows.
    header = [text.replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓") for text in content.header]
    rows = tuple(
        (escape(row[0]), *(escape(text.replace(" ", "\u00a0")) for text in row[1:]))
        for row in content.rows
    )
    formatted = TextTable(content.header, rows, content.best).formatted(_strong)
    return {"header": header, "rows": formatted, "caption": caption}


def _strong(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(text)

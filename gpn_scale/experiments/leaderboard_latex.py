"""The leaderboard as LaTeX tables: mean ranks, and a table for each of its columns."""

from gpn_scale.experiments.latex import MISSING, LatexTable, escaped, label_text
from gpn_scale.experiments.latex_tables import ResultTables
from gpn_scale.experiments.leaderboard import Leaderboard
from gpn_scale.experiments.leaderboard_columns import COLUMNS
from gpn_scale.experiments.leaderboard_document import rank_table
from gpn_scale.experiments.metric_columns import MetricColumn

_NAME = "leaderboard"


def leaderboard_tables(board: Leaderboard) -> list[LatexTable]:
    """Return the table of ranks, then those of all columns of quality."""
    columns = [
        MetricColumn(column.experiment, column.name, "", column.heading, column.higher_is_better)
        for column in COLUMNS
    ]
    numbers = ResultTables(
        values=board.values,
        columns=columns,
        models=board.models,
        datasets=board.datasets,
        paper={},
        name=_NAME,
    )
    return [_rank_latex(board), *numbers.tables()]


def _rank_latex(board: Leaderboard) -> LatexTable:
    table = rank_table(board)
    rows = []
    for row, (model, *ranks) in enumerate(table.rows):
        cells = [
            _rank_cell(rank, is_best=(row, column) in table.best)
            for column, rank in enumerate(ranks, start=1)
        ]
        rows.append((escaped(model), *cells))
    graphs = escaped(", ".join(board.datasets))
    return LatexTable(
        caption=f"Mean ranks on {graphs} $\\downarrow$. Bold: best of a column. {MISSING}: not run "
        "on every graph.",
        label=label_text(_NAME, "ranks"),
        header=tuple(escaped(heading) for heading in table.header),
        rows=tuple(rows),
    )


def _rank_cell(rank: str, *, is_best: bool) -> str:
    if rank == "n.a.":
        return MISSING
    return rf"$\mathbf{{{rank}}}$" if is_best else f"${rank}$"

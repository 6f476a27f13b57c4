from gpn_scale.experiments.leaderboard_columns import COLUMNS
from gpn_scale.experiments.leaderboard_latex import leaderboard_tables
from tests.experiments.boards import small_board
from tests.experiments.latex_source import check_table


def test_ranks_come_first_and_every_column_has_a_table():
    tables = [table.text() for table in leaderboard_tables(small_board())]
    for table in tables:
        check_table(table)
    assert len(tables) == 1 + len(COLUMNS)
    assert r"model & accuracy & calibration & errors & left-out classes" in tables[0]
    assert r"APPNP & $\mathbf{1.0}$ &" in tables[0]
    assert r"\label{tab:leaderboard-clean-accuracy}" in tables[1]
    assert r"APPNP & $\mathbf{85.5} \pm 0.5$ & $\mathbf{85.5} \pm 0.5$ \\" in tables[1]


def test_models_that_are_not_ranked_have_dashes():
    board = small_board()
    cells = {c: r for c, r in board.cells.items() if (c.dataset, c.model) != ("B", "LP")}
    tables = [table.text() for table in leaderboard_tables(type(board)(cells))]
    assert r"LP & -- & --" in tables[0]
    assert r"LP & $71.5 \pm 0.5$ & -- \\" in tables[1]

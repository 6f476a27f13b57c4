import math
import statistics

import pytest

from gpn_scale.experiments.leaderboard import Leaderboard, is_shown
from gpn_scale.experiments.leaderboard_columns import COLUMNS, COSTS
from gpn_scale.experiments.standard_errors import mean_and_error
from tests.experiments.boards import all_classes, left_out, small_board

BY_NAME = {column.name: column for column in (*COLUMNS, *COSTS)}
ACCURACY, UNKNOWN = BY_NAME["accuracy"], BY_NAME["auroc_unknown"]


def test_numbers_are_means_over_runs_with_the_declared_score():
    board = small_board()
    accuracy = board.number("A", "APPNP", ACCURACY)
    assert accuracy.mean == pytest.approx(85.5)
    assert accuracy.error == pytest.approx(0.5)
    unknown = board.number("A", "LP", UNKNOWN)
    values = {(s, c): 100 * (0.8 + 0.01 * s + 0.02 * c) for s in (1, 2) for c in (0, 1)}
    assert (unknown.mean, unknown.error) == pytest.approx(mean_and_error(values))
    assert unknown.runs == 4
    assert board.number("A", "LP", BY_NAME["fpr95_unknown"]).mean == pytest.approx(
        100 - unknown.mean
    )
    assert board.number("C", "LP", UNKNOWN) is None


def test_costs_are_medians():
    cells = {}
    for split, seconds in enumerate((5.0, 1.0, 100.0), start=1):
        cell = all_classes("A", "GPN", split)
        next(iter(cell.values())).results["training"]["cpu_seconds"] = seconds
        cells |= cell
    entry = Leaderboard(cells).number("A", "GPN", BY_NAME["cpu_seconds"])
    assert (entry.mean, entry.runs) == (5.0, 3)
    assert math.isnan(entry.error)


def test_differences_are_taken_run_by_run_across_different_scores():
    board = small_board()
    difference = board.difference("B", "APPNP", UNKNOWN)
    assert (difference.mean, difference.error) == pytest.approx((5.0, 0.0), abs=1e-9)
    assert difference.runs == 4
    assert board.difference("B", "GPN", UNKNOWN) is None


def test_ranks_are_averaged_over_graphs_columns_and_tasks():
    board = small_board()
    assert board.ranks("A", ACCURACY) == {"APPNP": 1.0, "GPN": 2.0, "LP": 3.0}
    assert board.ranks("A", UNKNOWN) == {"LP": 1.0, "APPNP": 2.0, "GPN": 3.0}
    assert board.best("A", UNKNOWN) == {"LP"}
    assert set(board.ranks("A", BY_NAME["ece"]).values()) == {2.0}  # all are equal
    assert board.task_rank("LP", "left-out classes") == 1.0
    expected = statistics.fmean([3.0, 2.0, 2.0, 1.0, 2.0])
    assert board.overall_rank("LP") == pytest.approx(expected)
    assert board.models == ("APPNP", "LP", "GPN")
    assert board.graph_mean("GPN", ACCURACY) == pytest.approx(81.5)


def test_a_model_with_missing_runs_is_shown_but_not_ranked():
    board = small_board()
    few = left_out("A", "GKDE", 1, 0, 0.99) | all_classes("A", "GKDE", 1)
    more = Leaderboard({**board.cells, **few})
    assert more.number("A", "GKDE", UNKNOWN).mean == pytest.approx(99.0)
    assert more.best("A", UNKNOWN) == {"LP"}
    assert "GKDE" not in more.ranks("A", UNKNOWN)
    assert math.isnan(more.overall_rank("GKDE"))
    assert more.models == ("APPNP", "LP", "GPN", "GKDE")
    assert more.overall_rank("LP") == board.overall_rank("LP")


def test_a_model_on_one_graph_only_changes_no_ranks():
    board, own = small_board(), {}
    for split in (1, 2):
        own |= all_classes("A", "GKDE", split, accuracy=0.99)
    more = Leaderboard({**board.cells, **own})
    assert more.best("A", ACCURACY) == {"GKDE"}
    assert more.ranks("A", ACCURACY) == board.ranks("A", ACCURACY)
    assert math.isnan(more.mean_rank("GKDE", ACCURACY))


def test_all_scores_of_a_model_have_rows_and_declared_ones_are_marked():
    board = small_board()
    rows = {(row.dataset, row.model, row.score): row for row in board.score_rows}
    assert len(rows) == len(board.score_rows)
    row = rows["A", "GPN", "epistemic"]
    assert row.declared == (False, True, False, False)
    assert row.entries[1].mean == pytest.approx(72.5)
    assert row.entries[0] is None
    assert rows["A", "GPN", "epistemic_no_network"].declared == (False, False, True, True)
    assert ("A", "LP", "p_known") not in rows


def test_shown_metrics_are_those_of_columns_and_the_areas_of_all_scores():
    assert is_shown("GPN", "clean", "ece")
    assert not is_shown("GPN", "clean", "mce")
    assert is_shown("GPN", "left-out-classes", "auroc_entropy")
    assert is_shown("GPN", "left-out-classes", "aupr_epistemic")
    assert not is_shown("GPN", "left-out-classes", "aupr_entropy")
    assert not is_shown("GPN", "left-out-classes", "id_accuracy")
    assert is_shown("LP", "isolated", "auroc_aleatoric@normal")
    assert not is_shown("LP", "isolated", "aupr_aleatoric@normal")
    assert is_shown("LP", "training", "added_mib")


def test_no_cells_are_a_leaderboard_too():
    board = Leaderboard({})
    assert (board.datasets, board.models, board.score_rows) == ((), (), [])
    assert board.best("A", ACCURACY) == set()

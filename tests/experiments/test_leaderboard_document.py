import csv

from gpn_scale.experiments.leaderboard import Leaderboard
from gpn_scale.experiments.leaderboard_document import (
    behind_table,
    claim,
    difference_table,
    graph_table,
    mean_table,
    rank_table,
    score_table,
    sections,
    table_csv,
    winner_table,
)
from tests.experiments.boards import all_classes, left_out, small_board


def test_the_claim_names_the_best_two():
    text = claim(small_board())
    assert text.startswith("APPNP has the best mean rank, 1.8 among 3 models; LP follows with 2.0")
    assert "5 tasks on A, B" in text
    assert "no ranks" in claim(Leaderboard({}))


def test_ranks_have_a_row_per_model_and_the_best_are_bold():
    table = rank_table(small_board())
    assert table.rows[0] == ("APPNP", "1.0", "2.0", "2.0", "2.0", "2.0", "1.8")
    assert "| LP | 3.0 | **2.0** | **2.0** | **1.0** | **2.0** | 2.0 |" in table.markdown()


def test_a_graph_has_a_row_per_model_with_arrows_and_bold_numbers():
    text = graph_table(small_board(), "A").markdown()
    assert "| model | runs | accuracy ↑ | ECE ↓ |" in text
    assert "| APPNP | 2 + 4 | **85.5 ± 0.5** | **10.0 ± 0.0** | **0.5 ± 0** |" in text
    assert "| LP | 2 + 4 | 71.5 ± 0.5 |" in text


def test_models_that_were_not_run_on_a_graph_have_no_row():
    board = Leaderboard({**small_board().cells, **all_classes("B", "GKDE", 1)})
    assert "GKDE" not in graph_table(board, "A").markdown()
    table = graph_table(board, "B")
    assert table.rows[-1][:3] == ("GKDE", "1 + 0", "80.0")
    assert not any(row == len(table.rows) - 1 for row, _ in table.best)
    assert "| GKDE | n.a. |" in rank_table(board).markdown()


def test_differences_have_signs_and_errors():
    text = difference_table(small_board(), "A").markdown()
    assert "| APPNP - GPN | +4.0 ± 0.0 | 0.0 ± 0.0 |" in text
    assert "| LP - GPN | -10.0 ± 0.0 |" in text
    assert "GPN - GPN" not in text


def test_means_over_graphs_of_all_ranked_models():
    board = small_board()
    table = mean_table(board)
    assert set(table.header[1:]) == set(board.models)
    accuracies = dict(zip(table.header[1:], table.rows[0][1:], strict=True))
    assert (accuracies["APPNP"], accuracies["GPN"]) == ("85.5", "81.5")


def test_winners_stand_beside_the_reference():
    assert "| accuracy ↑ | APPNP | 85.5 | 81.5 |" in winner_table(small_board()).markdown()
    assert "| ECE ↓ | APPNP, LP, GPN | 10.0 | 10.0 |" in winner_table(small_board()).markdown()
    assert "| left-out, FPR95 ↓ | LP | 17.5 | 27.5 |" in winner_table(small_board()).markdown()


def test_columns_in_which_another_model_is_better_are_listed():
    table = behind_table(small_board(), "LP")
    assert ("A", "accuracy ↑", "APPNP", "85.5 ± 0.5", "71.5 ± 0.5") in table.rows
    assert not any(column == "left-out, FPR95 ↓" for _, column, *_ in table.rows)
    assert behind_table(small_board(), "absent").rows == ()


def test_declared_scores_have_a_star():
    text = score_table(small_board(), "A").markdown()
    assert "| LP | epistemic | n.a. | **82.5 ± 1.1 ★** |" in text
    assert "**n.a." not in score_table(Leaderboard(left_out("A", "LP", 1, 0, 0.5)), "A").markdown()


def test_numbers_as_csv():
    lines = list(csv.DictReader(table_csv(small_board()).splitlines()))
    (line,) = [
        row
        for row in lines
        if (row["dataset"], row["model"], row["column"]) == ("A", "LP", "accuracy")
    ]
    assert (line["mean"], line["rank"], line["runs"], line["difference"]) == (
        "71.5",
        "3",
        "2",
        "-10",
    )
    costs = [row for row in lines if row["column"] == "cpu_seconds"]
    assert {row["rank"] for row in costs} == {""}
    assert len(lines) == 2 * 3 * 11


def test_every_section_has_text():
    texts = sections(small_board())
    assert all(texts.values())
    assert texts["runs"] == (
        "So far: 36 trainings of 3 models on A, B, with 2 splits and 2 sets of left-out classes."
    )
    assert texts["graphs"].count("### ") == 2

"""The writer of docs/leaderboard.md: from the committed cells alone, and with a matrix."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.leaderboard_columns import COLUMNS, EXPERIMENTS
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.models.registry import MODELS
from tests.experiments.latex_source import check_table

REPOSITORY = Path(__file__).parents[2]
DOCUMENT = REPOSITORY / "docs" / "leaderboard.md"


@pytest.fixture
def write(monkeypatch, tmp_path):
    """The script, called with arguments; it works on copies of the committed files."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    from benchmarks import leaderboard

    cells, document = tmp_path / "cells", tmp_path / "leaderboard.md"
    shutil.copytree(REPOSITORY / leaderboard.CELLS, cells)
    document.write_text(DOCUMENT.read_text())

    def run(*arguments):
        options = ["--cells", cells, "--write", document, "--pictures", tmp_path / "pictures"]
        command = ["leaderboard.py", *options, "--page", tmp_path / "page" / "page.html"]
        monkeypatch.setattr(sys, "argv", [str(each) for each in (*command, *arguments)])
        leaderboard.main()
        return {path.name: path.read_text() for path in cells.iterdir()}, document.read_text()

    return run


def test_the_committed_page_is_that_of_the_committed_cells(write, tmp_path, capsys):
    _, document = write()
    assert document == DOCUMENT.read_text()
    for picture in (tmp_path / "pictures").iterdir():
        committed = REPOSITORY / "docs" / "pictures" / picture.name
        assert picture.read_text() == committed.read_text()
    assert "has the best mean rank" in capsys.readouterr().out
    assert (tmp_path / "page" / "table.csv").read_text().startswith("dataset,model,column")


def test_cells_of_a_matrix_join_the_committed_ones(write, tmp_path):
    before, _ = write()
    cell = Cell("Z", "LP", False, 1, 1)
    results = {"clean": {"accuracy": 0.123, "mce": 0.5}}
    MatrixDirectory(tmp_path / "matrix").write_result(cell, CellResult("f", results))
    after, document = write("--matrix", tmp_path / "matrix")
    added = after.pop("Z.csv")
    assert added.splitlines()[1:] == ["Z,LP,none,1,1,clean,accuracy,0.123,f"]
    assert after == before
    assert "### Z\n" in document
    assert "| LP | 1 + 0 | **12.3** |" in document
    assert write()[1] == document


def test_a_part_of_the_leaderboard_can_be_shown(write):
    _, document = write("--models", "GPN,LP", "--datasets", "CoraML", "--class-sets", "0")
    made = re.findall(r"<!-- \w+ begin -->.*?<!-- \w+ end -->", document, re.DOTALL)
    assert len(made) > 5
    assert "APPNP" not in re.sub(r"```.*?```|`.*?`", "", "".join(made), flags=re.DOTALL)
    assert "1 set of left-out classes" in document


def test_latex_tables_say_where_they_come_from(write, tmp_path):
    file = tmp_path / "board.tex"
    write("--latex", file)
    comments, *tables = file.read_text().split(r"\begin{table}")
    assert comments.startswith("% python benchmarks/leaderboard.py --cells ")
    assert "% So far: " in comments
    for table in tables:
        check_table(rf"\begin{{table}}{table}")
    assert len(tables) == 1 + len(COLUMNS)


def test_the_makefile_runs_registered_models_and_all_experiments():
    text = (REPOSITORY / "Makefile").read_text()
    models = re.search(r"^BOARD_MODELS \?= (.*)$", text, re.MULTILINE)[1].split(",")
    assert set(models) <= set(MODELS)
    tasks = re.search(r"^BOARD_TASKS := (.*)$", text, re.MULTILINE)[1].split(",")
    assert set(tasks) == set(EXPERIMENTS)

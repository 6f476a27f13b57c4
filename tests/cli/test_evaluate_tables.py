import csv

from gpn_scale.cli.evaluate_tables import TableChoice, missing_results, write_tables
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.metric_columns import metric_column
from gpn_scale.experiments.paper_figures import Figure, PaperKey

CELLS = [Cell("G", "GPN", False, split, 1) for split in (1, 2, 3)]


def matrix(tmp_path):
    """A directory in which the third cell has no result."""
    directory = MatrixDirectory(tmp_path)
    for cell, accuracy in zip(CELLS, (0.7, 0.9), strict=False):
        directory.write_result(cell, CellResult("f", {"clean": {"accuracy": accuracy}}))
    return directory


def test_tables_and_page_are_written_and_what_is_missing_is_named(tmp_path, capsys):
    paper = {PaperKey("G", "GPN", "clean", "accuracy"): Figure(78.0, 0.5)}
    write_tables(matrix(tmp_path), CELLS, ["clean"], (), paper)
    folder = tmp_path / "tables"
    (line,) = csv.DictReader((folder / "results.csv").read_text().splitlines())
    assert (line["mean"], line["runs"], line["difference"]) == ("80", "2", "2")
    assert "80.0 ± 10.0 (paper 78.0, +2.0)" in (folder / "results.md").read_text()
    latex = (folder / "results.tex").read_text()
    assert latex.startswith("% gpn-evaluate (gpn_scale ")
    assert f"% matrix: {tmp_path}, where 2 of 3 trainings have all their results\n" in latex
    assert "GPN (paper) & $78.0 \\pm 0.5$" in latex
    assert "2 of 3 trainings have all their results" in (tmp_path / "report.html").read_text()
    output = capsys.readouterr().out
    assert "1 of 3 trainings have missing results: G/GPN/all_classes/split3_init1: clean" in output
    assert f"page: {tmp_path / 'report.html'}" in output


def test_chosen_metrics_are_shown_in_their_order_and_the_csv_has_all(tmp_path, capsys):
    directory = MatrixDirectory(tmp_path / "matrix")
    metrics = {"accuracy": 0.7, "ece": 0.1, "nll": 0.5}
    directory.write_result(CELLS[0], CellResult("f", {"clean": metrics}))
    columns = [metric_column("clean", "nll"), metric_column("clean", "accuracy")]
    choice = TableChoice(columns=columns, latex=tmp_path / "new" / "t.tex", command="x\n\\input{y}")
    write_tables(directory, CELLS[:1], ["clean"], (), None, choice)
    folder = tmp_path / "matrix" / "tables"
    assert "| graph | model | nll | accuracy |" in (folder / "results.md").read_text()
    assert "ece" in (folder / "results.csv").read_text()
    assert not (folder / "results.tex").exists()
    latex = (tmp_path / "new" / "t.tex").read_text()
    assert latex.startswith("% x \\input{y} (gpn_scale ")
    assert r"model & NLL $\downarrow$ & accuracy $\uparrow$ \\" in latex
    assert f"LaTeX: {tmp_path / 'new' / 't.tex'}" in capsys.readouterr().out


def test_a_complete_matrix_has_nothing_missing(tmp_path, capsys):
    write_tables(matrix(tmp_path), CELLS[:2], ["clean"], ())
    assert "missing" not in capsys.readouterr().out


def test_missing_results_name_experiments_and_fractions():
    results = {CELLS[0]: CellResult("f", {"clean": {}, "edge-shift": {}})}
    experiments = ["clean", "edge-shift"]
    lines = missing_results(CELLS[:2], results, experiments, ())
    assert lines == [f"{CELLS[1].name}: clean, edge-shift"]
    lines = missing_results(CELLS[:1], results, experiments, (0.5,))
    assert lines == [f"{CELLS[0].name}: edge-shift"]

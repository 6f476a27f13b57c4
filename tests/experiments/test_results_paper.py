"""The writer of docs/results.md: a matrix as far as it is there, and the committed markers."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.results_paper import put, sections
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.paper_figures import Figure, PaperKey

RESULTS = Path(__file__).parents[2] / "docs" / "results.md"
PAPER = {PaperKey("CoraML", "GPN", "clean", "accuracy"): Figure(70.0, 0.1)}
ABLATION = {PaperKey("CoraML", "PostNet", "clean", "accuracy"): Figure(52.0, 0.1)}


def matrix():
    names = ("accuracy", "ece", "aleatoric_confidence", "epistemic_confidence")
    shift = {f"{name}@{at}": 0.5 for name in names for at in ("clean", "dice_0.10", "random_0.10")}
    results = {}
    for split, accuracy in ((1, 0.8), (2, 0.9)):
        own = {"clean": {"accuracy": accuracy, "ece": 0.1}, "edge-shift": shift}
        results[Cell("CoraML", "GPN", False, split, 1)] = CellResult("f", own)
    less = {"clean": {"accuracy": 0.7, "ece": 0.1}}
    results[Cell("CoraML", "GPN-minibatch", False, 1, 1)] = CellResult("f", less)
    results[Cell("CoraML", "PostNet", False, 1, 1)] = CellResult("f", less)
    return results


def test_an_unfinished_matrix_is_told_with_its_runs(tmp_path):
    tables = sections(matrix(), PAPER, ABLATION, tmp_path)
    assert "| CoraML | GPN | 2 | 85.0 ± 5.0 (paper 70.0, +15.0) | 10.0" in tables["clean"]
    assert "| CoraML | GPN-minibatch | 1 | 70.0 (paper 70.0, +0.0)" in tables["clean"]
    assert "| CoraML | GPN-minibatch - GPN | 1 | -10.0 | 0.0 |" in tables["paired"]
    assert "| CoraML | PostNet | 1 | 70.0 (paper 52.0, +18.0)" in tables["ablation"]
    assert "1 of 2 numbers are more than 3 points" in tables["deviations"]
    assert tables["left-out-auroc"] == "No runs yet."


def test_shifts_are_pictures_of_four_panels(tmp_path):
    text = sections(matrix(), {}, {}, tmp_path)["shifts"]
    assert f"({tmp_path.name}/edge-shift-CoraML.svg)" in text
    picture = (tmp_path / "edge-shift-CoraML.svg").read_text()
    ElementTree.fromstring(picture)
    for text in ("calibration error", "relative to clean", "GPN, dice", "GPN, random"):
        assert text in picture
    assert "nan" not in picture


def test_the_committed_page_has_every_marker_and_nothing_else_changes(tmp_path):
    tables = sections(matrix(), PAPER, ABLATION, tmp_path)
    before = RESULTS.read_text()
    once = put(before, tables)
    assert put(once, tables) == once
    assert "85.0 ± 5.0" in once
    assert once.count("<!--") == before.count("<!--")
    with pytest.raises(SystemExit, match="no <!-- clean begin -->"):
        put("nothing", tables)

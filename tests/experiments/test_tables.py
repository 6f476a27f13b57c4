import csv
import math

import pytest

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.paper_figures import Figure, PaperKey
from gpn_scale.experiments.tables import Entry, cell_text, entries, to_csv, to_markdown

PAPER = {PaperKey("G", "GPN", "clean", "accuracy"): Figure(80.0, 0.5)}


def results(*accuracies, model="GPN"):
    return {
        Cell("G", model, False, split, 1): CellResult(
            "f", {"clean": {"accuracy": value, "nll": 2 * value}}
        )
        for split, value in enumerate(accuracies, start=1)
    }


def test_means_errors_and_differences():
    table = {e.metric: e for e in entries(results(0.7, 0.8, 0.9), PAPER)}
    assert table["accuracy"].mean == pytest.approx(80.0)
    assert table["accuracy"].error == pytest.approx(10 / math.sqrt(3))
    assert table["accuracy"].difference == pytest.approx(0.0)
    assert table["nll"].mean == pytest.approx(1.6)  # not a fraction, not in percent
    assert table["nll"].paper is None
    assert table["nll"].runs == 3


def test_the_csv_has_a_line_per_number():
    lines = list(csv.DictReader(to_csv(entries(results(0.7), PAPER)).splitlines()))
    assert [line["metric"] for line in lines] == ["accuracy", "nll"]
    assert (lines[0]["mean"], lines[0]["standard_error"], lines[0]["runs"]) == ("70", "", "1")
    assert (lines[0]["paper"], lines[0]["difference"]) == ("80", "-10")
    assert lines[1]["paper"] == ""


def test_tables_for_people_name_what_is_missing():
    other = {Cell("G", "PostNet", False, 1, 1): CellResult("f", {"clean": {"accuracy": 0.5}})}
    table = entries(results(0.7, 0.9) | other, PAPER)
    markdown = to_markdown(table)
    assert "| graph | model | accuracy | nll |" in markdown
    assert "| G | GPN | 80.0 ± 10.0 (paper 80.0, +0.0) | 1.6 ± 0.2 |" in markdown
    assert "| G | PostNet | 50.0 | n.a. |" in markdown


def test_what_is_no_fraction_has_digits_instead_of_decimals():
    values = {"accuracy": (4.0, 0.04), "nll": (1.2345, 0.00567), "conformal_size": (1234.5, 6.78)}
    texts = {
        name: cell_text(Entry("G", "GPN", "clean", name, mean, error, 3))
        for name, (mean, error) in values.items()
    }
    assert texts["accuracy"] == "4.0 ± 0.0"
    assert texts["nll"] == "1.23 ± 0.0057"
    assert texts["conformal_size"] == "1,234 ± 6.8"


@pytest.mark.parametrize("value", [1.9458, 2.0794])  # only the mean of the first is rounded
def test_equal_values_have_no_error_whatever_rounding_makes_of_their_mean(value):
    runs = {
        Cell("G", "LP", False, split, 1): CellResult("f", {"clean": {"nll": value, "ece": value}})
        for split in range(1, 6)
    }
    texts = {entry.metric: cell_text(entry) for entry in entries(runs)}
    assert texts == {"nll": f"{value:.3g} ± 0", "ece": f"{100 * value:.1f} ± 0.0"}


def test_experiments_stand_in_their_order_whichever_was_run_first():
    cell = Cell("G", "GPN", False, 1, 1)
    turned = CellResult("f", {"isolated": {"a": 1.0}, "clean": {"b": 1.0}})
    assert [e.experiment for e in entries({cell: turned})] == ["clean", "isolated"]


def test_minibatches_are_compared_with_the_papers_gpn():
    (accuracy, _) = entries(results(0.7, model="GPN-minibatch"), PAPER)
    assert accuracy.difference == pytest.approx(-10.0)
    assert all(e.paper is None for e in entries(results(0.7, model="GPN[a.b=1]"), PAPER))


def test_the_paper_has_no_figure_for_other_left_out_classes():
    paper = {PaperKey("G", "GPN", "left-out-classes", "id_accuracy"): Figure(80.0, 1.0)}
    result = CellResult("f", {"left-out-classes": {"id_accuracy": 0.5}})
    last = Cell("G", "GPN", True, 1, 1)
    (entry,) = entries({last: result}, paper)
    assert entry.paper == Figure(80.0, 1.0)
    (entry,) = entries({last: result, last._replace(class_set=1): result}, paper)
    assert entry.paper is None
    assert entry.runs == 2

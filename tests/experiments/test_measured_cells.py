import math

import pytest

from gpn_scale.errors import RunError
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.measured_cells import (
    cells_from_csv,
    cells_to_csv,
    matrix_cells,
    merged_cells,
    without_measured,
)
from gpn_scale.experiments.training_cost import TrainingCost

CELL = Cell("G", "GPN[a.b=1;c.d=2]", True, 2, 1, 3)
CLEAN = Cell("G", "GPN", False, 1, 1)


def everything(model, experiment, metric):
    return True


def test_cells_are_read_as_they_were_written():
    cells = {
        CELL: CellResult("", {"left-out-classes": {"auroc_aleatoric": 0.87654}}),
        CLEAN: CellResult("f 1", {"clean": {"accuracy": 0.5, "nll": 1.25}, "training": {"x": 3.0}}),
    }
    text = cells_to_csv(cells, everything)
    assert cells_from_csv(text, "file") == cells
    assert cells_to_csv(cells_from_csv(text, "file"), everything) == text
    assert "G,GPN,none,1,1,clean,accuracy,0.5,f 1" in text.splitlines()


def test_cells_of_earlier_versions_have_no_fingerprint():
    text = "dataset,model,class_set,split,init,experiment,metric,value\n"
    text += "G,GPN,none,1,1,clean,accuracy,0.5\n"
    cells = cells_from_csv(text, "file")
    assert cells == {CLEAN: CellResult("", {"clean": {"accuracy": 0.5}})}
    again = cells_to_csv(cells, everything)
    assert again.splitlines()[1] == "G,GPN,none,1,1,clean,accuracy,0.5,"
    assert cells_from_csv(again, "file") == cells


@pytest.mark.parametrize(
    ("fingerprint", "is_measured"), [("", True), ("now", True), ("before", False)]
)
def test_measured_cells_count_if_they_have_the_configuration(fingerprint, is_measured):
    measured = {CLEAN: CellResult(fingerprint, {"clean": {"accuracy": 0.5}})}
    wanted = without_measured([CLEAN], measured, ["clean"], fingerprint_of=lambda cell: "now")
    assert wanted == ([] if is_measured else [CLEAN])
    more = ["clean", "isolated"]
    assert without_measured([CLEAN], measured, more, fingerprint_of=lambda cell: "now") == [CLEAN]


def test_settings_are_not_asked_for_where_they_decide_nothing():
    def refuse(cell):
        raise AssertionError(cell)

    measured = {CLEAN: CellResult("", {"clean": {"accuracy": 0.5}})}
    assert without_measured([CLEAN], measured, ["clean"], fingerprint_of=refuse) == []
    other = CLEAN._replace(split=2)
    assert without_measured([other], measured, ["clean"], fingerprint_of=refuse) == [other]


def test_numbers_that_are_missing_or_not_shown_are_left_out():
    results = {"clean": {"accuracy": 0.5, "mce": 0.1, "nll": math.nan}}
    text = cells_to_csv({CLEAN: CellResult("", results)}, lambda *place: place[-1] != "mce")
    assert text.splitlines()[1:] == ["G,GPN,none,1,1,clean,accuracy,0.5,"]


def test_cells_of_a_matrix_have_their_costs(tmp_path):
    directory = MatrixDirectory(tmp_path)
    for cell in (CELL, CLEAN):
        directory.write_result(cell, CellResult("f", {"clean": {"accuracy": 0.5}}))
    cost = TrainingCost(seconds=3.0, cpu_seconds=2.0, added_bytes=5 << 20)
    directory.write_cost(CLEAN, cost)
    cells = matrix_cells(tmp_path)
    assert cells[CLEAN].results["training"] == {"cpu_seconds": 2.0, "added_mib": 5.0}
    assert "training" not in cells[CELL].results


def test_later_results_replace_earlier_ones_experiment_by_experiment():
    first = {CLEAN: CellResult("g", {"clean": {"accuracy": 0.1}, "isolated": {"x": 1.0}})}
    second = {CLEAN: CellResult("g", {"clean": {"accuracy": 0.2}}), CELL: CellResult("g")}
    cells = merged_cells(first, second)
    both = {"clean": {"accuracy": 0.2}, "isolated": {"x": 1.0}}
    assert cells[CLEAN] == CellResult("g", both)
    assert list(cells) == [CLEAN, CELL]
    assert first[CLEAN].results["clean"] == {"accuracy": 0.1}
    unknown = {CLEAN: CellResult("", first[CLEAN].results)}
    assert merged_cells(unknown, second)[CLEAN] == CellResult("", both)
    assert merged_cells(unknown, {CLEAN: CellResult("g", both)})[CLEAN] == CellResult("g", both)


def test_results_of_different_settings_do_not_share_a_cell():
    first = {CLEAN: CellResult("f", {"clean": {"accuracy": 0.1}, "isolated": {"x": 1.0}})}
    second = {CLEAN: CellResult("g", {"clean": {"accuracy": 0.2}})}
    assert merged_cells(first, second) == second


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file begins with None, expected dataset,model,class_set"),
        ("a,b\n1,2\n", "expected dataset,model,class_set"),
        (cells_to_csv({}, everything) + "G,GPN,none,one,1,clean,accuracy,0.5\n", "line 2 is dam"),
        (cells_to_csv({}, everything) + "G,GPN,none\n", "line 2 is damaged"),
        (
            cells_to_csv({}, everything)
            + "G,GPN,none,1,1,clean,ece,0.5,f\nG,GPN,none,1,1,clean,nll,0.5,g\n",
            "line 3 is damaged .fingerprint 'g', but before 'f'",
        ),
        (cells_to_csv({}, everything) + "G,GPN,none,1,1,clean,ece,0.5\n", "line 2 is damaged"),
    ],
)
def test_other_files_are_refused(text, message):
    with pytest.raises(RunError, match=message):
        cells_from_csv(text, "file")

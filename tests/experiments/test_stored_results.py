import math
import statistics

import pytest

from gpn_scale.errors import RunError
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.stored_results import paired_differences, stored_results


def write(folder, cell, **results):
    MatrixDirectory(folder).write_result(cell, CellResult("f", results))


def test_all_stored_results_are_found_in_the_order_of_the_matrix(tmp_path):
    assert stored_results(tmp_path) == {}
    cells = [
        Cell("B", "GPN", False, 1, 1),
        Cell("A", "GPN", False, 2, 1),
        Cell("A", "GPN[train.epochs=2]", True, 1, 10),
        Cell("A", "GPN", True, 1, 1),
        Cell("A", "GPN", True, 1, 1, 3),
    ]
    for cell in cells:
        write(tmp_path, cell, clean={"accuracy": 0.5})
    write(tmp_path, Cell("A", "GPN", False, 3, 1))  # trained, but nothing measured yet
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / "splitx_init1.json").write_text("{}")
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / ".split1_init2.json.7.tmp").write_text("{")
    results = stored_results(tmp_path)
    assert list(results) == [cells[3], cells[4], cells[0], cells[2], cells[1]]
    assert results[cells[0]].results == {"clean": {"accuracy": 0.5}}
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / "split1_init1.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        stored_results(tmp_path)


def test_results_of_datasets_with_paths_are_found_inside_the_matrix(tmp_path):
    cells = [Cell("../graphs/mine", "GPN", False, 1, 1), Cell("/a/b%2F", "GPN", False, 1, 1)]
    for cell in cells:
        write(tmp_path / "matrix", cell, clean={"accuracy": 0.5})
    assert [path.name for path in tmp_path.iterdir()] == ["matrix"]
    assert set(stored_results(tmp_path / "matrix")) == set(cells)


def test_differences_are_taken_run_by_run():
    own, other = {1: 0.9, 2: 0.5, 3: 0.7}, {1: 0.8, 2: 0.6, 4: 0.1}
    results = {
        Cell("G", model, False, split, 1): CellResult("f", {"clean": {"accuracy": value, "nll": 1}})
        for model, values in (("B", own), ("A", other))
        for split, value in values.items()
    }
    results[Cell("G", "B", True, 1, 1)] = CellResult("f", {"left-out-classes": {"accuracy": 1.0}})
    accuracy, nll = paired_differences(results, "B", "A")
    assert (accuracy.dataset, accuracy.model, accuracy.experiment) == ("G", "B - A", "clean")
    assert accuracy.runs == 2
    assert accuracy.mean == pytest.approx(0.0)
    assert accuracy.error == pytest.approx(statistics.stdev([10.0, -10.0]) / math.sqrt(2))
    assert nll.mean == 0.0


def test_class_sets_are_runs_of_their_own_and_paired_with_their_like():
    values = {("B", 0): 0.9, ("B", 1): 0.7, ("A", 0): 0.8, ("A", 1): 0.4}
    results = {
        Cell("G", model, True, 1, 1, class_set): CellResult("f", {"left-out-classes": {"x": value}})
        for (model, class_set), value in values.items()
    }
    (difference,) = paired_differences(results, "B", "A")
    assert difference.runs == 2
    assert difference.mean == pytest.approx(20.0)
    assert difference.error == pytest.approx(10.0)

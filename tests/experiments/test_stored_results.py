import math
import statistics

import pytest
from gpn_scale.experiments.matrix import Cell, CellResult, Matrix

from gpn_scale.errors import RunError
from gpn_scale.experiments.curves import shift_curves
from gpn_scale.experiments.stored_results import paired_differences, stored_results
from gpn_scale.experiments.tables import entries


def write(folder, cell, **results):
    Matrix(folder)._write(cell, CellResult("f", results))


def shift(clean, *points):
    """Metrics of a shift `normal`: (share, value) each."""
    found = {f"{name}@clean": clean for name in ("accuracy", "epistemic_confidence")}
    for share, value in points:
        found |= {f"{name}@normal_{share:.2f}": value for name in ("accuracy",)}
        found[f"epistemic_confidence@normal_{share:.2f}"] = value
    return found


def test_all_stored_results_are_found_in_the_order_of_the_matrix(tmp_path):
    assert stored_results(tmp_path) == {}
    cells = [
        Cell("B", "GPN", False, 1, 1),
        Cell("A", "GPN", False, 2, 1),
        Cell("A", "GPN[train.epochs=2]", True, 1, 10),
        Cell("A", "GPN", True, 1, 1),
    ]
    for cell in cells:
        write(tmp_path, cell, clean={"accuracy": 0.5})
    write(tmp_path, Cell("A", "GPN", False, 3, 1))  # trained, but nothing measured yet
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / "splitx_init1.json").write_text("{}")
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / ".split1_init2.json.7.tmp").write_text("{")
    found = stored_results(tmp_path)
    assert list(found) == [cells[3], cells[0], cells[2], cells[1]]
    assert found[cells[0]].results == {"clean": {"accuracy": 0.5}}
    (tmp_path / "cells" / "A" / "GPN" / "left_out" / "split1_init1.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        stored_results(tmp_path)


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


def test_confidence_is_relative_to_the_same_run():
    results = {
        Cell("G", "GPN", False, split, 1): CellResult("f", {"feature-shift": shift(*points)})
        for split, points in ((1, (10.0, (0.5, 5.0))), (2, (1000.0, (0.5, 250.0))))
    }
    curves = {curve.quantity: curve for curve in shift_curves(entries(results))}
    found = curves["relative_epistemic_confidence"]
    assert found.kind == "normal"
    assert found.shares == (0.0, 0.5)
    assert found.means == pytest.approx((1.0, 0.375))
    assert found.errors == pytest.approx((0.0, 0.125))
    assert curves["accuracy"].means[0] == pytest.approx(505.0)
    variances = shift(-0.1, (0.5, -0.4))
    doubt = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": variances})}
    curves = {curve.quantity: curve for curve in shift_curves(entries(doubt))}
    assert curves["relative_epistemic_confidence"].means == pytest.approx((1.0, 0.25))
    without = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": {"accuracy": 1}})}
    assert shift_curves(entries(without)) == []
    lacking = shift(math.nan, (0.5, math.nan))
    lacking |= {"accuracy@clean": 1.0, "accuracy@normal_0.50": 0.5}
    results = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": lacking})}
    assert [curve.quantity for curve in shift_curves(entries(results))] == ["accuracy"]

import math

import pytest

from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.curves import shift_curves, studied_field, study_curves
from gpn_scale.experiments.tables import Entry, entries


def shift(clean, *points):
    """Metrics of a shift `normal`: (fraction, value) each."""
    metrics = {f"{name}@clean": clean for name in ("accuracy", "epistemic_confidence")}
    for fraction, value in points:
        metrics |= {f"{name}@normal_{fraction:.2f}": value for name in ("accuracy",)}
        metrics[f"epistemic_confidence@normal_{fraction:.2f}"] = value
    return metrics


def test_confidence_is_relative_to_the_same_run():
    results = {
        Cell("G", "GPN", False, split, 1): CellResult("f", {"feature-shift": shift(*points)})
        for split, points in ((1, (10.0, (0.5, 5.0))), (2, (1000.0, (0.5, 250.0))))
    }
    curves = {curve.quantity: curve for curve in shift_curves(entries(results))}
    curve = curves["relative_epistemic_confidence"]
    assert curve.kind == "normal"
    assert curve.fractions == (0.0, 0.5)
    assert curve.means == pytest.approx((1.0, 0.375))
    assert curve.errors == pytest.approx((0.0, 0.125))
    assert curves["accuracy"].means[0] == pytest.approx(505.0)
    variances = shift(-0.1, (0.5, -0.4))
    doubt = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": variances})}
    curves = {curve.quantity: curve for curve in shift_curves(entries(doubt))}
    assert curves["relative_epistemic_confidence"].means == pytest.approx((1.0, 0.25))
    without = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": {"accuracy": 1}})}
    assert shift_curves(entries(without)) == []
    unknown = shift(math.nan, (0.5, math.nan))
    unknown |= {"accuracy@clean": 1.0, "accuracy@normal_0.50": 0.5}
    results = {Cell("G", "GPN", False, 1, 1): CellResult("f", {"feature-shift": unknown})}
    assert [curve.quantity for curve in shift_curves(entries(results))] == ["accuracy"]


def test_studied_fields_are_those_of_names_with_one_change():
    assert studied_field("GPN[train.epochs=5]") == ("GPN", "train.epochs", "5")
    assert studied_field("GPN") is None
    assert studied_field("GPN[train.epochs=5;train.patience=2]") is None


def test_a_study_is_ordered_by_its_values():
    table = [
        Entry("G", f"GPN[diffusion.teleport={value}]", "clean", "accuracy", 80.0, 1.0, 2)
        for value in ("0.2", "0.05", "0.1")
    ]
    table.append(Entry("G", "VGCN[encoder.hidden=8]", "clean", "accuracy", 80.0, 1.0, 2))
    (curve,) = study_curves(table)
    assert (curve.model, curve.field) == ("GPN", "diffusion.teleport")
    assert curve.values == ("0.05", "0.1", "0.2")
    assert curve.models[0] == "GPN[diffusion.teleport=0.05]"
    assert [row[0].model for row in curve.rows] == curve.models
    assert all(entry is None for row in curve.rows for entry in row[1:])

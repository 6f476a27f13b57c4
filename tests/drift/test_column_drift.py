import numpy as np
import pytest

from gpn_scale.drift.column_drift import Bins, ColumnDrift
from gpn_scale.drift.two_samples import Movement, Share


def test_bins_hold_all_nodes():
    a, b = np.arange(100.0), np.append(np.arange(100.0), 1e6)
    bins = Bins.of(a, b)
    assert bins.a.sum() == pytest.approx(1)
    assert bins.b.sum() == pytest.approx(1)
    assert bins.edges[-1] < 1e6  # one far value does not hide all others
    assert bins.nodes == (100, 101)


def test_equal_values_have_no_bins():
    assert Bins.of(np.ones(30), np.ones(30)) is None
    rare = np.append(np.zeros(1000), 1.0)
    assert Bins.of(rare, rare).edges[[0, -1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("values", "missing", "distance", "measure"),
    [
        (Movement(0.3, 1e-9), None, 0.3, "total variation distance"),
        (Movement(0.3, 1e-9), (Share(0, 100), Share(10, 100)), 0.3, "total variation distance"),
        (Movement(0.02, 0.5), (Share(0, 100), Share(30, 100)), 0.3, "share of missing values"),
        # What chance explains does not hide what it does not explain.
        (Movement(0.4, 0.9), (Share(0, 100), Share(30, 100)), 0.3, "share of missing values"),
        (Movement(0.0, 1.0), (Share(0, 9), Share(0, 9)), 0.0, "total variation distance"),
    ],
)
def test_a_column_moves_by_its_values_or_by_missing_ones(values, missing, distance, measure):
    drift = ColumnDrift(name="x", kind="category", values=values, missing=missing)
    assert drift.movement.distance == pytest.approx(distance)
    assert drift.measure == measure
    record = drift.to_dict()
    assert record["distance"] == drift.movement.distance
    assert (record["missing"] is None) == (missing is None)

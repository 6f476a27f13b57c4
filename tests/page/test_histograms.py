import numpy as np
import pytest

from gpn_scale.page.histograms import BINS, data_range, histogram_of, histogram_of_enough
from tests.page.drawings import INF, NAN, SERIES


@pytest.mark.parametrize("name", SERIES)
def test_densities_integrate_to_one(name):
    values = np.clip(np.array(SERIES[name]), -300, 300)
    histogram = histogram_of({"first": values, "second": np.array([])})
    total = (histogram.densities["first"] * np.diff(histogram.edges)).sum()
    assert total == pytest.approx(1.0 if np.isfinite(values).any() else 0.0)
    assert not histogram.densities["second"].any()
    assert histogram.counts == {"first": np.isfinite(values).sum(), "second": 0}
    assert len(histogram.edges) == BINS + 1


def test_groups_share_bins_that_cover_them_all():
    histogram = histogram_of({"low": np.array([-1.0, 0.0]), "high": np.array([3.0])}, bins=4)
    np.testing.assert_allclose(histogram.edges, [-1, 0, 1, 2, 3])
    np.testing.assert_allclose(histogram.densities["low"], [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(histogram.densities["high"], [0, 0, 0, 1])


def test_groups_of_few_nodes_have_no_histogram():
    many, few = np.linspace(0.0, 1.0, 20), np.linspace(5.0, 6.0, 19)
    histogram = histogram_of_enough({"many": many, "few": few}, bins=4)
    assert histogram.counts == {"many": 20}
    assert histogram.edges[-1] == 1.0
    assert histogram_of_enough({"few": few}) is None


def test_ranges_are_never_empty():
    assert data_range(np.array([1.0, 2.0, NAN, INF])) == (1.0, 2.0)
    assert data_range(np.array([])) == data_range(np.array([NAN])) == (0.0, 1.0)
    assert data_range(np.array([5.0])) == (4.5, 5.5)
    assert data_range(np.array([0.0, 0.0])) == (-0.5, 0.5)
    low, high = data_range(np.array([-1e308, 1e308]))
    assert np.isfinite(high - low)

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.page.histograms import data_range
from gpn_scale.page.svg import (
    Panel,
    Plot,
    axis,
    hatching,
    line_path,
    log_label,
    percent_label,
    plain_label,
)
from tests.page.drawings import INF, NAN, SERIES


@given(st.lists(st.floats(-1e12, 1e12), max_size=5), st.integers(2, 8))
def test_ticks_cover_the_data(values, count):
    ticked = axis(values, "x", count=count)
    low, high = data_range(np.array(values))
    slack = 1e-6 * (high - low)
    assert ticked.ticks[0] <= low + slack
    assert ticked.ticks[-1] >= high - slack
    assert 2 <= len(ticked.ticks) <= count + 2
    assert len(set(ticked.labels)) == len(ticked.labels)


@pytest.mark.parametrize("name", SERIES)
def test_every_series_has_an_axis(name):
    ticked = axis(SERIES[name], "x")
    assert np.isfinite(ticked.ticks).all()
    assert (np.diff(ticked.ticks) > 0).all()


def test_paths_skip_what_is_not_finite():
    assert line_path([0, NAN, 2], [1, 1, INF]) == "M0 1"
    assert line_path([], []) == ""


def test_labels_of_ticks():
    assert [log_label(v, 1) for v in (-4, 0, 3, 5)] == ["10⁻⁴", "1", "1,000", "10⁵"]
    assert [percent_label(v, 0.2) for v in (0.0, 0.2, 1.0)] == ["0 %", "20 %", "100 %"]
    assert [plain_label(v, 0.05) for v in (0.0, 0.05, 1.0)] == ["0", "0.05", "1.00"]


def test_a_panel_places_the_ends_of_its_axes_at_its_borders():
    panel = Panel(380, 250, axis([0, 10], "x"), axis([0, 1], "y"))
    np.testing.assert_allclose(panel.across([0, 10]), [panel.left, panel.right])
    np.testing.assert_allclose(panel.up([0, 1]), [panel.bottom, panel.top])
    assert 0 < panel.left < panel.right < 380
    assert 0 < panel.top < panel.bottom < 250
    assert panel.axes().count("<text") == len(panel.x.ticks) + len(panel.y.ticks) + 2


def test_a_plot_is_the_same_in_a_page_and_as_a_file():
    plot = Plot(
        name="p", title="a < b", description="c & d", width=10, height=5, body=hatching("h", "k0")
    )
    inline = ElementTree.fromstring(plot.inline())
    alone = ElementTree.fromstring(plot.standalone(".plot { color: red }"))
    assert [each.text for each in inline][:2] == ["a < b", "c & d"]
    assert len(alone) == len(inline) + 1
    assert alone.get("viewBox") == inline.get("viewBox") == "0 0 10 5"

import numpy as np
import pytest

from gpn_scale.page.histogram_chart import histogram_chart, value_axis
from gpn_scale.page.histograms import histogram_of
from tests.page.drawings import SERIES, checked, parsed, texts_in


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("kind", ["plain", "percent", "log"])
def test_histograms_of_any_values(name, kind):
    values = np.clip(np.array(SERIES[name]), -300, 300)
    densities = histogram_of({"first": values, "second": np.array([])})
    parsed(histogram_chart("h", "title", densities, "x", kind=kind))


def test_no_group_is_an_empty_histogram():
    parsed(histogram_chart("h", "title", histogram_of({}), "x"))


def test_groups_differ_in_dashes_and_have_names_and_counts():
    groups = {"known": np.arange(9.0), "unknown": np.arange(4.0)}
    chart = histogram_chart("h", "title", histogram_of(groups), "x")
    root = parsed(chart)
    assert {"known (9)", "unknown (4)"} <= set(texts_in(chart))
    dashes = {p.get("stroke-dasharray") for p in root.iter() if p.get("stroke-dasharray")}
    assert "7,3" in dashes
    assert "known, 9 nodes, unknown, 4 nodes" in chart.description


def test_an_outline_encloses_the_density():
    values = histogram_of({"all": np.array([0.0, 1.0, 1.0, 4.0])}, bins=4)
    rows = checked(histogram_chart("h", "t", values, "x").specification)["data"]["values"]
    x, y = (np.array([row[name] for row in rows]) for name in ("x", "density"))
    assert (np.diff(x) * y[:-1]).sum() == pytest.approx(1.0)
    assert (y[0], y[-1]) == (0.0, 0.0)


def test_logarithms_are_labelled_by_powers_of_ten():
    axis = value_axis("x", "log", np.array([-4.5, 6.2]))
    assert axis["values"] == [-4, -2, 0, 2, 4, 6]
    assert "'-4': '10⁻⁴'" in axis["labelExpr"]
    assert "'2': '100'" in axis["labelExpr"]
    texts = texts_in(
        histogram_chart("h", "t", histogram_of({"a": np.array([-4.0, 6.0])}), "x", kind="log")
    )
    assert {"10⁻⁴", "100", "10⁶"} <= set(texts)

import numpy as np
import pytest

from gpn_scale.page.curve_chart import MOST_LINES, CurveAxes, Line, curve_chart
from tests.page.drawings import SERIES, checked, parsed, texts_in

AXES = CurveAxes(x_title="x", y_title="y")


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("y_range", [None, (0.0, 1.0)])
def test_curves_through_any_values(name, y_range):
    y = np.array(SERIES[name])
    axes = CurveAxes(x_title="x", y_title="y", is_percent=True, y_range=y_range)
    parsed(curve_chart("c", "t", [Line(np.arange(len(y)), y, "l")], axes, marked=(0.0, "here")))


def test_no_line_is_an_empty_chart():
    parsed(curve_chart("c", "title", [], AXES))


def test_bands_show_errors_and_skip_what_is_not_finite():
    x, y = np.arange(3.0), np.array([0.2, 0.5, 0.4])
    lines = [Line(x, y, "with", np.array([0.1, np.nan, 0.1])), Line(x, y, "without")]
    specification = checked(curve_chart("c", "title", lines, AXES).specification)
    assert [layer["mark"]["type"] for layer in specification["layer"]] == ["area", "line"]
    halves = [row["high"] - row["low"] for row in specification["data"]["values"]]
    assert halves == pytest.approx([0.2, 0.0, 0.2, 0.0, 0.0, 0.0])


def test_the_axis_covers_what_is_asked_for_and_all_lines():
    axes = CurveAxes(x_title="x", y_title="y", y_range=(0.0, 0.01))
    lines = [Line(np.arange(2.0), np.array([0.1, 0.6]), "", np.array([0.0, 0.2]))]
    specification = curve_chart("c", "t", lines, axes).specification
    assert specification["layer"][0]["encoding"]["y"]["scale"]["domain"] == [
        0.0,
        pytest.approx(0.8),
    ]


def test_lines_of_a_chart_differ_in_dashes_and_have_names():
    x = np.arange(3.0)
    lines = [Line(x, x, f"line {i}") for i in range(MOST_LINES)]
    chart = curve_chart("c", "title", lines, AXES)
    scale = chart.specification["layer"][0]["encoding"]["strokeDash"]["scale"]
    assert len({tuple(dash) for dash in scale["range"]}) == MOST_LINES
    assert {line.label for line in lines} <= set(texts_in(chart))
    assert "line 0; line 1" in chart.description


def test_a_single_line_without_a_name_has_no_legend():
    chart = curve_chart("c", "t", [Line(np.arange(3.0), np.arange(3.0))], AXES, marked=(1.0, "m"))
    assert set(texts_in(chart)) >= {"m", "x", "y"}
    assert chart.specification["layer"][0]["encoding"]["color"]["legend"] is None

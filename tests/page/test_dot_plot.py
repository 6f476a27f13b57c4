import math

import pytest

from gpn_scale.page.dot_plot import Dot, dot_plot
from tests.page.drawings import SERIES, numbers, parsed


@pytest.mark.parametrize("values", SERIES.values(), ids=SERIES)
@pytest.mark.parametrize("error", [math.nan, 0.5, math.inf])
def test_any_numbers_are_a_drawing(values, error):
    dots = [Dot(f"model <{place}>", value, error) for place, value in enumerate(values)]
    root = parsed(dot_plot("name", "Title", dots, "metric ↑"))
    finite = [value for value in values if math.isfinite(value)]
    assert len(numbers(root, "cx")) == len(finite)


def test_larger_values_are_further_right_and_first_rows_on_top():
    dots = [Dot("first", 3.0), Dot("second", 1.0), Dot("third", 2.0)]
    root = parsed(dot_plot("name", "Title", dots, "x"))
    x, y = numbers(root, "cx"), numbers(root, "cy")
    assert x[1] < x[2] < x[0]
    assert y[0] < y[1] < y[2]


def test_the_best_is_a_diamond_and_errors_are_in_the_tooltip():
    plot = dot_plot("name", "Title", [Dot("a", 3.0, 0.5, True), Dot("b", 1.0)], "x")
    root = parsed(plot)
    assert len(numbers(root, "cx")) == 1
    assert "a: 3 ± 0.5" in plot.body
    assert plot.description == "x: a 3; b 1."

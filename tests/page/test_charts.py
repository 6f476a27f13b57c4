import numpy as np
import pytest

from gpn_scale.evaluation.metrics import reliability
from gpn_scale.page.charts import MOST_LINES, Line, curves, histogram, reliability_diagram
from gpn_scale.page.histograms import histogram_of
from gpn_scale.page.svg import log_label, percent_label, plain_label
from tests.page.drawings import SERIES, numbers, parsed


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("label", [plain_label, log_label])
def test_histograms_of_any_values(name, label):
    values = np.clip(np.array(SERIES[name]), -300, 300)
    densities = histogram_of({"first": values, "second": np.array([])})
    root = parsed(histogram("h", "title", densities, "x", label=label))
    assert max(numbers(root, "x")) <= 380
    parsed(histogram("h", "title", histogram_of({}), "x", label=label))


@pytest.mark.parametrize("name", SERIES)
def test_curves_through_any_values(name):
    y = np.array(SERIES[name])
    plot = curves("c", "title", [Line(np.arange(len(y)), y, "line")], "x", "y", marked=(0, "here"))
    parsed(plot)
    parsed(curves("c", "title", [], "x", "y", y_label=percent_label))


def test_bands_show_errors_and_skip_what_is_not_finite():
    x, y = np.arange(3.0), np.array([0.2, 0.5, 0.4])
    lines = [Line(x, y, "with", np.array([0.1, np.nan, 0.1])), Line(x, y, "without")]
    root = parsed(curves("c", "title", lines, "x", "y"))
    bands = [p for p in root.iter() if (p.get("class") or "").startswith("area")]
    assert len(bands) == 1
    assert bands[0].get("d").endswith("Z")
    np.testing.assert_allclose(lines[0].ends, [0.1, 0.5, 0.3, 0.3, 0.5, 0.5])


def test_lines_of_a_plot_differ_in_dashes_and_have_names():
    x = np.arange(3.0)
    lines = [Line(x, x, f"line {i}") for i in range(MOST_LINES)]
    root = parsed(curves("c", "title", lines, "x", "y"))
    kinds = {p.get("class") for p in root.iter() if (p.get("class") or "").startswith("line s")}
    assert len(kinds) == MOST_LINES
    names = [p.text for p in root.iter() if p.get("class") == "label"]
    assert names == [line.label for line in lines]


@pytest.mark.parametrize("count", [0, 1, 200])
def test_reliability_of_any_number_of_nodes(count):
    rng = np.random.default_rng(0)
    bins = reliability(rng.dirichlet(np.ones(3), count), rng.integers(0, 3, count))
    root = parsed(reliability_diagram("r", "title", bins))
    bars = [p for p in root.iter() if p.tag.endswith("rect") and len(p)]
    assert len(bars) == (bins.count_B > 0).sum()


def test_names_of_peaks_stay_in_the_drawing_and_apart():
    rng = np.random.default_rng(0)
    for distance in (0.0, 0.5, 5.0, 50.0):
        groups = {"known test nodes": rng.normal(0, 1, 99), "unknown nodes": rng.normal(-distance)}
        groups["unknown nodes"] = rng.normal(-distance, 1, 99)
        root = parsed(histogram("h", "title", histogram_of(groups), "x"))
        boxes = []
        for part in root.iter():
            if "label" in (part.get("class") or ""):
                x, width = float(part.get("x")), 6.6 * len(part.text)
                left = x - width if part.get("text-anchor") == "end" else x
                boxes.append((left, left + width, float(part.get("y"))))
        (a, b, row), (c, d, other) = boxes
        assert min(a, c) >= 0
        assert max(b, d) <= 380
        assert row != other or b <= c or d <= a

"""Plots are well-formed, cover their data, and hold no number that is not finite."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation.metrics import reliability
from gpn_scale.page.charts import (
    Line,
    curves,
    histogram,
    points_by_class,
    points_by_evidence,
    reliability_diagram,
)
from gpn_scale.page.facts import data_range, histogram_of
from gpn_scale.page.markup import (
    class_letter,
    coordinate,
    escaped,
    figures,
    part_of_whole,
    percent,
    tag,
)
from gpn_scale.page.neighbourhood import neighbourhood
from gpn_scale.page.svg import axis, line_path, log_label, percent_label, plain_label
from tests.page.samples import explained_node, latent_points

NAN, INF = float("nan"), float("inf")
SERIES = {
    "none": [],
    "one": [3.0],
    "constant": [2.0, 2.0, 2.0],
    "zero": [0.0, 0.0],
    "not finite": [NAN, INF, -INF],
    "partly finite": [NAN, 1.0, INF, 2.0, -INF],
    "tiny": [5e-324, 0.0],
    "huge": [-1e308, 1e308],
    "usual": [0.1, 0.7, 0.3],
}


def parsed(plot):
    """The drawing as a file, which must be XML without numbers that are not finite."""
    text = plot.standalone(".plot { color: red }")
    root = ElementTree.fromstring(text)
    for part in root.iter():
        for key, value in part.attrib.items():
            if key in ("d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox"):
                assert not re.search("nan|inf", value, re.IGNORECASE), (part.tag, key, value)
    return root


def numbers(root, key):
    return [float(part.get(key)) for part in root.iter() if part.get(key) is not None]


@given(st.lists(st.floats(-1e12, 1e12), max_size=5), st.integers(2, 8))
def test_ticks_cover_the_data(values, count):
    found = axis(values, "x", count=count)
    low, high = data_range(np.array(values))
    slack = 1e-6 * (high - low)
    assert found.ticks[0] <= low + slack
    assert found.ticks[-1] >= high - slack
    assert 2 <= len(found.ticks) <= count + 2
    assert len(set(found.labels)) == len(found.labels)


@pytest.mark.parametrize("name", SERIES)
def test_every_series_has_an_axis(name):
    found = axis(SERIES[name], "x")
    assert np.isfinite(found.ticks).all()
    assert (np.diff(found.ticks) > 0).all()


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("label", [plain_label, log_label])
def test_histograms_of_any_values(name, label):
    values = np.clip(np.array(SERIES[name]), -300, 300)
    found = histogram_of({"first": values, "second": np.array([])})
    width = np.diff(found.edges)
    parsed(histogram("h", "title", histogram_of({}), "x", label=label))
    total = (found.densities["first"] * width).sum()
    assert total == pytest.approx(1.0 if np.isfinite(values).any() else 0.0)
    assert not found.densities["second"].any()
    root = parsed(histogram("h", "title", found, "x", label=label))
    assert max(numbers(root, "x")) <= 380


@pytest.mark.parametrize("name", SERIES)
def test_curves_through_any_values(name):
    y = np.array(SERIES[name])
    plot = curves("c", "title", [Line(np.arange(len(y)), y, "line")], "x", "y", marked=(0, "here"))
    parsed(plot)
    parsed(curves("c", "title", [], "x", "y", y_label=percent_label))


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_points_in_any_number(count):
    found = latent_points(count)
    for draw in (points_by_class, points_by_evidence):
        parsed(draw("p", "title", found))
        same = replace(found, position=np.zeros((count, 2)), log_evidence=np.zeros(count))
        parsed(draw("p", "title", same))
        lost = replace(found, position=np.full((count, 2), NAN), log_evidence=np.full(count, NAN))
        parsed(draw("p", "title", lost))


def test_classes_differ_in_more_than_colour():
    root = parsed(points_by_class("p", "title", latent_points(300)))
    paths = [p.get("d") for p in root.iter() if "points" in (p.get("class") or "")]
    shapes = {re.search("m.*?(?=M|$)", path).group() for path in paths}
    assert len(paths) == len(shapes) == 3
    letters = [p.text for p in root.iter() if p.get("class") == "letter"]
    assert set(letters) <= {"A", "B", "C"}
    assert "A" in letters


def test_letters_do_not_hide_each_other():
    found = latent_points(300)
    apart = replace(found, position=found.position / 100 + np.eye(3)[found.label][:, :2])
    for points, count in ((apart, 3), (replace(found, position=np.zeros((300, 2))), 1)):
        root = parsed(points_by_class("p", "title", points))
        assert sum(part.get("class") == "letter" for part in root.iter()) == count


@pytest.mark.parametrize("count", [0, 1, 200])
def test_reliability_of_any_number_of_nodes(count):
    rng = np.random.default_rng(0)
    found = reliability(rng.dirichlet(np.ones(3), count), rng.integers(0, 3, count))
    root = parsed(reliability_diagram("r", "title", found))
    bars = [p for p in root.iter() if p.tag.endswith("rect") and len(p)]
    assert len(bars) == (found.count_B > 0).sum()


def test_lines_are_as_wide_as_shares():
    root = parsed(neighbourhood("n", explained_node()))
    edge = next(p for p in root.iter() if p.get("class") == "edge")
    ring = next(p for p in root.iter() if p.get("class") == "ring")
    assert float(edge.get("stroke-width")) == 2 * float(ring.get("stroke-width"))
    parsed(neighbourhood("n", replace(explained_node(), contributors=())))


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


def test_hostile_text_is_text():
    hostile = "<script>alert(1)</script>\"'&\x00\x0b\ud800\uffff"
    for text in (escaped(hostile), tag("a", escaped(hostile), title=hostile)):
        assert "<script" not in text
        ElementTree.fromstring(f"<p>{text}</p>")
        text.encode()


def test_paths_skip_what_is_not_finite():
    assert line_path([0, NAN, 2], [1, 1, INF]) == "M0 1"
    assert line_path([], []) == ""
    assert [coordinate(v) for v in (-0.04, -0.5, 1.25, 100.0)] == ["0", "-0.5", "1.2", "100"]


def test_numbers_as_people_read_them():
    assert figures(0.000012345) == "1.23·10⁻⁵"
    assert figures(12345.6) == "12,346"
    assert figures(0.5) == "0.500"
    assert figures(0.0) == "0"
    assert [percent(v) for v in (0.1234, NAN, None)] == ["12.3 %", "n.a.", "n.a."]
    assert [part_of_whole(v) for v in (0.0, 1e-9, 0.001, 0.5)] == [
        "0.0 %",
        "< 0.1 %",
        "0.1 %",
        "50.0 %",
    ]
    assert figures(INF) == figures(None) == "n.a."
    assert [log_label(v, 1) for v in (-4, 0, 3, 5)] == ["10⁻⁴", "1", "1,000", "10⁵"]
    assert [class_letter(c) for c in (-1, 0, 25, 26, 52)] == ["?", "A", "Z", "AA", "BA"]

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.page.chart import for_browser
from gpn_scale.page.map_chart import MOST_DRAWN, map_charts, map_specification
from tests.page.drawings import checked, parsed, texts_in
from tests.page.samples import node_rows


def test_every_map_is_drawn_by_class_and_by_evidence():
    charts = map_charts(node_rows(), 3)
    assert [chart.name for chart in charts] == [
        "latent-classes",
        "latent-evidence",
        "neighbours-classes",
        "neighbours-evidence",
    ]
    assert {"A", "B", "C"} <= set(texts_in(charts[0]))
    parsed(charts[1])
    assert len(map_charts(replace(node_rows(), near=None), 3)) == 2


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_nodes_have_a_map(count):
    for chart in map_charts(node_rows(count), 3):
        parsed(chart)


def test_nodes_without_a_position_are_left_out_and_many_are_thinned():
    rows = node_rows(MOST_DRAWN + 50)
    rows.components.position[0] = np.nan
    values = [
        layer["data"]["values"]
        for chart in map_charts(rows, 3)
        for layer in chart.specification["layer"][:1]
    ]
    assert [len(each) for each in values] == [MOST_DRAWN] * 4
    # The sample draws both maps from the same array of positions.
    rows = node_rows(10)
    rows.components.position[3] = np.nan
    (first, *_) = map_charts(rows, 3)
    assert len(first.specification["layer"][0]["data"]["values"]) == 9


def test_classes_differ_in_colour_and_shape():
    specification = checked(map_specification(node_rows(), node_rows().components, 20, "class"))
    encoding = specification["layer"][1]["encoding"]
    pairs = zip(
        encoding["color"]["scale"]["range"], encoding["shape"]["scale"]["range"], strict=True
    )
    assert len(set(pairs)) == 20


@pytest.mark.parametrize("kind", ["class", "evidence"])
def test_the_browser_gets_data_sets_and_a_selection(kind):
    rows = node_rows()
    compiled = for_browser(checked(map_specification(rows, rows.components, 3, kind)))
    names = {data["name"] for data in compiled["data"]}
    assert {"all", "shown", "picked"} <= names
    assert ("letters" in names) == (kind == "class")
    assert "area" in {signal["name"] for signal in compiled["signals"]}

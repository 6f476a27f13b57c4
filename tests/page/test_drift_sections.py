from dataclasses import replace

import pytest

from gpn_scale.drift.comparison import compare
from gpn_scale.page.drift_sections import SHOWN_NODES, classes, known, nodes, overview
from tests.drift.samples import scored
from tests.page.drawings import parsed, texts_in
from tests.page.drift_samples import moved_drift, still_drift
from tests.page.outline import Outline


@pytest.fixture(scope="module")
def drift():
    return moved_drift()


def test_the_overview_has_verdict_advice_and_thresholds(drift):
    body = overview(drift).body
    assert "The share of nodes that look unknown rose from" in body
    assert "Review the nodes that look unknown" in body
    assert "A is run (600 nodes)" in body
    assert "at least 1 % of the nodes" in body
    assert "independent draws" in body
    assert "3 of 5" in body  # age, country, opened
    Outline(body)


def test_p_values_have_a_table_and_curves(drift):
    section = known(drift)
    assert "The part that moved most is features." in section.body
    assert [chart.name for chart in section.charts] == [
        f"cumulative-{part.name}" for part in drift.parts
    ]
    assert {"A", "B", "p_features at most"} <= set(texts_in(section.charts[1]))
    assert Outline(section.body).tags.count("tr") == 1 + len(drift.parts)
    assert known(still_drift()) is None


def test_levels_out_of_reach_have_no_column(drift):
    parts = [
        replace(part, shares={0.05: part.shares[0.05]} if part.name == "known" else {})
        for part in drift.parts
    ]
    body = known(replace(drift, parts=tuple(parts))).body
    assert "at most 5 %, A" in body
    assert "at most 1 %, A" not in body
    assert body.count("n.a.") == 2 * (len(parts) - 1)


def test_classes_are_sorted_by_change(drift):
    section = classes(drift)
    assert "vanished" in section.body
    assert "+6" in section.body
    assert "Not answered are 0.0 %" in section.body
    parsed(section.charts[0])


def test_of_many_classes_the_first_are_shown():
    names = [f"c{place}" for place in range(30)]
    table = scored(60, predicted_class=list(range(30)) * 2, predicted_class_name=names * 2)
    assert "Of 30 classes, these changed most." in classes(compare(table, table)).body


def test_nodes_that_moved_are_listed(drift):
    section = nodes(drift)
    outline = Outline(section.body)
    assert outline.tags.count("tr") == 1 + SHOWN_NODES
    assert f"The first 100 of {drift.nodes.table.num_rows} nodes" in section.body
    assert "p_known before" in section.body
    assert "0 nodes joined and 0 left." in section.body
    assert "<table" not in nodes(still_drift()).body


def test_nodes_that_joined_are_told():
    body = nodes(compare(scored(50), scored(80))).body
    assert "30 nodes joined and 0 left. Of those that joined," in body
    assert "<td>-</td>" in body


def test_texts_from_data_are_escaped():
    drift = moved_drift(name="<i>x</i>", node="<script>alert(1)</script>")
    for section in (overview(drift), nodes(drift)):
        assert "<script" not in section.body
        assert "<i>x" not in section.body

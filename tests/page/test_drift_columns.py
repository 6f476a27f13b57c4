import pytest

from gpn_scale.page.drift_columns import columns
from tests.page.drawings import parsed, texts_in
from tests.page.drift_samples import moved_drift, still_drift
from tests.page.outline import Outline


@pytest.fixture(scope="module")
def section():
    return columns(moved_drift())


def test_columns_that_moved_come_first(section):
    assert Outline(section.body).tags.count("tr") == 1 + 6
    assert section.body.index(">age<") < section.body.index(">is_company<")
    assert "new values: &#39;XK&#39; (100)" in section.body


def test_charts_show_what_moved(section):
    assert [chart.name for chart in section.charts] == [
        "column-distances",
        "column-0",
        "column-1",
        "column-2",
    ]
    titles = [chart.title for chart in section.charts]
    assert set(titles[1:]) == {"age", "country", "opened"}
    drawn = {chart.title: set(texts_in(chart)) for chart in section.charts}
    assert {"XK", "DE"} <= drawn["country"]
    assert "opened (year)" in drawn["opened"]
    assert "A (600)" in drawn["age"]
    for chart in section.charts:
        parsed(chart)


def test_without_graphs_there_is_no_section():
    assert columns(still_drift()) is None


def test_any_names_can_be_drawn():
    drift = moved_drift(column="<b>\u202e" + "x" * 300, value="<script>")
    section = columns(drift)
    assert "<script>" not in section.body
    assert "<b>" not in section.body
    for chart in section.charts:
        parsed(chart)

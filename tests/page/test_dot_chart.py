import math

from gpn_scale.page.dot_chart import Dot, dot_chart
from tests.page.drawings import parsed, texts_in


def test_every_row_has_its_name_and_the_best_is_a_diamond():
    dots = [Dot("first", 1.5, 0.25, is_best=True), Dot("second", 2.0), Dot("third", math.nan)]
    chart = dot_chart("d", "title", dots, "rank")
    assert {"first", "second", "third"} <= set(texts_in(chart))
    labels = {part.get("aria-label") for part in parsed(chart).iter()}
    assert {"first: 1.5 ± 0.25", "second: 2"} <= labels
    rows = chart.specification["data"]["values"]
    assert [(row["low"], row["high"], row["best"]) for row in rows] == [
        (1.25, 1.75, True),
        (2.0, 2.0, False),
    ]
    assert chart.description == "rank: first 1.5; second 2."


def test_no_rows_are_an_empty_chart():
    parsed(dot_chart("d", "title", [], "rank"))
    parsed(dot_chart("d", "title", [Dot("only", math.nan)], "rank"))

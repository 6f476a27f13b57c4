from dataclasses import replace

import numpy as np

from gpn_scale.page.class_section import balance_chart, classes
from tests.page.drawings import parsed, texts_in
from tests.page.outline import Outline
from tests.page.samples import prediction_facts


def test_the_section_names_the_classes_that_are_confused_most():
    section = classes(prediction_facts(class_name="sea"))
    assert ": 2 times" in section.body
    assert Outline(section.body).tags.count("td") == 9 + 3 * 7
    assert "83.3 %" in section.body  # recall of the first class
    assert "n.a." in section.body  # precision of a class that is never predicted
    assert [chart.name for chart in section.charts] == ["class-balance"]


def test_no_error_and_no_test_node_are_no_confusion():
    facts = prediction_facts()
    right = replace(facts.classes, confusion=np.diag([3, 2, 1]))
    assert "times" not in classes(replace(facts, classes=right)).body
    nothing = replace(facts.classes, confusion=np.zeros((3, 3), np.int64))
    assert "n.a." in classes(replace(facts, classes=nothing)).body


def test_the_balance_names_classes_and_fractions():
    chart = balance_chart(prediction_facts().classes, ("a", "b", "c"))
    assert {"A a", "B b", "C c"} <= set(texts_in(chart))
    labels = {part.get("aria-label") for part in parsed(chart).iter()}
    assert "A a: 40.0 % of training labels" in labels


def test_names_of_classes_are_escaped():
    body = classes(prediction_facts(class_name="<b>")).body
    assert "<b>" not in body

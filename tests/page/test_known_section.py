from dataclasses import replace

from gpn_scale.page.known_section import known
from tests.page.samples import prediction_facts


def test_the_section_says_what_holds_and_lists_the_strangest_nodes():
    section = known(prediction_facts(node_name="n7", class_name="sea"))
    assert section.heading == "Which nodes look unknown"
    for text in ("30 validation nodes", "exchangeable", "torn between sea and b", "n7", "3.0 %"):
        assert text in section.body
    assert [plot.name for plot in section.plots] == ["p-known"]


def test_the_distribution_of_few_nodes_is_not_drawn():
    facts = prediction_facts()
    unmeasured = replace(facts.known, distance=None)
    assert "theirs are within" not in known(replace(facts, known=unmeasured)).body
    section = known(replace(facts, known=replace(unmeasured, p_known=None)))
    assert section.plots == ()
    assert "The strangest nodes of the graph" in section.body


def test_names_are_escaped():
    body = known(prediction_facts(node_name="<b>", class_name="<i>")).body
    assert "<b>" not in body
    assert "<i>" not in body


def test_without_p_values_there_is_no_section():
    assert known(replace(prediction_facts(), known=None)) is None

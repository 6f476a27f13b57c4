from dataclasses import replace

from gpn_scale.page.facts import ExtremeNodes
from gpn_scale.page.node_section import nodes
from tests.page.samples import contributor_facts, explained_node, prediction_facts


def section_of(*explained):
    extremes = ExtremeNodes(uncertain=explained, median_evidence=12.0, source="A source.")
    return nodes(replace(prediction_facts(class_name="first"), extremes=extremes))


def test_the_least_certain_nodes_come_first():
    section = nodes(prediction_facts())
    assert section.body.index("Least certain") < section.body.index("Most certain")
    assert [plot.name for plot in section.plots] == ["least-certain-1", "most-certain-1"]


def test_a_card_says_what_is_known_about_the_node():
    text = section_of(explained_node(name="7", contributor="8")).body
    assert "A source." in text
    assert "test node" in text
    assert "with 40.0 %; its true class is" in text
    assert "the median of the known test nodes is 12.0" in text
    assert "No other node contributes" not in text
    assert "all others" in text
    assert "25.0 %" in text


def test_an_unknown_node_has_its_marks_and_no_class():
    text = section_of(explained_node(marks=("left_out_classes", "b"))).body
    assert "unknown node: left out classes, b" in text
    assert "its true class is not known" in text


def test_a_node_on_its_own_is_said_to_be():
    alone = replace(explained_node(), contributors=(contributor_facts("7", 1.0, itself=True),))
    assert "No other node contributes" in section_of(alone).body


def test_a_reason_replaces_nodes_that_are_not_shown():
    facts = replace(prediction_facts(), extremes=ExtremeNodes(absent="Too large."))
    section = nodes(facts)
    assert "Too large." in section.body
    assert not section.plots

from dataclasses import replace

from gpn_scale.page.known_section import known
from tests.page.samples import prediction_facts


def test_the_section_says_what_holds():
    section = known(prediction_facts())
    for text in ("30 validation nodes", "exchangeable", "3.0 %", "There are 30 validation nodes."):
        assert text in section.body
    assert [chart.name for chart in section.charts] == ["p-known"]


def test_the_distribution_of_few_nodes_is_not_drawn():
    facts = prediction_facts()
    unmeasured = replace(facts.known, distance=None)
    assert "theirs are within" not in known(replace(facts, known=unmeasured)).body
    section = known(replace(facts, known=replace(unmeasured, p_known=None)))
    assert section.charts == ()
    assert "30 validation nodes" in section.body


def test_notes_are_escaped():
    facts = prediction_facts()
    noted = replace(facts, known=replace(facts.known, notes=("<b>",)))
    assert "<b>" not in known(noted).body


def test_without_p_values_there_is_no_section():
    assert known(replace(prediction_facts(), known=None)) is None

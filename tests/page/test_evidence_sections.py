from dataclasses import replace

from gpn_scale.page.evidence_sections import evidence, missing_mass, reasons
from tests.page.samples import prediction_facts


def test_unknown_nodes_are_explained_if_there_are_any():
    facts = prediction_facts()
    assert "unknown nodes (dashed)" in evidence(facts).body
    assert "(dashed)" not in evidence(replace(facts, unknown_nodes=0)).body


def test_every_section_has_its_charts():
    facts = prediction_facts()
    names = [chart.name for chart in evidence(facts).charts]
    assert names == ["alpha0-with-network", "alpha0-without-network"]
    assert [chart.name for chart in reasons(facts).charts] == ["vacuity", "dissonance"]
    assert [chart.name for chart in missing_mass(facts).charts] == ["missing-mass"]


def test_few_nodes_have_no_section():
    facts = replace(prediction_facts(), alpha_0=None, vacuity=None)
    assert evidence(facts) is None
    assert [chart.name for chart in reasons(facts).charts] == ["dissonance"]
    assert reasons(replace(facts, dissonance=None)) is None


def test_exact_mode_has_no_missing_mass():
    assert missing_mass(replace(prediction_facts(), missing_mass=None)) is None

from dataclasses import replace

import pytest

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.trust_section import rejection_plot, risk_plot, temperature_sentence, trust
from tests.page.drawings import parsed
from tests.page.samples import prediction_facts


@pytest.mark.parametrize(
    ("fitted", "verdict"), [(0.5, "underconfident"), (1.01, "about right"), (2.0, "overconfident")]
)
def test_a_temperature_is_explained(fitted, verdict):
    facts = replace(prediction_facts().temperature, fitted=fitted)
    sentence = temperature_sentence(facts)
    assert verdict in sentence
    assert "20 validation nodes" in sentence


def test_every_score_has_a_line():
    risk = prediction_facts().risk
    for plot in (risk_plot(risk), rejection_plot(risk)):
        parsed(plot)
        for score in PAGE_SCORES.values():
            assert score.title in plot.body
    assert "AURC 0.250" in risk_plot(risk).body


def test_conformal_sets_name_their_assumption():
    text = trust(prediction_facts()).body
    assert "contain the true class in 90 % of cases" in text
    assert "exchangeable" in text
    assert "92.0 %" in text
    assert "calibrated on 25 test nodes" in text
    assert "target: at least 90 % (95 % interval: 74.0 to 99.0 %)" in text


def test_what_cannot_be_computed_is_left_out():
    plain = replace(prediction_facts(), conformal=None, temperature=None)
    section = trust(plain)
    assert "conformal" not in section.body
    names = [plot.name for plot in section.plots]
    assert names == ["reliability", "risk-coverage", "accuracy-rejection"]
    few = replace(plain, reliability=None)
    assert [plot.name for plot in trust(few).plots] == names[1:]
    assert trust(replace(few, risk=())) is None
    assert trust(replace(few, risk=(), conformal=prediction_facts().conformal)).plots == ()

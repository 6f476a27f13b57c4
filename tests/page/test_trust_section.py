from dataclasses import replace

import pytest

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.trust_section import rejection_chart, risk_chart, temperature_sentence, trust
from tests.page.drawings import texts_in
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
    areas, plain = set(texts_in(risk_chart(risk))), set(texts_in(rejection_chart(risk)))
    for score in PAGE_SCORES.values():
        assert f"{score.title}: AURC 0.250" in areas
        assert score.title in plain


def test_conformal_sets_name_their_assumption():
    text = " ".join(trust(prediction_facts()).body.split())
    assert "contain the true class in 90 % of cases" in text
    assert "exchangeable" in text
    assert "92.0 %" in text
    assert "calibrated on 25 test nodes" in text
    assert "target: at least 90 % (95 % interval: 74.0 to 99.0 %)" in text


def test_what_cannot_be_computed_is_left_out():
    plain = replace(prediction_facts(), conformal=None, temperature=None, errors=())
    section = trust(plain)
    assert "conformal" not in section.body
    names = [chart.name for chart in section.charts]
    assert names == ["reliability", "risk-coverage", "accuracy-rejection"]
    few = replace(plain, reliability=None)
    assert [chart.name for chart in trust(few).charts] == names[1:]
    assert trust(replace(few, risk=())) is None
    assert trust(replace(few, risk=(), conformal=prediction_facts().conformal)).charts == ()

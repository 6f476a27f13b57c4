from dataclasses import replace

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.overview_section import overview
from tests.page.samples import run_facts


def test_every_score_has_a_card_with_its_question():
    text = overview(run_facts()).body
    for score in PAGE_SCORES.values():
        assert score.title in text
        assert score.question.replace("'", "&#39;") in text
    assert text.count("75.0 %</strong> AUC-ROC for unknown nodes") == len(PAGE_SCORES)


def test_marks_have_a_table_if_there_are_several():
    facts = run_facts(mark="planted")
    text = " ".join(overview(facts).body.split())
    assert "one of the 10 unknown nodes has a higher score than one of the 40 known" in text
    assert "planted" in overview(facts).body
    detection = facts.prediction.detection
    one = replace(detection, marks={"planted": detection.together})
    single = replace(facts, prediction=replace(facts.prediction, detection=one))
    assert "AUC-ROC" in overview(single).body
    assert ">planted<" not in overview(single).body


def test_an_unfinished_run_names_what_is_missing():
    facts = replace(run_facts(), report=None, prediction=None, missing=("There is no model.",))
    text = overview(facts).body
    assert "There is no model." in text
    assert "AUC-ROC" not in text
    assert "Accuracy" not in text


def test_numbers_that_are_not_defined_are_said_so():
    facts = run_facts()
    report = replace(facts.report, metrics={"test": dict.fromkeys(facts.report.metrics["test"])})
    assert "n.a." in overview(replace(facts, report=report)).body

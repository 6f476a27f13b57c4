from dataclasses import replace

from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.overview_section import overview
from tests.page.samples import run_facts


def test_every_score_has_a_card_with_its_question():
    text = overview(run_facts()).body
    for score in PAGE_SCORES.values():
        assert score.title in text
        assert score.question.replace("'", "&#39;") in text
    shown = "75.0 %</strong> AUC-ROC for unknown nodes (95 % interval: 65.0 to 85.0 %)"
    assert text.count(shown) == len(PAGE_SCORES)


def test_marks_have_a_table_if_there_are_several():
    facts = run_facts(mark="planted")
    text = " ".join(overview(facts).body.split())
    assert "one of the 10 unknown nodes has a higher score than one of the 40 known" in text
    assert "planted" in overview(facts).body
    assert "<td>75.0 % (65 to 85)</td>" in overview(facts).body
    assert "<td>n.a.</td>" in overview(facts).body, "the other mark has too few nodes"
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


def test_accuracy_stands_beside_the_largest_class_and_its_interval():
    text = overview(run_facts()).body
    assert "classified correctly (95 % interval: 70.0 to 87.5 %). Always the largest" in text
    assert "largest class: 40.0 %" in text
    assert "confidence and accuracy (95 % interval: 0.0 to 10.0 %)" in text
    assert "(95 %: 0.150 to 0.250)" in text


def test_figures_without_an_interval_are_not_shown():
    facts = run_facts()
    report = replace(facts.report, intervals={"test": {"accuracy": [0.1, 1.0]}})
    text = overview(replace(facts, report=report)).body
    assert "5.0 %</dd>" not in text
    assert text.count("n.a.</dd>") == 3


def test_warnings_come_first_and_what_is_left_out_is_named():
    facts = run_facts()
    report = replace(facts.report, warnings=["Class 'a' has 3 labelled nodes."])
    prediction = replace(facts.prediction, left_out=("Curves are not drawn.",))
    text = overview(replace(facts, report=report, prediction=prediction)).body
    warning = text.index("Class &#39;a&#39; has 3 labelled nodes.")
    assert text.index("Few labelled nodes") < warning < text.index("Curves are not drawn.")
    assert text.index("Curves are not drawn.") < text.index("Accuracy")
    assert "too few nodes" not in overview(facts).body


def test_what_a_warm_start_has_changed_is_told():
    change = {
        "run": "runs/<october>",
        "model": "4f",
        "nodes": {"test": 120},
        "before": {"test": {"accuracy": 0.81}},
        "after": {"test": {"accuracy": 0.845}},
    }
    facts = run_facts()
    text = overview(replace(facts, report=replace(facts.report, warm_start=change))).body
    assert "Compared with the run that training started from" in text
    assert "test, accuracy: 81.0 % before, 84.5 % after" in text
    assert "runs/&lt;october&gt;" in text
    assert "Compared with the run" not in overview(facts).body

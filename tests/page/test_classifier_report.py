import json
from dataclasses import replace

import pytest

from gpn_scale.errors import GraphError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction_metrics import classification_metrics
from gpn_scale.page.classifier_report import write_report
from tests.page.outline import headings


@pytest.fixture(scope="module")
def classifier(small_graph):
    return GPNClassifier(epochs=5, device="cpu").fit(small_graph)


def test_page_text_and_numbers(small_graph, classifier, tmp_path):
    report = classifier.report(small_graph, tmp_path / "new" / "folder")
    folder = tmp_path / "new" / "folder"
    values = json.loads((folder / "report.json").read_text())
    prediction = classifier.predict(small_graph)
    expected = classification_metrics(prediction, small_graph, small_graph.split.test)
    assert {name: report.metrics["test"][name] for name in expected} == expected
    assert "accuracy_largest_class" in report.metrics["test"]
    assert values["metrics"]["test"]["accuracy"] == expected["accuracy"]
    assert values["dataset"] == small_graph.name
    assert values["epochs"] == 5 + 5
    assert values["parts"]["opinion"]["epochs"] == 5
    assert values["seconds"].keys() == {"train", "inference"}
    assert "Trained for 10 epochs" in (folder / "report.md").read_text()
    page = (folder / "report.html").read_text()
    wanted = {"overview", "nodes", "known", "evidence", "trust", "classes", "training", "details"}
    assert wanted <= set(headings(page))
    assert "for 10 epochs; the weights are those of epoch" in page
    assert (folder / "plots" / "training-loss.svg").exists()


def test_a_loaded_model_does_not_claim_how_it_was_trained(small_graph, classifier, tmp_path):
    classifier.save(tmp_path / "model")
    loaded = GPNClassifier.load(tmp_path / "model", device="cpu")
    report = loaded.report(small_graph, tmp_path)
    assert report.seconds.keys() == {"inference"}
    for name in ("report.md", "report.html"):
        text = (tmp_path / name).read_text()
        assert "The model was trained earlier and loaded from a file." in text
        assert "Trained" not in text


def test_the_training_graph_is_reported_with_its_drawn_split(small_graph, tmp_path):
    given = replace(small_graph, split=None)
    classifier = GPNClassifier(epochs=2, model="GPN").fit(given)
    report = write_report(classifier, given, tmp_path)
    assert report.metrics["test"]["accuracy"] == pytest.approx(
        classification_metrics(
            classifier.predict(given), given, classifier.aligned(given).graph.split.test
        )["accuracy"]
    )
    assert report.parts == {}


def test_other_requests_are_refused(small_graph, classifier, tmp_path):
    with pytest.raises(GraphError, match="has no split, expected one whose test nodes are eval"):
        classifier.report(replace(small_graph, split=None), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"file cannot be written \(File exists\): choose another"):
        classifier.report(small_graph, tmp_path / "file")

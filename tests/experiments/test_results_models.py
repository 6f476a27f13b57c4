"""The writer of docs/comparison.md: the paper's models, and the committed markers."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.data.shifts import noise_rows
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.paper_figures import Figure, PaperKey
from gpn_scale.experiments.trained import Trained

REPOSITORY = Path(__file__).parents[2]


def test_models_stand_beside_the_paper_and_far_ones_are_listed(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    from benchmarks.results_models import sections
    from benchmarks.results_paper import put

    results, accuracy = {}, {"VGCN": (0.80, 0.90), "PPRGo": (0.5, 0.5)}
    for model, values in accuracy.items():
        for split, value in enumerate(values, start=1):
            own = {"clean": {"accuracy": value}, "misclassification": {"auroc_aleatoric": value}}
            results[Cell("CoraML", model, False, split, 1)] = CellResult("f", own)
    results[Cell("CoraML", "VGCN", False, 4, 1)] = CellResult("f", {"clean": {"accuracy": 0.0}})
    keys = [("clean", "accuracy"), ("misclassification", "auroc_aleatoric")]
    paper = {PaperKey("CoraML", "VGCN", *key): Figure(81.0, 0.1) for key in keys}
    tables = sections(results, paper)
    assert "| CoraML | VGCN | 2 | 85.0 ± 5.0 (paper 81.0, +4.0) |" in tables["clean"]
    assert "PPRGo" not in tables["clean"]
    assert "+4.0) | 80.0 to 90.0 |" in tables["far-accuracy"]
    assert "0 of 1 numbers are more than 5 points" in tables["far-areas"]
    page = (REPOSITORY / "docs" / "comparison.md").read_text()
    assert "85.0 ± 5.0" in put(page, tables)
    assert "No runs yet." not in page


def test_areas_of_many_choices_are_those_of_the_curve(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    from benchmarks import paper_readings

    monkeypatch.setattr(paper_readings, "DRAWS", 3)
    monkeypatch.setattr(paper_readings, "ISOLATED_NODES", 10)
    settings = SyntheticConfig(nodes=120, classes=3, features=6, unseen_classes=0)
    graph = stratified_split(synthetic_graph(settings), train=0.2, val=0.2, rng_seed=1)
    classifier = GPNClassifier(RunConfig(model="GPN", train=TrainConfig(epochs=2))).fit(graph)
    trained, test = Trained(classifier, graph, 5), graph.split.test
    areas = paper_readings.choices(trained)
    rng = np.random.default_rng(5)
    nodes = np.sort(rng.choice(test, len(test), replace=False))
    after = trained.perturbed.isolated(
        nodes, noise_rows("normal", len(nodes), graph.num_features, 5).__getitem__
    )
    for draw in range(3):
        chosen = rng.choice(len(nodes), 10, replace=False)
        right = after.predicted_class[chosen] == graph.labels[nodes[chosen]]
        assert areas["accuracy@normal"][draw] == right.mean()
        for name in ("aleatoric", "epistemic", "epistemic_no_network"):
            score = np.append(trained.prediction.scores(test)[name], getattr(after, name)[chosen])
            expected = roc_auc_score(np.arange(len(score)) >= len(test), score)
            assert areas[f"auroc_{name}@normal"][draw] == pytest.approx(expected)
    table = paper_readings.choices_table({("CoraML", "accuracy@normal"): [np.full(3, 0.5)]}, {})
    assert "| CoraML | accuracy@normal | 1 | 50.0 | 50.0 to 50.0 | n.a. | n.a. |" in table

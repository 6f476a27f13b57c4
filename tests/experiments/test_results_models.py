"""The writer of docs/comparison.md: the paper's models, and the committed markers."""

from pathlib import Path

from gpn_scale.experiments.matrix import Cell, CellResult
from gpn_scale.experiments.paper import Figure, PaperKey

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
    keys = [("clean", "accuracy"), ("misclassification", "auroc_aleatoric")]
    paper = {PaperKey("CoraML", "VGCN", *key): Figure(81.0, 0.1) for key in keys}
    found = sections(results, paper)
    assert "| CoraML | VGCN | 2 | 85.0 ± 5.0 (paper 81.0, +4.0) |" in found["clean"]
    assert "PPRGo" not in found["clean"]
    assert "+4.0) | 80.0 to 90.0 |" in found["far-accuracy"]
    assert "0 of 1 numbers are more than 5 points" in found["far-areas"]
    page = (REPOSITORY / "docs" / "comparison.md").read_text()
    assert "85.0 ± 5.0" in put(page, found)

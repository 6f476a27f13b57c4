import re
from pathlib import Path

import pytest

from gpn_scale.cli.evaluate import main
from gpn_scale.models.registry import MODELS

DOCUMENT = Path(__file__).parents[2] / "docs" / "adding_a_model.md"
GRAPH = "synthetic:nodes=150,classes=4,unseen_classes=0,features=6"


@pytest.fixture
def example():
    """The page's code, run; its model leaves again."""
    registered = dict(MODELS)
    code = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert code is not None
    names = {"__name__": "example"}
    exec(code[1], names)
    yield names["SGC"]
    MODELS.clear()
    MODELS.update(registered)


def test_the_page_adds_a_model_to_the_evaluation(example, tmp_path, capsys):
    arguments = ["--models", "SGC[train.epochs=5],VGCN[train.epochs=2]", "--datasets", GRAPH]
    arguments += ["--splits", "1", "--inits", "1", "--left-out-classes", "1", "--fractions", "0.5"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    table = (tmp_path / "tables" / "results.md").read_text()
    assert f"| {GRAPH} | SGC[train.epochs=5] |" in table
    assert "nan" not in table
    page = (tmp_path / "report.html").read_text()
    assert "4 of 4 trainings have all their results" in page
    plots = {path.name for path in (tmp_path / "plots").glob("*.svg")}
    assert any("epistemic-confidence" in name for name in plots)
    assert all("nan" not in path.read_text() for path in (tmp_path / "plots").glob("*.svg"))


def test_refusals_of_the_command_line(tmp_path, capsys):
    for model, message in (
        ("VGCN-Ensemble[model.members=0]", "model.members is 0, expected at least 1 network"),
        ("VGCN[model.members=2]", "VGCN has no option 'model.members'"),
        ("VGCN[train.epoch=2]", "has no field 'train.epoch'"),
        ("VGCN,GGP[model.memory_gib=1e-9]", "GGP on graph"),
    ):
        arguments = ["--models", model, "--datasets", GRAPH, "--splits", "1", "--inits", "1"]
        arguments += ["--experiment", "clean"]
        assert main([*arguments, "--out", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
        assert not list(tmp_path.rglob("*.safetensors"))

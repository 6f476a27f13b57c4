import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpn_scale.cli.evaluate import main
from gpn_scale.models.registry import MODELS

DOCUMENT = Path(__file__).parents[2] / "docs" / "adding_a_model.md"
GRAPH = "synthetic:nodes=150,classes=4,unseen_classes=0,features=6"


@pytest.fixture
def plugin(tmp_path):
    """The page's code as a file; the models that it registers leave again."""
    registered = dict(MODELS)
    code = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert code is not None
    path = tmp_path / "sgc.py"
    path.write_text(code[1])
    yield path
    MODELS.clear()
    MODELS.update(registered)


def test_the_page_adds_a_model_to_the_evaluation(plugin, tmp_path, capsys):
    arguments = ["--models", "SGC[train.epochs=5],VGCN[train.epochs=2]", "--datasets", GRAPH]
    arguments += ["--splits", "1", "--inits", "1", "--left-out-classes", "1", "--fractions", "0.5"]
    out = tmp_path / "out"
    assert main([*arguments, "--plugin", str(plugin), "--out", str(out)]) == 0
    table = (out / "tables" / "results.md").read_text()
    assert f"| {GRAPH} | SGC[train.epochs=5] |" in table
    assert "nan" not in table
    page = (out / "report.html").read_text()
    assert "4 of 4 trainings have all their results" in page
    plots = {path.name for path in (out / "plots").glob("*.svg")}
    assert any("epistemic-confidence" in name for name in plots)
    assert all("nan" not in path.read_text() for path in (out / "plots").glob("*.svg"))


def test_the_model_of_the_page_is_accurate_in_other_processes_too(plugin, tmp_path):
    arguments = ["--models", "SGC,VGCN", "--experiment", "clean", "--splits", "1", "--inits", "1"]
    arguments += ["--datasets", "synthetic:nodes=600,classes=4,unseen_classes=0,features=16"]
    arguments += ["--plugin", str(plugin), "--processes", "2", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    accuracy = {
        path.parts[-3]: json.loads(path.read_text())["results"]["clean"]["accuracy"]
        for path in (tmp_path / "out" / "cells").rglob("*.json")
    }
    assert accuracy.keys() == {"SGC", "VGCN"}
    assert accuracy["SGC"] > accuracy["VGCN"] - 0.1
    assert accuracy["SGC"] > 0.6


@pytest.mark.ddp
def test_ranks_know_the_models_of_a_plugin(plugin, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "launch/evaluate.py", "--models", "SGC[train.epochs=2]"]
    command += ["--datasets", GRAPH, "--experiment", "clean", "--splits", "2", "--inits", "1"]
    command += ["--plugin", str(plugin), "--out", str(tmp_path / "out")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    repository = DOCUMENT.parents[1]
    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "cells").rglob("*.json"))) == 2


def test_a_plugin_that_fails_is_one_sentence(tmp_path, capsys):
    (tmp_path / "bad.py").write_text("import nothing_like_this\n")
    arguments = ["--plugin", str(tmp_path / "bad.py"), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "bad.py failed in line 1 (ModuleNotFoundError" in errors
    assert "--plugin FILE" in errors


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

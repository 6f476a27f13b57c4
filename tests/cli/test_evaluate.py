import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.cli.evaluate import main
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.measured_cells import (
    cells_to_csv,
    matrix_cells,
    read_cells,
    without_measured,
)
from tests.experiments.latex_source import check_table
from tests.page.browser import chromium, opened

SMALL = "synthetic:nodes=200,classes=4,unseen_classes=0,features=6"
QUICK = ["--datasets", SMALL, "--splits", "2", "--inits", "1", "--set", "train.epochs=2"]
QUICK += ["--left-out-classes", "1", "--fractions", "0.2,0.8"]
EVERYTHING = [*QUICK, "--experiment", "all,ablation"]
EVALUATE = Path(__file__).parents[2] / "launch" / "evaluate.py"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Tables of one call that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    assert main([*EVERYTHING, "--out", str(out)]) == 0
    return out / "tables"


def evaluation(*arguments, launcher=(sys.executable,)):
    """The command in a process group of its own."""
    command = [*map(str, launcher), str(EVALUATE), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def kill_when(process, out, results, delay):
    """SIGKILL to the process and all its children, soon after the matrix has so many results."""
    while process.poll() is None and len(list(out.rglob("split*.json"))) < results:
        time.sleep(0.01)
    time.sleep(delay)
    assert process.poll() is None, process.communicate()[0]
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_matrix_in_parts_killed_at_random_gives_the_same_tables(whole, tmp_path):
    few = [*QUICK, "--out", str(tmp_path), "--models", "GPN", "--experiment", "clean"]
    few[few.index("--splits") + 1] = "1"
    assert main(few) == 0
    rng = random.Random()
    for results in sorted(rng.sample(range(1, 13), 2)):
        process = evaluation(*EVERYTHING, "--out", tmp_path, "--processes", "2")
        kill_when(process, tmp_path, results, rng.uniform(0.0, 0.2))
    assert main([*EVERYTHING, "--out", str(tmp_path)]) == 0
    for name in ("results.csv", "results.md"):
        assert (tmp_path / "tables" / name).read_bytes() == (whole / name).read_bytes()
    assert latex_lines(tmp_path / "tables") == latex_lines(whole)
    assert (tmp_path / "report.html").read_bytes() == (whole.parent / "report.html").read_bytes()


def latex_lines(folder):
    """Lines of the LaTeX tables, without the comments that name command and matrix."""
    lines = (folder / "results.tex").read_text().splitlines()
    return [line for line in lines if not line.startswith("%")]


def share_the_cells(whole, tmp_path, *command):
    """Ranks that `command` starts on a part of the matrix: the same numbers as of one process."""
    arguments = [*QUICK, "--models", "GPN,GPN-minibatch"]
    arguments += ["--experiment", "clean,left-out-classes"]
    process = evaluation(*arguments, "--out", tmp_path, launcher=command)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0, output
    files = sorted((tmp_path / "cells").rglob("*.json"))
    assert len(files) == 8
    for path in files:
        alone = json.loads((whole.parent / path.relative_to(tmp_path)).read_text())["results"]
        for experiment, metrics in json.loads(path.read_text())["results"].items():
            assert metrics == alone[experiment]
    page = (tmp_path / "report.html").read_text()
    assert "8 of 8 trainings have all their results" in page
    return output


@pytest.mark.ddp
def test_ranks_of_torchrun_share_the_cells(whole, tmp_path):
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    output = share_the_cells(whole, tmp_path, sys.executable, *ranks)
    assert output.count("page: ") == 1


@pytest.mark.mpi
def test_ranks_of_mpi_share_the_cells(whole, tmp_path):
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec here")
    output = share_the_cells(whole, tmp_path, mpiexec, "-n", "2", sys.executable)
    assert output.count("computing rows") == 1  # by one of the ranks, for both


def test_tables_have_every_model_and_experiment(whole):
    text = (whole / "results.md").read_text()
    for model in ("GPN", "GPN-minibatch", "PostNet", "PostNet-Diff", "GPN-LOG-beta"):
        assert f"| {SMALL} | {model} |" in text
    for name in ("clean", "misclassification", "left-out-classes", "isolated", "edge-shift"):
        assert f"## {name}\n" in text
    assert "nan" not in text
    page = (whole.parent / "report.html").read_text()
    # Five models, with and without left-out classes, two splits.
    assert "20 of 20 trainings have all their results" in page
    assert "What is missing here" not in page


@pytest.mark.slow
def test_a_browser_shows_the_page_without_complaint(whole):
    with chromium() as browser, opened(browser, whole.parent / "report.html") as tab:
        assert tab.page.locator("#tip").count() == 1  # the page's own script has run


def test_what_is_missing_is_named_without_training(tmp_path, capsys):
    one = [*QUICK, "--models", "GPN", "--experiment", "clean", "--out", str(tmp_path)]
    assert main([*one, "--tables-only"]) == 0
    assert "2 of 2 trainings have missing results" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.safetensors"))
    fewer = list(one)
    fewer[fewer.index("--splits") + 1] = "1"
    assert main(fewer) == 0
    assert main([*one, "--experiment", "clean,isolated", "--tables-only"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "0 of 2 trainings have all their results" in page
    assert "split1_init1: isolated</li>" in page
    assert "split2_init1: clean, isolated</li>" in page
    assert "| GPN |" in (tmp_path / "tables" / "results.md").read_text()


def test_measured_cells_are_not_trained(tmp_path, capsys):
    measured, matrix = tmp_path / "measured", tmp_path / "matrix"
    measured.mkdir()
    cell = Cell(SMALL, "GPN", False, 1, 1)
    results = CellResult("", {"clean": {"accuracy": 0.5}})
    (measured / "any.csv").write_text(cells_to_csv({cell: results}, lambda *metric: True))
    one = [*QUICK, "--models", "GPN", "--experiment", "clean", "--out", str(matrix)]
    one += ["--measured", str(measured)]
    assert main(one) == 0
    said = capsys.readouterr()
    assert f"1 of 2 trainings are not needed: {measured}" in said.out + said.err
    trained = [path.stem for path in matrix.rglob("*.safetensors")]
    assert trained == ["split2_init1"]
    assert "1 of 1 trainings have all their results" in (matrix / "report.html").read_text()


def test_measured_cells_that_lack_an_experiment_are_trained(tmp_path):
    cell = Cell(SMALL, "GPN", False, 1, 1)
    results = CellResult("", {"clean": {"accuracy": 0.5}})
    (tmp_path / "any.csv").write_text(cells_to_csv({cell: results}, lambda *metric: True))
    wanted = partial(without_measured, measured=read_cells(tmp_path), fingerprint_of=str)
    assert wanted([cell], experiments=["clean"]) == []
    assert wanted([cell], experiments=["clean", "isolated"]) == [cell]
    assert wanted([cell._replace(split=2)], experiments=["clean"])


def test_measured_cells_of_another_configuration_are_trained(tmp_path):
    measured, matrix = tmp_path / "measured", tmp_path / "matrix"
    measured.mkdir()
    one = [*QUICK, "--models", "LP", "--experiment", "clean"]
    assert main([*one, "--out", str(matrix)]) == 0
    text = cells_to_csv(matrix_cells(matrix), lambda *metric: True)
    (measured / "any.csv").write_text(text)
    again = [*one, "--measured", str(measured), "--out", str(tmp_path / "again")]
    assert main(again) == 0
    assert not list((tmp_path / "again").rglob("*.safetensors"))
    assert main([*again, "--set", "diffusion.teleport=0.5"]) == 0
    assert len(list((tmp_path / "again").rglob("*.safetensors"))) == 2


def test_stored_cells_of_another_configuration_are_refused_although_measured(tmp_path, capsys):
    measured, matrix = tmp_path / "measured", tmp_path / "matrix"
    measured.mkdir()
    one = [*QUICK, "--models", "LP", "--experiment", "clean", "--out", str(matrix)]
    assert main(one) == 0
    cells = {cell: CellResult("", result.results) for cell, result in matrix_cells(matrix).items()}
    (measured / "any.csv").write_text(cells_to_csv(cells, lambda *metric: True))
    more = ["--set", "diffusion.teleport=0.5", "--measured", str(measured)]
    assert main([*one, *more]) == 2
    assert "was made with another configuration" in capsys.readouterr().err


def test_measured_cells_need_a_folder_of_tables(tmp_path, capsys):
    one = [*QUICK, "--models", "LP", "--experiment", "clean", "--out", str(tmp_path / "matrix")]
    assert main([*one, "--measured", str(tmp_path / "none")]) == 2
    assert "none is not a folder" in capsys.readouterr().err
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    assert main([*one, "--measured", str(tmp_path)]) == 2
    assert "expected dataset,model,class_set" in capsys.readouterr().err


def test_cells_of_another_version_are_refused(tmp_path, capsys):
    cell = Cell(SMALL, "GPN", False, 1, 1)
    path = tmp_path / "cells" / f"{cell.name}.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"version": "0.0.0", "fingerprint": "f", "results": {}}')
    arguments = [*QUICK, "--models", "GPN", "--experiment", "clean", "--out", str(tmp_path)]
    for more in ([], ["--tables-only"]):
        assert main([*arguments, *more]) == 2
        assert "was written by version 0.0.0" in capsys.readouterr().err


def test_finished_cells_of_another_setting_are_refused(tmp_path, capsys):
    few = [*QUICK, "--models", "LP,GPN", "--experiment", "clean", "--out", str(tmp_path)]
    assert main(few) == 0
    capsys.readouterr()
    assert main([*few, "--set", "train.epochs=3"]) == 2
    assert "was made with another configuration" in capsys.readouterr().err
    assert main([*few, "--set", "train.epochs=3", "--tables-only"]) == 0


def test_fractions_asked_for_later_join_the_others(tmp_path, capsys):
    few = [*QUICK, "--models", "LP", "--experiment", "feature-shift", "--out", str(tmp_path)]
    few[few.index("--fractions") + 1] = "0.2"
    assert main(few) == 0
    few[few.index("--fractions") + 1] = "0.5"
    assert main(few) == 0
    table = (tmp_path / "tables" / "results.csv").read_text()
    for fraction in ("0.20", "0.50"):
        assert table.count(f",accuracy@normal_{fraction},") == 1
    few = [text for text in few if text not in ("--fractions", "0.5")]
    assert main([*few, "--tables-only"]) == 0
    assert "missing results" not in capsys.readouterr().out


def test_what_a_graph_is_not_made_for_is_refused_before_any_training(tmp_path, capsys):
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 60, (2, 300))
    facts = {"edge_index": ends, "y": np.arange(60) % 3}
    np.savez(tmp_path / "bare.npz", **facts)
    weight = rng.random(300).astype(np.float32)
    features = rng.random((60, 4)).astype(np.float32)
    np.savez(tmp_path / "heavy.npz", **facts, x=features, edge_weight=weight)
    arguments = [
        "--splits",
        "1",
        "--inits",
        "1",
        "--set",
        "train.epochs=2",
        "--out",
        str(tmp_path / "o"),
    ]
    for data, more, message in (
        ("bare.npz", ["--models", "LP,VGCN", "--experiment", "clean"], "has no features"),
        ("bare.npz", ["--models", "LP,GPN", "--experiment", "clean"], "has no features"),
        ("bare.npz", ["--models", "LP", "--experiment", "isolated"], "has no features"),
        (
            "heavy.npz",
            ["--models", "LP", "--experiment", "clean,edge-shift"],
            "directed or weighted",
        ),
    ):
        assert main([*arguments, "--datasets", str(tmp_path / data), *more]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.rglob("split*"))


def test_chosen_metrics_are_those_of_the_markdown_and_latex_tables(tmp_path, capsys):
    few = [*QUICK, "--models", "LP,VGCN", "--experiment", "clean,misclassification"]
    file = tmp_path / "paper" / "tables.tex"
    more = ["--metrics", "ece,accuracy,auroc_aleatoric", "--latex", str(file)]
    assert main([*few, *more, "--out", str(tmp_path / "matrix")]) == 0
    assert "| graph | model | ece | accuracy |" in capsys.readouterr().out
    text = file.read_text()
    assert text.startswith("% gpn-evaluate --datasets ")
    assert f"% matrix: {tmp_path / 'matrix'}, where 4 of 4 trainings have" in text
    assert re.search(r"model & ECE .* & accuracy .* & .shortstack", text)
    check_table(text[text.index(r"\begin{table}") :])
    assert not (tmp_path / "matrix" / "tables" / "results.tex").exists()
    assert ",nll," in (tmp_path / "matrix" / "tables" / "results.csv").read_text()


def test_studies_are_models_with_one_field_changed(tmp_path):
    arguments = ["--experiment", "hyper-parameters", "--studies", "budget", "--models", "GPN"]
    assert main([*QUICK, *arguments, "--splits", "1", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "tables" / "results.md").read_text()
    for value in ("latent", "latent_classes"):
        assert f"| GPN[evidence.budget={value}] |" in text
    assert list((tmp_path / "plots").glob("study-*-evidence-budget.svg"))
    assert "Hyper-parameters" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment", "cleen"], "experiments got 'cleen', expected names among clean"),
        (
            ["--experiment", "hyper-parameters", "--studies", "hidden"],
            "studies got 'hidden', expected names among latent",
        ),
        (
            ["--experiment", "hyper-parameters", "--models", "GPN[train.epochs=1]"],
            "hyper-parameter studies take models without brackets",
        ),
        (["--models", "GPT"], "models got 'GPT', expected names among GPN"),
        (["--models", "GPN[train.epochs=1"], "expected NAME[section.field=value;...]"),
        (["--models", "GPN[train.epochs]"], "expected NAME[section.field=value;...]"),
        (["--models", "GPN[train.epoch=1]"], "has no field 'train.epoch'"),
        (["--fractions", "0,0.5"], "shift fraction is 0.0"),
        (["--fractions", "half"], "fractions got 'half', expected numbers"),
        (["--splits", "0"], "got 0 splits"),
        (["--datasets", ","], "datasets is empty, expected at least one"),
        (["--models", "VGCN-Energy[model.temperature=inf]"], "is inf, expected a finite number"),
        (["--processes", "0"], "processes is 0, expected at least 1"),
        (["--left-out-classes", "3"], "cannot leave out 3 of 4 classes"),
        (["--left-out-classes", "paper"], "the paper leaves out classes only in"),
        (["--metrics", "acuracy"], "metrics got 'acuracy', which none of the experiments clean,"),
        (["--latex", "."], "--latex is ., which is a folder"),
        (["--paper", "nowhere"], "clean_and_left_out_classes.csv is missing"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, capsys, arguments, message):
    assert main([*QUICK, "--out", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("error:") == 1


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--experiment", "cleen"], "--experiment NAME[,NAME]"),
        (["--models", "GPT"], "--models A,B"),
        (["--studies", "hidden", "--experiment", "hyper-parameters"], "--studies A,B"),
        (["--fractions", "half"], "--fractions A,B"),
        (["--metrics", "acuracy"], "--metrics A,B"),
        (["--splits", "0"], "--splits N, --inits M"),
        (["--processes", "0", "--tables-only"], "--processes P"),
        (["--models", "VGCN-Energy[model.temperature=0]"], "--set model.temperature=VALUE"),
    ],
)
def test_messages_end_with_the_flags_to_change(tmp_path, capsys, arguments, flag):
    assert main([*QUICK, "--out", str(tmp_path), *arguments]) == 2
    assert f"(on the command line: {flag})" in capsys.readouterr().err


def test_a_dataset_that_is_a_path_writes_nothing_outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graphs" / "deep").mkdir(parents=True)
    write_npz(load_graph(SMALL), tmp_path / "graphs" / "deep" / "mine.npz")
    before = set((tmp_path / "graphs").rglob("*"))
    arguments = ["--experiment", "clean", "--splits", "1"]
    arguments += ["--inits", "1", "--set", "train.epochs=2", "--models", "GPN,GPN-minibatch"]
    path = "graphs/deep/mine.npz"
    arguments += ["--datasets", f"{path},./graphs/../{path},{tmp_path / path}"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert set((tmp_path / "graphs").rglob("*")) == before
    assert {path.name for path in tmp_path.iterdir()} == {"graphs", "out"}
    assert len(list((tmp_path / "out" / "cells").glob("*/*/all_classes/*.json"))) == 6
    assert len(list((tmp_path / "out" / "stores").glob("*/manifest.json"))) == 3

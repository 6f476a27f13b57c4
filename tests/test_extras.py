"""Without the packages of an extra, commands do the rest, or refuse in one sentence."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gpn_scale import GPNClassifier, load_graph
from gpn_scale.cli.evaluate import main as evaluate
from gpn_scale.cli.report import main as report
from gpn_scale.cli.serve import main as serve
from gpn_scale.cli.train import main as train
from gpn_scale.data.splits import stratified_split
from gpn_scale.errors import MissingExtraError
from gpn_scale.extras import EXTRAS, check_extra

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
SMALL = "synthetic:nodes=200,classes=3,features=8,separation=4"
OTHER_NAMES = {"vl_convert": "vl-convert-python"}
"""Names of distributions that differ from those of their packages."""
DEVELOPMENT = {"accelerate", "all", "dev", "docs", "fuzz", "gallery"}
"""Extras that no command asks for: they speed up, join others, or are for developers."""


def hide(monkeypatch, extra):
    """Let imports of the packages of an extra fail, as if they were not installed."""
    for package in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run that was trained without charts."""
    folder = tmp_path_factory.mktemp("extras") / "run"
    with pytest.MonkeyPatch.context() as patch:
        hide(patch, "charts")
        assert train(["--dataset", SMALL, "--epochs", "1", "--out", str(folder)]) == 0
    return folder


def requirement(text):
    return text.partition(">")[0].partition("[")[0]


def test_every_extra_is_checked_for_what_it_installs():
    declared = PROJECT["optional-dependencies"]
    assert set(declared) - DEVELOPMENT == set(EXTRAS)
    for extra, packages in EXTRAS.items():
        names = {OTHER_NAMES.get(each, each.replace("_", "-")) for each in packages}
        assert {requirement(each) for each in declared[extra]} == names


def test_all_holds_every_extra_of_users():
    [line] = PROJECT["optional-dependencies"]["all"]
    assert set(line.removeprefix("gpn-scale[").removesuffix("]").split(",")) == set(EXTRAS)


def test_no_package_of_an_extra_is_required_by_the_core():
    core = {requirement(each) for each in PROJECT["dependencies"]}
    for packages in EXTRAS.values():
        assert not core & {OTHER_NAMES.get(each, each) for each in packages}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_package_is_one_sentence_that_names_the_extra(monkeypatch, extra):
    check_extra(extra, "this")
    hide(monkeypatch, extra)
    with pytest.raises(MissingExtraError) as error:
        check_extra(extra, "this")
    assert isinstance(error.value, ImportError)
    assert str(error.value).startswith(f"this needs the package {EXTRAS[extra][0]}, which cannot")
    assert str(error.value).endswith(f": run pip install 'gpn-scale[{extra}]'")


def assert_refused(capsys, code, extra):
    errors = capsys.readouterr().err
    assert code == 2
    assert errors.startswith("error: ")
    assert errors.endswith(f": run pip install 'gpn-scale[{extra}]'\n")
    assert errors.count("\n") == 1


def test_a_page_is_refused_without_charts(monkeypatch, capsys, run):
    hide(monkeypatch, "charts")
    assert_refused(capsys, report(["--run", str(run)]), "charts")
    assert not (run / "report.html").exists()


def test_a_comparison_needs_no_charts_but_for_its_page(monkeypatch, capsys, run, tmp_path):
    hide(monkeypatch, "charts")
    assert report(["--compare", str(run), str(run)]) == 0
    assert "gpn-scale[charts]" not in capsys.readouterr().err
    assert report(["--compare", str(run), str(run), "--out", str(tmp_path / "drift")]) == 0
    printed = capsys.readouterr()
    assert f"{tmp_path / 'drift' / 'drift.html'} is not written, since a page needs" in printed.err
    assert {path.name for path in (tmp_path / "drift").iterdir()} == {"drift.json", "drift.csv"}


def test_a_matrix_needs_no_charts_but_for_its_page(monkeypatch, capsys, tmp_path):
    hide(monkeypatch, "charts")
    request = ["--experiment", "clean", "--datasets", SMALL, "--models", "LP", "--splits", "1"]
    request += ["--inits", "1", "--out", str(tmp_path / "matrix")]
    assert_refused(capsys, evaluate([*request, "--png"]), "charts")
    assert not (tmp_path / "matrix" / "tables").exists()
    assert evaluate(request) == 0
    printed = capsys.readouterr()
    assert "report.html is not written, since a page needs" in printed.err
    assert "page:" not in printed.out
    assert (tmp_path / "matrix" / "tables" / "results.md").exists()
    assert not (tmp_path / "matrix" / "report.html").exists()


def test_a_classifier_reports_without_charts_and_warns(monkeypatch, run, tmp_path):
    hide(monkeypatch, "charts")
    classifier = GPNClassifier.load(run / "model.safetensors")
    graph = stratified_split(load_graph(SMALL), train=0.2, val=0.2, rng_seed=1)
    with pytest.warns(RuntimeWarning, match=r"report.html is not written, .*gpn-scale\[charts\]"):
        classifier.report(graph, tmp_path / "report")
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {"report.json", "report.md"}


def test_the_service_is_refused_without_its_packages(monkeypatch, capsys, run):
    hide(monkeypatch, "serve")
    assert_refused(capsys, serve(["--run", str(run)]), "serve")


def test_a_gaussian_process_is_refused_without_its_package(monkeypatch, capsys, tmp_path):
    hide(monkeypatch, "gp")
    request = ["--experiment", "clean", "--datasets", SMALL, "--models", "GGP", "--splits", "1"]
    assert evaluate([*request, "--inits", "1", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("pip install 'gpn-scale[gp]'")


ALONE = f"""
import pkgutil, sys
from importlib import import_module
for package in {sorted({each for packages in EXTRAS.values() for each in packages})!r}:
    sys.modules[package] = None
sys.modules["markupsafe"] = sys.modules["starlette"] = sys.modules["pydantic"] = None
import gpn_scale, gpn_scale.cli, precompute.cli
for name in gpn_scale.__all__:
    getattr(gpn_scale, name)
for module in pkgutil.iter_modules(gpn_scale.cli.__path__):
    import_module(f"gpn_scale.cli.{{module.name}}")
from gpn_scale.cli.train import main
sys.exit(main(["--dataset", {SMALL!r}, "--epochs", "1", "--threads", "1", "--out", sys.argv[1]]))
"""
"""Imports everything that users do, and trains, without any package of an extra."""


def test_the_core_trains_without_any_extra(tmp_path):
    command = [sys.executable, "-W", "error", "-c", ALONE, str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    for name, extra in (("tensorboard", "tensorboard"), ("report.html", "charts")):
        [line] = [each for each in ended.stderr.splitlines() if f"gpn-scale[{extra}]" in each]
        assert line.startswith(f"{tmp_path / 'run' / name} is not written, since ")
        assert not (tmp_path / "run" / name).exists()
        assert f"run/{name}" not in ended.stdout
    assert (tmp_path / "run" / "report.md").exists()
    assert (tmp_path / "run" / "report.json").exists()

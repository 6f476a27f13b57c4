"""Every benchmark can be imported, and none of its defaults needs data that must be prepared."""

import ast
import importlib
from pathlib import Path

import pytest

from gpn_scale.data.datasets import DATASET_NAMES

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = sorted((REPOSITORY / "benchmarks").glob("*.py"))


def calls_of(path, name):
    """Calls of the method `name` in a script, such as `parser.add_argument(...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == name:
            yield node


def arguments_of(path):
    """Name of each argument of a script, and its keyword arguments as source text."""
    for call in calls_of(path, "add_argument"):
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        yield ast.literal_eval(call.args[0]), keywords


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_can_be_imported_and_says_what_it_asks(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))
    module = importlib.import_module(path.stem)
    assert module.__doc__.splitlines()[0].endswith(("?", "."))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_no_default_needs_a_file_outside_the_repository(path):
    for name, keywords in arguments_of(path):
        default = keywords.get("default", "None")
        if "dataset" in name:
            generated = default.strip("'\"").startswith("synthetic")
            assert generated or default == "None", f"{name} of {path.name} has a default dataset"
        words = set(default.replace("'", ",").replace('"', ",").split(","))
        assert not words & {*DATASET_NAMES, "ogbn-arxiv-sim"}, f"{name} of {path.name}: {default}"
        if default.startswith("Path("):
            location = Path(ast.literal_eval(ast.parse(default).body[0].value.args[0]))
            assert not location.is_absolute(), f"{name} of {path.name}: {default}"
            assert ".." not in location.parts, f"{name} of {path.name}: {default}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_that_reads_data_asks_which(path):
    arguments = dict(arguments_of(path))
    if "--data-dir" in arguments:
        asks = {"--dataset", "--datasets", "models"} & arguments.keys()
        assert asks, f"{path.name} has --data-dir, but no argument for the dataset"


def test_the_arguments_of_this_test_are_found(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("parser.add_argument('--dataset', default='CoraML', help='a')\n")
    assert dict(arguments_of(script)) == {"--dataset": {"default": "'CoraML'", "help": "'a'"}}

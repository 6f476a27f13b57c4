"""Models from files and from installed packages."""

import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.errors import ConfigError
from gpn_scale.models import plugins
from gpn_scale.models.plugins import load_installed_models, load_plugins
from gpn_scale.models.registry import MODELS, model_names, register
from gpn_scale.models.spec import BaselineSpec

BY_FUNCTION = """
def register(models):
    models["Mine"] = models["APPNP"]
"""
BY_CALL = """
from gpn_scale.models.registry import MODELS, register

register("Mine", MODELS["APPNP"])
register("Mine+too", MODELS["APPNP"])
"""
BY_ENTRY = """
from gpn_scale.models.registry import MODELS

MODELS["Mine"] = MODELS["APPNP"]
"""


@pytest.fixture(autouse=True)
def registry_as_before():
    before = dict(MODELS)
    yield
    MODELS.clear()
    MODELS.update(before)
    load_installed_models.cache_clear()


def plugin(folder, text, name="my_model.py"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [(BY_FUNCTION, ("Mine",)), (BY_CALL, ("Mine", "Mine+too")), (BY_ENTRY, ("Mine",))],
)
def test_a_file_registers_models_in_three_styles(tmp_path, text, names):
    path = plugin(tmp_path, text)
    assert load_plugins([path]) == names
    assert tuple(model_names()[-len(names) :]) == names
    assert MODELS["Mine"] is MODELS["APPNP"]
    assert load_plugins([path]) == names, "a second time does nothing"
    assert load_plugins([str(path), path]) == names * 2


def test_a_file_whose_models_have_left_is_run_again(tmp_path):
    path = plugin(tmp_path, BY_FUNCTION)
    load_plugins([path])
    del MODELS["Mine"]
    assert load_plugins([path]) == ("Mine",)


def test_classes_of_a_file_know_their_module(tmp_path):
    text = "from gpn_scale.baselines.appnp import APPNP\n\nclass Other(APPNP):\n    pass\n"
    text += "\nfrom gpn_scale.models.spec import BaselineSpec\n"
    text += "def register(models):\n    models['Other'] = BaselineSpec(Other)\n"
    load_plugins([plugin(tmp_path, text, "other.py")])
    kind = MODELS["Other"].model
    assert getattr(sys.modules[kind.__module__], kind.__name__) is kind


FAULTS = [
    ("x = 1\n", "does not register a model, expected a function register"),
    ("def register(models):\n    pass\n", "does not register a model"),
    ("1 / 0\n", r"failed in line 1 \(ZeroDivisionError: division by zero\)"),
    ("x = 1\nimport no_such_module_here\n", r"failed in line 2 \(ModuleNotFoundError"),
    ("x = 1\nx = = 2\n", r"failed in line 2 \(SyntaxError"),
    ("def register(models):\n    models['A'] = models['nothing']\n", r"in line 2 \(KeyError"),
    ("def register():\n    pass\n", r"failed \(TypeError: register\(\) takes 0"),
    ("register = 5\n", r"failed \(TypeError: 'int' object is not callable"),
    ("import sys\nsys.exit(3)\n", r"failed in line 2 \(SystemExit: 3\)"),
    ("raise ValueError('two\\nlines')\n", r"\(ValueError: two lines\)"),
    ("def register(models):\n    models['GPN'] = models['LP']\n", "'GPN' is already registered"),
    (
        "def register(models):\n    models.pop('LP')\n",
        "a plug-in removes the model 'LP', expected it",
    ),
    (BY_ENTRY.replace('"Mine"', '"GPN"'), "replaces the model 'GPN', expected new names only"),
    (BY_CALL.replace("Mine+too", "Mine"), "'Mine' is already registered"),
    (BY_FUNCTION.replace("Mine", "a,b"), "the model name is 'a,b', expected letters"),
    (BY_FUNCTION.replace("Mine", "../mine"), "the model name is '../mine', expected letters"),
    ("def register(models):\n    models['A'] = 3\n", "'A' is registered with int, expected an"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS)
def test_faults_give_one_sentence_and_leave_the_registry_alone(tmp_path, text, message):
    before = dict(MODELS)
    path = plugin(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_plugins([path])
    assert str(caught.value).startswith(f"the plug-in {path} ")
    assert "\n" not in str(caught.value)
    assert caught.value.arguments == ("plugins",)
    assert before == MODELS


@pytest.mark.parametrize("name", ["none.py", "folder.py", "text.txt"])
def test_what_is_no_python_file_is_refused(tmp_path, name):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "text.txt").write_text(BY_FUNCTION)
    with pytest.raises(ConfigError, match="is not a Python file, expected an existing file") as why:
        load_plugins([tmp_path / name])
    assert why.value.arguments == ("plugins",)


def test_names_of_two_files_must_differ(tmp_path):
    load_plugins([plugin(tmp_path, BY_FUNCTION, "a.py")])
    with pytest.raises(ConfigError, match=r"b\.py failed: a model 'Mine' is already registered"):
        load_plugins([plugin(tmp_path, BY_FUNCTION, "b.py")])


def test_registering_needs_a_new_name_and_an_entry():
    register("Mine", BaselineSpec(APPNP))
    with pytest.raises(ConfigError, match="'Mine' is already registered"):
        register("Mine", BaselineSpec(APPNP))


def offer(models):
    models["Offered"] = models["APPNP"]


def offer_badly(models):
    models["GPN"] = models["APPNP"]


def test_installed_packages_offer_models(monkeypatch):
    module = SimpleNamespace(offer=offer)
    monkeypatch.setitem(sys.modules, "offering_package", module)
    point = EntryPoint("any", "offering_package:offer", "gpn_scale.models")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    load_installed_models.cache_clear()
    assert load_installed_models() == ("Offered",)
    assert "Offered" in model_names()


def test_a_package_that_fails_is_a_warning_and_the_others_count(monkeypatch):
    module = SimpleNamespace(offer=offer, bad=offer_badly)
    monkeypatch.setitem(sys.modules, "offering_package", module)
    names = ("missing_package:offer", "offering_package:bad", "offering_package:offer")
    points = [EntryPoint("any", value, "gpn_scale.models") for value in names]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    load_installed_models.cache_clear()
    with pytest.warns(RuntimeWarning) as caught:
        assert load_installed_models() == ("Offered",)
    first, second = (str(warning.message) for warning in caught)
    assert "missing_package:offer" in first
    assert "ModuleNotFoundError" in first
    assert "'GPN' is already registered" in second
    assert second.endswith("its models are left out")

"""The examples in docstrings give what they say, and every public name has one."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

from gpn_scale.classifier import AbstractClassifier
from gpn_scale.estimator import GPNClassifier
from gpn_scale.predictor import AbstractPredictor

REPOSITORY = Path(__file__).parents[1]
PUBLIC = (
    "gpn_scale",
    "gpn_scale/data",
    "gpn_scale/diffusion",
    "gpn_scale/drift",
    "gpn_scale/evaluation",
    "gpn_scale/inference",
    "gpn_scale/interop",
    "gpn_scale/models",
    "gpn_scale/nn",
    "gpn_scale/ppr",
    "gpn_scale/triage",
    "precompute",
)
"""Packages whose classes and functions all have an example; each without its subpackages."""
MODULES = sorted(
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    for package in ("gpn_scale", "precompute")
    for path in (REPOSITORY / package).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


def public_definitions(body):
    kinds = ast.ClassDef | ast.FunctionDef
    return [node for node in body if isinstance(node, kinds) and not node.name.startswith("_")]


def has_example(definition):
    """Whether the docstring of a class, of one of its public methods, or of a function has one."""
    if doctest.DocTestParser().get_examples(ast.get_docstring(definition) or ""):
        return True
    is_class = isinstance(definition, ast.ClassDef)
    return is_class and any(map(has_example, public_definitions(definition.body)))


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_class_and_function_has_an_example(package):
    paths = sorted((REPOSITORY / package).glob("*.py"))
    names = {
        f"{path.name}: {definition.name}": has_example(definition)
        for path in paths
        for definition in public_definitions(ast.parse(path.read_text(encoding="utf-8")).body)
    }
    assert names
    assert not [name for name, has_one in names.items() if not has_one]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f():\n    """Text."""', False),
        ('def f():\n    """Text.\n\n    >>> f()\n    """', True),
        ('def f():\n    def g():\n        """Text.\n\n        >>> g()\n        """', False),
        ('class A:\n    def f(self):\n        """Text.\n\n        >>> f()\n        """', True),
        ('class A:\n    def _f(self):\n        """Text.\n\n        >>> f()\n        """', False),
        ("class A:\n    pass", False),
    ],
)
def test_where_an_example_counts(source, expected):
    assert has_example(ast.parse(source).body[0]) is expected


def test_the_example_of_the_classifier_shows_every_method():
    methods = {
        name
        for owner in (GPNClassifier, AbstractClassifier, AbstractPredictor)
        for name in vars(owner)
        if not name.startswith("_")
    }
    methods = {name for name in methods if callable(getattr(GPNClassifier, name))}
    assert {"fit", "trainers", "calibrate", "predict", "load"} <= methods
    assert not {name for name in methods if f".{name}(" not in GPNClassifier.__doc__}

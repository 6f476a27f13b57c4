"""The examples in docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    for path in (REPOSITORY / "gpn_scale").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0

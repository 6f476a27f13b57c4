import importlib
import re

from api_pages import PACKAGES, api_pages, public_modules

import gpn_scale
from tests.docs import REPOSITORY
from tests.test_examples import PUBLIC


def test_the_packages_are_those_that_are_held_to_examples():
    assert set(PACKAGES) == set(PUBLIC)


def test_every_public_module_has_its_block_once():
    pages = api_pages(REPOSITORY)
    blocks = re.findall(r"^::: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    assert len(blocks) == len(set(blocks))
    assert {"gpn_scale.estimator", "gpn_scale.data.graph", "precompute.update"} <= set(blocks)
    assert not [name for name in blocks if name.split(".")[-1].startswith("_")]
    assert not [name for name in blocks if name.startswith(("gpn_scale.cli", "gpn_scale.page"))]


def test_what_most_programs_need_stands_first():
    assert public_modules(REPOSITORY, "gpn_scale")[:2] == [
        "gpn_scale.estimator",
        "gpn_scale.sklearn",
    ]


def test_the_list_names_all_packages_and_offered_names():
    index = api_pages(REPOSITORY)["api/index.md"]
    for package in PACKAGES:
        name = package.replace("/", ".")
        assert f"({name}.md)" in index
    offered = set(gpn_scale.__all__) - {"__version__", "recipes"}
    assert set(re.findall(r"^\| `(\w+)` \|", index, re.MULTILINE)) == offered
    for module, name in re.findall(r"#([\w.]+)\.(\w+)\)", index):
        assert hasattr(importlib.import_module(module), name)

"""Sizes of an installation, over packages that the test makes up."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[1]
NAMES = "abcdef"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "benchmarks"))
        return importlib.import_module("install_size")


def install(folder, name, size, needs=()):
    """Write a distribution of `size` bytes that requires others."""
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (folder / f"{name}.py").write_bytes(b"#" * size)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    (facts / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {n}" for n in needs)]))
    (facts / "RECORD").write_text(f"{name}.py,,\n{name}_gone.py,,\n")


def test_files_of_distributions_are_added_up(script, tmp_path):
    install(tmp_path, "a", 12, ["B-C>=1", 'd; python_version < "3"'])
    install(tmp_path, "b_c", 5, ['d; extra == "fast"'])
    install(tmp_path, "d", 7)
    installed = script.environment(tmp_path)
    assert {name: each.size for name, each in installed.items()} == {"a": 12, "b-c": 5, "d": 7}
    assert script.brought_by([Requirement("A")], installed) == {"a", "b-c"}
    assert script.brought_by([Requirement("b.c[fast]")], installed) == {"b-c", "d"}
    assert script.brought_by([Requirement("missing")], installed) == set()


def reached_by_walking(start, edges):
    """Names that lead from `start`, found by repeating until nothing is added."""
    names = set(start)
    while more := {b for a, b in edges if a in names} - names:
        names |= more
    return names


@given(
    edges=st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))),
    start=st.sets(st.sampled_from(NAMES)),
)
def test_what_a_requirement_brings_is_what_can_be_reached(script, edges, start):
    installed = {
        name: script.Installed("1.0", 1, tuple(Requirement(b) for a, b in edges if a == name))
        for name in NAMES
    }
    brought = script.brought_by(map(Requirement, sorted(start)), installed)
    assert brought == reached_by_walking(start, edges)


def test_tables_show_itself_what_it_brings_and_what_it_brings_alone(script, tmp_path):
    install(tmp_path, "a", 30_000_000, ["c"])
    install(tmp_path, "b", 2_000_000, ["c"])
    install(tmp_path, "c", 500_000)
    install(tmp_path, "x", 1_000_000, ["a"])
    installed, core = script.environment(tmp_path), [Requirement("b"), Requirement("a")]
    lines = script.core_table(core, installed).splitlines()
    assert lines[2:] == [
        "| a | 1.0 | 30 MB | 30 MB | 30 MB |",
        "| b | 1.0 | 2.0 MB | 2.5 MB | 2.0 MB |",
        "| **all** | 3 packages | | 32 MB | |",
    ]
    extras = {"more": [Requirement("x")], "other": [Requirement("y")]}
    lines = script.extras_table(core, extras, installed).splitlines()
    assert lines[2:] == ["| `more` | x | 1.0 MB |", "| `other` | y | not installed |"]


def test_extras_of_the_project_are_resolved(script):
    extras = {"one": ["a>=1"], "two": ["b", "gpn-scale[one]"], "all": ["gpn-scale[one,two]"]}
    names = [each.name for each in script.resolved(extras["all"], extras)]
    assert sorted(names) == ["a", "b"]


def test_tables_are_put_into_the_page(script, tmp_path):
    install(tmp_path, "torch", 10_000_000)
    page = tmp_path / "page.md"
    names = ("install-core", "install-extras")
    page.write_text("".join(f"<!-- {n} begin -->\nold\n<!-- {n} end -->\n" for n in names))
    lines = []
    script.main(["--site-packages", str(tmp_path), "--write", str(page)], say=lines.append)
    assert lines == [f"1 packages -> {page}"]
    assert "| torch | 1.0 | 10 MB | 10 MB | 10 MB |" in page.read_text()
    assert "old" not in page.read_text()


def test_the_page_of_the_repository_has_both_tables():
    text = (REPOSITORY / "docs" / "install.md").read_text(encoding="utf-8")
    assert "| torch | 2." in text
    assert "| `all` | " in text

"""The files around the code agree with each other: versions, workflows, templates, citation."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpn_scale import __version__

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((REPOSITORY / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TEXTS = [REPOSITORY / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
WITH_THE_SITE = {"docs", "gallery"}
"""Targets of the documentation site, which may be absent together with it."""
UNTRIED = {"torch"}
"""Requirements whose oldest version could not be tried, since no build for CPUs exists."""


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(workflow):
    """Lines that the steps of a workflow run."""
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").splitlines()


def targets_of(text):
    """Targets of a Makefile that are names, not files."""
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def make_targets(line):
    """Targets that a command line calls."""
    words = shlex.split(line)
    return [word for word in words[1:] if "=" not in word] if words[:1] == ["make"] else []


MAKEFILE = targets_of((REPOSITORY / "Makefile").read_text())
LINES = [line for path in WORKFLOWS for line in commands(read_yaml(path))]
CALLED = sorted({target for line in LINES for target in make_targets(line)})


def test_targets_and_calls_are_read():
    assert targets_of("a := b\nall: x\n\trun: y\nx-y: all\n") == {"all", "x-y"}
    assert make_targets("make check RUNS=3") == ["check"]
    assert make_targets("bash .ci/run") == []


def test_workflows_run_what_the_project_runs_itself():
    assert "bash .ci/run" in LINES
    assert all(line == "bash .ci/run" or make_targets(line) for line in LINES)
    assert {"test-oldest", "wheel-test", "docs", "gallery"} <= set(CALLED)


@pytest.mark.parametrize("target", CALLED)
def test_workflows_call_targets_that_exist(target):
    if target in WITH_THE_SITE - MAKEFILE:
        pytest.skip("the documentation site is not part of this tree")
    assert target in MAKEFILE


def test_workflows_try_every_python_that_the_project_names():
    job = read_yaml(REPOSITORY / ".github" / "workflows" / "ci.yml")["jobs"]["newest"]
    versions = job["strategy"]["matrix"]["python"]
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert versions == named
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_the_make_help_names_every_target():
    text = (REPOSITORY / "Makefile").read_text()
    shown = set(re.findall(r'@echo "make ([a-z-]+)', text))
    assert shown == MAKEFILE - {"help", "install"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_what_the_format_asks_for(path):
    form = read_yaml(path)
    if path.stem == "config":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert {"name", "description", "body"} <= set(form)
    inputs = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in inputs]
    assert ids
    assert len(ids) == len(set(ids))
    assert all(field["attributes"]["label"] for field in inputs)


def test_the_first_release_of_the_changelog_is_this_version():
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert releases[0] == __version__
    assert releases == sorted(releases, key=Version, reverse=True)


def test_the_citation_is_of_this_version():
    citation = read_yaml(REPOSITORY / "CITATION.cff")
    assert str(citation["version"]) == __version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": "The gpn_scale developers"}]
    [paper] = citation["references"]
    assert paper["url"] == PROJECT["urls"]["Paper"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_links_of_the_texts_around_the_code_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith("http")]
    assert not [link for link in local if not (path.parent / link).exists()]


def pins(name):
    lines = (REPOSITORY / name).read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): next(iter(each.specifier)) for each in requirements}


def declared():
    """Requirements of the core and of the extras for users."""
    extras = PROJECT["optional-dependencies"]
    [every] = map(Requirement, extras["all"])
    texts = [*PROJECT["dependencies"], *(text for name in every.extras for text in extras[name])]
    return {canonicalize_name(each.name): each.specifier for each in map(Requirement, texts)}


def test_the_oldest_versions_are_the_lower_bounds():
    oldest = pins("constraints-oldest.txt")
    for name, specifier in declared().items():
        pinned = Version(oldest[name].version)
        assert pinned in specifier, name
        if name not in UNTRIED:
            [least] = [each.version for each in specifier if each.operator == ">="]
            release = (*Version(least).release, 0, 0)[: len(pinned.release)]
            assert pinned.release == release, f"{name}: {pinned} was tried, {least} is admitted"


def test_the_newest_versions_fit_the_project():
    newest = pins("constraints.txt")
    for name, specifier in declared().items():
        assert newest[name].operator == "=="
        assert newest[name].version in specifier, name

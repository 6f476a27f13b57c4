"""The steps of the Dockerfile name files, extras and options that exist."""

import fnmatch
import json
import re
import tomllib
from pathlib import Path

import pytest

from gpn_scale.cli.serve import serve_parser
from gpn_scale.messages import FORMAT_VARIABLE, FORMATS

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def steps():
    """Instructions of the Dockerfile with their arguments, continued lines joined."""
    text = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], " ".join(line.split()[1:])) for line in lines]


def of_kind(steps, kind):
    return [rest for name, rest in steps if name == kind]


def test_copied_files_exist_and_are_not_ignored(steps):
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    for rest in of_kind(steps, "COPY"):
        if not rest.startswith("--from"):
            for name in rest.split()[:-1]:
                assert (REPOSITORY / name).exists(), name
                assert any(fnmatch.fnmatch(name, each) for each in allowed), name
    for name in allowed:
        assert (REPOSITORY / name).exists(), name


def test_what_the_wheel_needs_is_copied(steps):
    first = " ".join(of_kind(steps, "COPY"))
    for name in ("pyproject.toml", PROJECT["readme"], "gpn_scale", "precompute"):
        assert name in first


def test_the_wheel_is_installed_with_existing_extras_and_pinned_versions(steps):
    installs = [rest for rest in of_kind(steps, "RUN") if "pip install" in rest]
    assert len(installs) == 1
    name, extras = re.search(r"\"([\w-]+)\[([\w,]+)\] @ file://", installs[0]).groups()
    assert name == PROJECT["name"]
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert "constraints.txt" in installs[0]


def test_versions_of_python_fit(steps):
    images = [rest.split()[0] for rest in of_kind(steps, "FROM")]
    assert len(set(images)) == 1
    version = re.fullmatch(r"python:3\.(\d+)-slim", images[0])
    least = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])
    assert int(version[1]) >= int(least[1])


def test_the_command_exists_and_its_options_can_be_parsed(steps):
    [entry], [arguments] = of_kind(steps, "ENTRYPOINT"), of_kind(steps, "CMD")
    [command] = json.loads(entry)
    assert command in PROJECT["scripts"]
    options = serve_parser().parse_args(json.loads(arguments))
    assert options.token_file is not None
    assert str(options.port) in of_kind(steps, "EXPOSE")


def test_the_service_is_no_root_and_has_a_health_check(steps):
    names = [name for name, _ in steps]
    assert names.index("USER") < names.index("ENTRYPOINT")
    [user] = of_kind(steps, "USER")  # by number, so that an orchestrator sees that it is not root
    assert any(f"--uid {user} service" in run for run in of_kind(steps, "RUN"))
    [check] = of_kind(steps, "HEALTHCHECK")
    assert "/health" in check


def test_the_environment_is_known(steps):
    [values] = of_kind(steps, "ENV")
    pairs = dict(pair.split("=") for pair in values.split())
    assert pairs[FORMAT_VARIABLE] in FORMATS

"""The wheel holds the packages and their files, and nothing else; `make wheel-test` installs it."""

import tomllib
from email import message_from_bytes
from importlib import import_module
from zipfile import ZipFile

import pytest

from gpn_scale import __version__
from tests.wheel.building import REPOSITORY, built, copied_sources

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PACKAGES = {"gpn_scale", "precompute"}
NO_CODE = {".css", ".html", ".js", ".svg", ".typed"}
"""Suffixes of the files of the packages that are no Python code."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    return ZipFile(built("wheel", copied_sources(folder), folder / "dist"))


def expected_files():
    """Paths of the files of both packages in the repository, without what Python makes itself."""
    paths = (path for name in PACKAGES for path in (REPOSITORY / name).rglob("*"))
    kept = (path for path in paths if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(REPOSITORY).as_posix() for path in kept}


def test_the_wheel_holds_every_file_of_both_packages_and_nothing_else(wheel):
    facts = f"gpn_scale-{__version__}.dist-info"
    names = {name for name in wheel.namelist() if not name.startswith(facts)}
    assert names == expected_files()
    for kind in NO_CODE:
        assert any(name.endswith(kind) for name in names), kind
    assert {name.partition("/")[0] for name in names} == PACKAGES


def test_the_wheel_names_version_licence_and_extras(wheel):
    facts = f"gpn_scale-{__version__}.dist-info"
    metadata = message_from_bytes(wheel.read(f"{facts}/METADATA"))
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra")) == PROJECT["optional-dependencies"].keys()
    assert f"{facts}/licenses/LICENSE" in wheel.namelist()


@pytest.mark.parametrize("script", PROJECT["scripts"])
def test_every_console_script_names_a_function(wheel, script):
    place = PROJECT["scripts"][script]
    facts = wheel.read(f"gpn_scale-{__version__}.dist-info/entry_points.txt").decode()
    assert f"{script} = {place}" in facts.splitlines()
    module, _, function = place.partition(":")
    assert callable(getattr(import_module(module), function))

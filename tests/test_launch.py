"""Scripts in launch/ and console scripts start the commands."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
SCRIPTS = sorted((REPOSITORY / "launch").glob("*.py"))
COMMANDS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_explains_its_options(script):
    done = subprocess.run(
        [sys.executable, str(script), "--help"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"usage: {script.name}")
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_console_script_is_a_function(name):
    module, _, function = COMMANDS[name].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_every_script_has_a_console_script():
    # `import` is a keyword of Python, so the file has a longer name.
    names = {script.stem.replace("import_graph", "import") for script in SCRIPTS}
    assert {f"gpn-{name}" for name in names} <= COMMANDS.keys()

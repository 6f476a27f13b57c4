"""Install the wheel into an empty environment and use it there: `make wheel-test`.

    python -m tests.wheel.clean_environment [--work FOLDER] [--extras serve,charts]

Builds an sdist, builds the wheel from the sdist, installs it with the pinned versions into a new
virtual environment, and there runs the `--help` of every console script and the Python blocks of
README.md, outside of the repository. Prints one line per step; the first failure ends it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

from tests.wheel.building import REPOSITORY, built, copied_sources

LARGEST_CORE = 2.2e9
"""Bytes that an installation of the core may have, with torch's build for CPUs."""
WHERE = "import gpn_scale, precompute; print(gpn_scale.__file__, precompute.__file__, sep='\\n')"
README = (
    "import doctest, sys\n"
    "results = doctest.testfile(sys.argv[1], module_relative=False)\n"
    "print(results)\n"
    "sys.exit(results.failed > 0 or results.attempted == 0)\n"
)


class Environment:
    """A new virtual environment, in which commands run without the variables of this one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.cwd = folder.parent / "elsewhere"
        self.cwd.mkdir()
        venv.create(folder, with_pip=True)

    def run(self, *command: str) -> str:
        """Run a program of the environment and return what it prints.

        Raises:
            SystemExit: it failed.
        """
        variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        variables["PATH"] = f"{self.bin}{os.pathsep}{variables['PATH']}"
        program = [str(self.bin / command[0]), *command[1:]]
        ended = subprocess.run(
            program, cwd=self.cwd, env=variables, capture_output=True, text=True, check=False
        )
        if ended.returncode != 0:
            raise SystemExit(f"{' '.join(program)} failed:\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    def size(self) -> int:
        """Return the bytes of all files, without pip and links."""
        [site_packages] = self.folder.glob("lib/python*/site-packages")
        paths = (path for path in site_packages.rglob("*") if not path.is_symlink())
        files = (path for path in paths if path.is_file())
        return sum(path.stat().st_size for path in files if "pip" not in path.parts)


def build(work: Path) -> Path:
    """Build the sdist, and from it the wheel; return the wheel."""
    sdist = built("sdist", copied_sources(work), work / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    [unpacked] = (work / "unpacked").iterdir()
    return built("wheel", unpacked, work / "dist")


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, install and use the wheel."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, help="new folder that is kept (default: temporary)")
    parser.add_argument("--extras", default="", help="extras to install, such as serve,charts")
    options = parser.parse_args(arguments)
    if options.work is not None:
        options.work.mkdir(parents=True)
        try_wheel(options.work, options.extras)
    else:
        with tempfile.TemporaryDirectory() as folder:
            try_wheel(Path(folder), options.extras)


def try_wheel(work: Path, extras: str) -> None:
    """Do all steps in an empty folder."""
    wheel = build(work)
    say(f"built {wheel.name} from an sdist")
    environment = Environment(work / "environment")
    wanted = f"gpn-scale[{extras}] @ {wheel.as_uri()}" if extras else str(wheel)
    pinned = str(REPOSITORY / "constraints.txt")
    environment.run("python", "-m", "pip", "install", "-qq", "-c", pinned, wanted)
    environment.run("python", "-m", "pip", "check")
    size = environment.size()
    say(f"installed {size / 1e9:.2f} GB")
    if not extras and size > LARGEST_CORE:
        raise SystemExit(f"the core has {size:,} bytes, expected at most {LARGEST_CORE:,.0f}")
    for path in environment.run("python", "-c", WHERE).split():
        if not Path(path).is_relative_to(environment.folder):
            raise SystemExit(f"{path} is imported, expected a file of the environment")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for script in project["scripts"]:
        if "usage:" not in environment.run(script, "--help"):
            raise SystemExit(f"{script} --help shows no usage")
    say(f"--help of {', '.join(project['scripts'])}")
    shutil.copy(REPOSITORY / "README.md", environment.cwd)
    say(f"README.md: {environment.run('python', '-c', README, 'README.md').strip()}")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

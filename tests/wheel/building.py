"""Distributions of this project, built from a copy of its sources."""

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FILES = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml")
FOLDERS = ("benchmarks", "gpn_scale", "launch", "precompute", "tests")
"""What lies beside the packages must not get into the wheel, so it is copied as well."""
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)


def copied_sources(folder: Path) -> Path:
    """Copy the sources, so that a build leaves nothing in the repository, and return the copy."""
    source = folder / "source"
    source.mkdir()
    for name in FILES:
        shutil.copy(REPOSITORY / name, source)
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "results", "golden")
        shutil.copytree(REPOSITORY / name, source / name, ignore=ignored)
    return source


def built(kind: str, source: Path, folder: Path) -> Path:
    """Build a distribution with the setuptools of this environment, and return its path.

    Args:
        kind: `wheel` or `sdist`.
        source: Folder with pyproject.toml.
        folder: Where the distribution goes.
    """
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [path] = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return path

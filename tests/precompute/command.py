"""The command line of precompute, called in this process."""

from pathlib import Path

import numba

from precompute.cli import main

REPOSITORY = Path(__file__).parents[2]
INTERPRETED = bool(numba.config.DISABLE_JIT)
PUSH = ["--method", "push", "--push-tolerance", "1e-3" if INTERPRETED else "1e-5"]
"""Options of pushes that do not take long, even if kernels are not compiled."""


def arguments(data, out, *more):
    """Options that build a store of the graph in the fixture `data`."""
    options = ["--dataset", "g", "--data-dir", str(data), "--out", str(out)]
    return [*options, "--k", "8", "--clusters", "4", *more]


def build(data, out, *more):
    return main(arguments(data, out, *more))


def content(path: Path) -> dict[str, bytes]:
    """All files of a store that equal builds have in common."""
    names = sorted(file.name for file in path.iterdir())
    return {name: (path / name).read_bytes() for name in names if name != "build_seconds.json"}

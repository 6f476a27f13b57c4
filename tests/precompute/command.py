"""The command line of precompute, called in this process."""

from pathlib import Path

from precompute.cli import main

REPOSITORY = Path(__file__).parents[2]


def arguments(data, out, *more):
    """Options that build a store of the graph in the fixture `data`."""
    return ["--dataset", "g", "--data-dir", str(data), "--out", str(out), "--k", "8", *more]


def build(data, out, *more):
    return main(arguments(data, out, *more))


def content(path: Path) -> dict[str, bytes]:
    """All files of a store that equal builds have in common."""
    names = sorted(file.name for file in path.iterdir())
    return {name: (path / name).read_bytes() for name in names if name != "build_seconds.json"}

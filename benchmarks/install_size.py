"""What does an installation cost on the disk, and what does each requirement bring?

    python benchmarks/install_size.py [--site-packages DIR] [--write docs/install.md]

Adds up the files of installed distributions, of this environment or of the one that DIR belongs to,
and prints two tables: the requirements of the core, and the extras. *With dependencies* counts
every distribution that a requirement needs; *saved without it* counts those that no other
requirement of the core needs. Distributions that are not installed are left out, and an extra with
a missing one has no size.
"""

import argparse
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from results_paper import put

from gpn_scale.files import write_text

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
OWN_NAME = "gpn-scale"
USER_EXTRAS = ("charts", "gp", "serve", "tensorboard", "mlflow", "all")
"""Extras for users, in the order of the table."""
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed distribution."""

    version: str
    size: int
    """Bytes of its files."""
    needs: tuple[Requirement, ...]
    """What it requires, with and without extras."""


Environment = Mapping[str, Installed]
"""Installed distributions by their canonical names."""


def environment(site_packages: Path | None) -> Environment:
    """Return the distributions of a folder; None for those of this Python."""
    places = {} if site_packages is None else {"path": [str(site_packages)]}
    return {canonicalize_name(each.name): _installed(each) for each in distributions(**places)}


def _installed(distribution: Distribution) -> Installed:
    paths = (Path(str(distribution.locate_file(file))) for file in distribution.files or ())
    size = sum(path.stat().st_size for path in paths if path.is_file())
    return Installed(
        version=distribution.version,
        size=size,
        needs=tuple(map(Requirement, distribution.requires or ())),
    )


def brought_by(requirements: Iterable[Requirement], installed: Environment) -> set[str]:
    """Return the installed distributions that requirements lead to, themselves included."""
    reached: set[tuple[str, str]] = set()
    waiting = [
        (canonicalize_name(each.name), extra)
        for each in requirements
        for extra in ("", *each.extras)
    ]
    while waiting:
        name, extra = pair = waiting.pop()
        if pair in reached or name not in installed:
            continue
        reached.add(pair)
        for need in installed[name].needs:
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(need.name), each) for each in ("", *need.extras)]
    return {name for name, _ in reached}


def core_table(core: Sequence[Requirement], installed: Environment) -> str:
    """Return the Markdown table of the requirements of the core, the largest first."""
    rows = []
    for requirement in core:
        name = canonicalize_name(requirement.name)
        if name in installed:
            brings = brought_by([requirement], installed)
            others = brought_by([each for each in core if each is not requirement], installed)
            rows.append((name, {name}, brings, brings - others))
    rows.sort(key=lambda row: -_size(row[1], installed))
    lines = ["| package | version | own files | with dependencies | saved without it |"]
    lines.append("|---|---|---|---|---|")
    for name, *groups in rows:
        cells = " | ".join(_megabytes(group, installed) for group in groups)
        lines.append(f"| {name} | {installed[name].version} | {cells} |")
    everything = brought_by(core, installed)
    lines.append(
        f"| **all** | {len(everything)} packages | | {_megabytes(everything, installed)} | |"
    )
    return "\n".join(lines)


def extras_table(
    core: Sequence[Requirement],
    extras: Mapping[str, Sequence[Requirement]],
    installed: Environment,
) -> str:
    """Return the Markdown table of what each extra adds to the core."""
    base = brought_by(core, installed)
    lines = ["| extra | packages | adds |", "|---|---|---|"]
    for extra, requirements in extras.items():
        names = ", ".join(requirement.name for requirement in requirements)
        missing = [e for e in requirements if canonicalize_name(e.name) not in installed]
        added = brought_by(requirements, installed) - base
        size = "not installed" if missing else _megabytes(added, installed)
        lines.append(f"| `{extra}` | {names} | {size} |")
    return "\n".join(lines)


def resolved(texts: Sequence[str], extras: Mapping[str, Sequence[str]]) -> list[Requirement]:
    """Return requirements, with this project's own extras replaced by what they hold."""
    requirements = []
    for requirement in map(Requirement, texts):
        if canonicalize_name(requirement.name) != OWN_NAME:
            requirements.append(requirement)
        for extra in sorted(requirement.extras) if requirement.name == OWN_NAME else ():
            requirements += resolved(extras[extra], extras)
    return list({requirement.name: requirement for requirement in requirements}.values())


def _size(names: Iterable[str], installed: Environment) -> int:
    return sum(installed[name].size for name in names)


def _megabytes(names: Iterable[str], installed: Environment) -> str:
    megabytes = _size(names, installed) / MEGABYTE
    return f"{megabytes:,.0f} MB" if megabytes >= 9.5 else f"{megabytes:.1f} MB"


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Print both tables, or write them into the file --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site-packages", type=Path, help="folder of installed packages")
    parser.add_argument("--write", type=Path, help="Markdown file with the markers")
    options = parser.parse_args(arguments)
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    declared = project["optional-dependencies"]
    core = resolved(project["dependencies"], declared)
    extras = {name: resolved(declared[name], declared) for name in USER_EXTRAS if name in declared}
    installed = environment(options.site_packages)
    texts = {
        "install-core": core_table(core, installed),
        "install-extras": extras_table(core, extras, installed),
    }
    if options.write is None:
        say("\n\n".join(texts.values()))
    else:
        write_text(options.write, put(options.write.read_text(encoding="utf-8"), texts))
        say(f"{len(installed)} packages -> {options.write}")


if __name__ == "__main__":
    main()

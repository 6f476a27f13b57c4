r"""The Debian archive as a graph: which packages look as if they were in the wrong section?

    python examples/debian_packages.py tables --out FOLDER [--planted 500]
    gpn-import --nodes FOLDER/packages.csv --edges FOLDER/dependencies.csv --id package \
        --label section --source package --target needs --unknown-ids drop \
        --out FOLDER/graphs/debian
    gpn-train --dataset debian --data-dir FOLDER/graphs --mode exact --out FOLDER/run
    python examples/debian_packages.py suspects --run FOLDER/run --out FOLDER/suspects.csv

Every Debian machine has the package lists, so this runs offline. A package is a node, a dependency
an edge, the section (games, python, fonts, ...) its class; features are sizes, priority,
architecture, maintainer and the words of the short description. A package is a suspect if the model
finds its stated section improbable. With `--planted N`, N random packages are first moved
to the section of another package; FOLDER/planted.csv names them, and `suspects` says how many of
them head the list.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet

COLUMNS = (
    "package",
    "section",
    "installed_size",
    "download_size",
    "priority",
    "architecture",
    "maintainer",
    "description",
    "has_homepage",
)
DEPENDENCY_FIELDS = ("Depends", "Pre-Depends", "Recommends")
NAME = re.compile(r"\s*([a-z0-9][a-z0-9.+-]*)")


def stanzas(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of every package in a list, each field on one line."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields = {}
        elif line[0] in " \t":
            fields[name] += f" {line.strip()}"
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def dependencies(fields: dict[str, str]) -> list[str]:
    """Return the packages that a package needs, the first of every list of alternatives."""
    needed: dict[str, None] = {}
    for field in DEPENDENCY_FIELDS:
        for alternatives in fields.get(field, "").split(","):
            match = NAME.match(alternatives)
            if match:
                needed[match[1]] = None
    needed.pop(fields["Package"], None)
    return list(needed)


def row_of(fields: dict[str, str]) -> list[str]:
    """Return the columns of a package, in the order of `COLUMNS`."""
    section = fields.get("Section", "").rpartition("/")[2]
    maintainer = fields.get("Maintainer", "").partition("<")[0].strip()
    return [
        fields["Package"],
        section,
        fields.get("Installed-Size", ""),
        fields.get("Size", ""),
        fields.get("Priority", ""),
        fields.get("Architecture", ""),
        maintainer,
        fields.get("Description", ""),
        "yes" if fields.get("Homepage") else "no",
    ]


def write_csv(path: Path, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def planted(rows: list[list[str]], count: int, rng_seed: int) -> list[tuple[str, str, str]]:
    """Move `count` random packages to the section of another package; return what was done."""
    rng = np.random.default_rng(rng_seed)
    moved = []
    for index in rng.choice(len(rows), count, replace=False):
        right = rows[index][1]
        others = [row[1] for row in rows if row[1] != right]
        rows[index][1] = others[rng.integers(len(others))]
        moved.append((rows[index][0], right, rows[index][1]))
    return moved


def write_tables(lines: Iterable[str], folder: Path, plant: int = 0, rng_seed: int = 1) -> int:
    """Write packages.csv, dependencies.csv and planted.csv; return the number of packages."""
    folder.mkdir(parents=True, exist_ok=True)
    packages = {fields["Package"]: fields for fields in stanzas(lines) if "Package" in fields}
    rows = [row_of(fields) for fields in packages.values()]
    rows = [row for row in rows if row[1]]
    moved = planted(rows, plant, rng_seed)
    write_csv(folder / "planted.csv", ("package", "section", "moved_to"), moved)
    write_csv(folder / "packages.csv", COLUMNS, rows)
    edges = ((row[0], other) for row in rows for other in dependencies(packages[row[0]]))
    write_csv(folder / "dependencies.csv", ("package", "needs"), edges)
    return len(rows)


def suspects(run: Path) -> list[dict[str, object]]:
    """Return test packages, the one whose stated section is least probable first."""
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    names = [count["name"] for count in report["graph"]["labels"]]
    table = pyarrow.parquet.read_table(run / "predictions.parquet")
    listed = [
        {
            "package": row["node_name"],
            "section": names[row["label"]],
            "probability": row[f"probability_{row['label']}"],
            "predicted": row["predicted_class_name"],
            "probability_of_predicted": row[f"probability_{row['predicted_class']}"],
            "p_known": row.get("p_known"),
            "reason": row.get("reason"),
        }
        for row in table.to_pylist()
        if row["split"] == "test" and row["label"] is not None
    ]
    return sorted(listed, key=lambda row: (row["probability"], row["package"]))


def planted_among(listed: list[dict[str, object]], folder: Path) -> str:
    """Return how many of the planted packages head the list, in a sentence; empty without any."""
    with (folder / "planted.csv").open(encoding="utf-8") as file:
        moved = {row["package"] for row in csv.DictReader(file)}
    is_planted = [row["package"] in moved for row in listed]
    count = sum(is_planted)
    if not count:
        return ""
    planted_first = sum(is_planted[:count])
    return (
        f"{count} of {len(listed):,} listed packages were moved on purpose; the first {count} hold "
        f"{planted_first} of them ({planted_first / count:.0%}; chance: {count / len(listed):.1%})"
    )


def main() -> None:
    """Parse the command line and run one of the two steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(dest="step", required=True)
    tables = steps.add_parser("tables", help="write the raw tables")
    tables.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    tables.add_argument("--planted", type=int, default=0, metavar="N", help="packages to move")
    tables.add_argument("--seed", type=int, default=1, metavar="S", help="seed of the moves")
    listing = steps.add_parser("suspects", help="list packages whose section is improbable")
    listing.add_argument("--run", type=Path, required=True, metavar="RUN")
    listing.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    if options.step == "tables":
        with subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, text=True) as apt:
            assert apt.stdout is not None
            count = write_tables(apt.stdout, options.out, options.planted, options.seed)
        if not count:
            sys.exit("apt-cache lists no packages: run `apt-get update` once")
        print(f"written: {count:,} packages in {options.out}")
        return
    listed = suspects(options.run)
    write_csv(options.out, listed[0], (row.values() for row in listed))
    for row in listed[:15]:
        print(
            f"{row['package']!s:<36} {row['section']!s:<14} looks like {row['predicted']!s:<14} "
            f"{row['probability_of_predicted']:.0%}"
        )
    print(planted_among(listed, options.out.parent) or f"written: {options.out}")


if __name__ == "__main__":
    main()

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli.import_graph import main as import_graph
from tests.examples import example

debian = example("debian_packages")
LIST = """\
Package: 0ad
Installed-Size: 28591
Maintainer: Games Team <games@example.org>
Depends: 0ad-data (>= 0.0.26), libc6 (>= 2.34) | libc6-other, 0ad
Pre-Depends: dpkg (>= 1.15.6~)
Description: Real-time strategy game
 with a longer text
Homepage: https://example.org
Section: non-free/games
Priority: optional

Package: 0ad-data
Section: games
Size: 12

Package: libc6
Section: libs

Package: without-section
"""


def test_fields_may_span_lines():
    first, *_ = debian.stanzas(LIST.splitlines(keepends=True))
    assert first["Description"] == "Real-time strategy game with a longer text"


def test_dependencies_are_the_first_of_their_alternatives():
    first, *_ = debian.stanzas(LIST.splitlines())
    assert debian.dependencies(first) == ["0ad-data", "libc6", "dpkg"]


def test_tables_can_be_imported(tmp_path, monkeypatch):
    assert debian.write_tables(LIST.splitlines(), tmp_path) == 3
    with (tmp_path / "packages.csv").open(newline="") as file:
        first, *_ = csv.DictReader(file)
    assert (first["section"], first["maintainer"], first["has_homepage"]) == (
        "games",
        "Games Team",
        "yes",
    )
    monkeypatch.chdir(tmp_path)
    options = ["--nodes", "packages.csv", "--edges", "dependencies.csv", "--id", "package"]
    options += ["--label", "section", "--source", "package", "--target", "needs"]
    assert import_graph([*options, "--unknown-ids", "drop", "--out", "graphs/debian"]) == 0


def test_planted_packages_have_another_section(tmp_path):
    lines = "\n\n".join(f"Package: p{i}\nSection: s{i % 3}" for i in range(30)).splitlines()
    debian.write_tables(lines, tmp_path, plant=10)
    with (tmp_path / "planted.csv").open(newline="") as file:
        moved = list(csv.DictReader(file))
    assert len({row["package"] for row in moved}) == 10
    assert all(row["section"] != row["moved_to"] for row in moved)
    with (tmp_path / "packages.csv").open(newline="") as file:
        sections = {row["package"]: row["section"] for row in csv.DictReader(file)}
    assert all(sections[row["package"]] == row["moved_to"] for row in moved)


@pytest.fixture
def run(tmp_path):
    """A run with predictions of four packages: the second one is in the wrong section."""
    (tmp_path / "planted.csv").write_text("package,section,moved_to\nb,libs,games\n")
    labels = [{"name": "games"}, {"name": "libs"}]
    (tmp_path / "report.json").write_text(json.dumps({"graph": {"labels": labels}}))
    table = pa.table(
        {
            "node_name": ["a", "b", "c", "d"],
            "label": [0, 0, 1, 1],
            "split": ["test", "test", "test", "train"],
            "predicted_class": [0, 1, 1, 0],
            "predicted_class_name": ["games", "libs", "libs", "games"],
            "probability_0": [0.9, 0.2, 0.4, 1.0],
            "probability_1": [0.1, 0.8, 0.6, 0.0],
        }
    )
    pq.write_table(table, tmp_path / "predictions.parquet")
    return tmp_path


def test_suspects_are_test_packages_with_improbable_sections(run):
    listed = debian.suspects(run)
    assert [row["package"] for row in listed] == ["b", "c", "a"]
    assert (listed[0]["section"], listed[0]["predicted"]) == ("games", "libs")
    assert debian.planted_among(listed, run).startswith("1 of 3 listed packages were moved")
    assert "hold 1 of them (100%" in debian.planted_among(listed, run)

"""The picture of the README: drawn from predictions, with the fractions that it states."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks import readme_picture

REPOSITORY = Path(__file__).parents[1]
COMMITTED = REPOSITORY / "docs" / "pictures" / "readme.svg"


@pytest.fixture
def run(tmp_path):
    """A run of ten nodes: four known test nodes, one training node, five unknown nodes."""
    unknown = np.arange(10) >= 5
    columns = {
        "p_known": [0.04, 0.5, 0.05, 1.0, 0.01, 0.01, 0.02, 0.03, 0.6, 0.7],
        "split": pa.array(["test"] * 4 + ["train"] + [None] * 5).dictionary_encode(),
        "mark_unseen_class": unknown & (np.arange(10) < 7),
        "mark_isolated": np.arange(10) == 7,
        "mark_foreign_features": np.arange(10) >= 8,
    }
    parquet.write_table(pa.table(columns), tmp_path / "predictions.parquet")
    return tmp_path


def test_groups_are_known_test_nodes_and_each_kind_of_unknown_nodes(run):
    groups = readme_picture.p_values_of_groups(run)
    assert groups["known nodes"].tolist() == [0.04, 0.5, 0.05, 1.0]
    assert groups["unseen class"].tolist() == [0.01, 0.02]
    assert groups["isolated nodes"].tolist() == [0.03]
    assert groups["foreign features"].tolist() == [0.6, 0.7]


def test_the_picture_states_the_fractions(run):
    chart = readme_picture.picture(readme_picture.p_values_of_groups(run))
    drawing = chart.svg_file()
    assert "50 % of 4 look unknown" in drawing
    assert "100 % of 2 look unknown" in drawing
    assert "0 % of 2 look unknown" in drawing
    assert "50 % of the known nodes, 100 % of the unseen class" in chart.description


def test_the_committed_picture_is_small_and_has_a_ground_of_its_own():
    text = COMMITTED.read_text(encoding="utf-8")
    assert COMMITTED.stat().st_size < 50_000
    ET.fromstring(text)
    assert re.search(r'<rect [^>]*fill="#ffffff"', text), "a ground that follows dark screens"
    assert "prefers-color-scheme: dark" in text

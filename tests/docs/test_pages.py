"""The Python of the pages gives what it says."""

import doctest
import gzip
import re

import pytest

from gpn_scale import load_graph
from tests.docs import REPOSITORY

ELSEWHERE = {
    "own_data.md": "tests/examples/test_bank.py",
    "raw_columns.md": "tests/data/test_preparation.py",
}
"""Pages whose examples another test runs."""
PAGES = [
    path.name
    for path in sorted((REPOSITORY / "docs").glob("*.md"))
    if "```python\n>>> " in path.read_text(encoding="utf-8") and path.name not in ELSEWHERE
]


@pytest.mark.parametrize("name", PAGES)
def test_the_python_of_a_page_gives_what_it_says(name):
    results = doctest.testfile(str(REPOSITORY / "docs" / name), module_relative=False)
    assert results.attempted > 3
    assert results.failed == 0


@pytest.mark.parametrize(("name", "test"), ELSEWHERE.items())
def test_the_other_pages_are_run_by_their_tests(name, test):
    text = (REPOSITORY / test).read_text(encoding="utf-8")
    assert "doctest.testfile" in text
    assert name in text


def test_the_downloaded_links_of_web_google_become_a_graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ring = [(3 * page, 3 * ((page + step) % 1200)) for page in range(1200) for step in (1, 5)]
    lines = ["# Directed graph: web-Google.txt", "# FromNodeId\tToNodeId"]
    lines += [f"{source}\t{target}" for source, target in ring]
    with gzip.open("web-Google.txt.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    page = (REPOSITORY / "docs" / "ppr_engine.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(import gzip\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names = {}
    exec(code, names)
    assert names["similar"][:3].tolist() == [0, 15, 3]
    graph = load_graph("web-Google", "graphs")
    assert (graph.num_nodes, graph.num_edges) == (1200, 4800)
    ends = graph.indices[graph.indptr[1] : graph.indptr[2]]
    assert set(graph.node_names[ends]) == {"0", "6", "18", "3588"}

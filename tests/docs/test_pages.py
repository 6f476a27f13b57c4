"""The Python of the pages gives what it says."""

import doctest

import pytest

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

"""Every number of a result stands in the file that the text links to."""

import re
from pathlib import Path

import pytest

from tests.docs import REPOSITORY

PAGES = ("README.md", "docs/index.md", "docs/results_overview.md")
NO_RESULTS = {
    "2021": "the year of the paper",
    "3.11": "the least version of Python",
}
"""Numbers that are no results, and what they are."""
SOURCES = ("docs/", "benchmarks/results/")
ROWS_OF_MEANS = {
    "accuracy": "accuracy ↑",
    "calibration error (ECE)": "ECE ↓",
    "left-out classes, AUC-ROC": "left-out, AUC-ROC ↑",
    "features of Gaussian noise, AUC-ROC": "Gaussian, AUC-ROC ↑",
}
"""Rows of the small table of results, and those of the leaderboard's table of means."""
MODELS = ("GPN+", "GPN", "APPNP+GNNSafe")
"""Columns of the small table, as the leaderboard calls them."""
_NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/]|[.,]\d)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)#\s]*)(?:#[^)]*)?\)")


def numbers(text):
    return set(_NUMBER.findall(text))


def shown_text(block):
    """What a reader sees of a block: no code, no addresses, no texts of pictures."""
    block = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", block)
    return _LINK.sub(r"\1", _CODE.sub("", block))


def linked_files(block, page):
    """Files of the documentation and of the measurements that a block links to."""
    targets = (page.parent / target for _, target in _LINK.findall(block) if target)
    inside = [path.resolve() for path in targets if path.is_file()]
    return [path for path in inside if str(path.relative_to(REPOSITORY)).startswith(SOURCES)]


def is_table(block):
    return block.startswith("|")


def statements(page):
    """Texts with numbers, each with the files that it links to.

    A row of a table counts by itself if it has links. Other blocks without links of their own take
    those of their neighbour: a table those of the text below it, a text those of the block above.
    """
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    for place, block in enumerate(blocks):
        neighbour = blocks[place + 1 : place + 2] if is_table(block) else blocks[:place][-1:]
        borrowed = linked_files(neighbour[0], page) if neighbour else []
        for unit in block.splitlines() if is_table(block) else [block]:
            yield shown_text(unit), linked_files(unit, page) or borrowed


def unsupported(page):
    """Numbers that no linked file has, with the text that they stand in."""
    for text, files in statements(page):
        supported = set().union(*(numbers(path.read_text(encoding="utf-8")) for path in files))
        for number in numbers(text) - supported - NO_RESULTS.keys():
            yield f"{number} in: {text[:80]}"


@pytest.mark.parametrize("name", PAGES)
def test_every_number_stands_in_a_linked_file(name):
    assert list(unsupported(REPOSITORY / name)) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("It reaches 85.3 ([board](docs/board.md)).", []),
        ("It reaches 85.4 ([board](docs/board.md)).", ["85.4"]),
        ("It reaches 5.3 ([board](docs/board.md)).", ["5.3"]),
        ("It reaches 85.3.", ["85.3"]),
        ("| a | **85.3** |\n\nFrom [the board](docs/board.md).", []),
        ("| a | **99** |\n\nFrom [the board](docs/board.md).", ["99"]),
        ("| a | 1,200 | [board](docs/board.md) |\n| b | 7 | [other](docs/other.md) |", ["7"]),
        ("| a | 7 | [board](docs/board.md) |", ["7"]),
        ("![99](docs/board.md)\n\nOf 1,200 nodes.", []),
        ("`--k 99` and GPN2 and v1.2.3\n\n```sh\nx 99\n```", []),
        ("Stadler et al., 2021.", []),
    ],
)
def test_what_counts_as_supported(text, missing, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.test_numbers.REPOSITORY", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "board.md").write_text("| GPN+ | **85.3 ± 0.2** | 1,200 |\n")
    (tmp_path / "docs" / "other.md").write_text("nothing\n")
    (tmp_path / "README.md").write_text(text)
    assert [line.split()[0] for line in unsupported(tmp_path / "README.md")] == missing


def rows_of(text):
    rows = (line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|"))
    return {first.strip(): [each.strip() for each in rest] for first, *rest in rows}


@pytest.mark.parametrize("name", ["README.md", "docs/results_overview.md"])
def test_the_small_table_has_the_means_of_the_leaderboard(name):
    board = (REPOSITORY / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    means = rows_of(board.partition("<!-- means begin -->")[2].partition("<!-- means end -->")[0])
    shown = rows_of((REPOSITORY / name).read_text(encoding="utf-8"))
    for row, column in ROWS_OF_MEANS.items():
        by_model = dict(zip(means["column"], means[column], strict=True))
        expected = [by_model[model] for model in MODELS]
        assert [text.strip("*") for text in shown[row]] == expected
        best = (min if "↓" in column else max)(map(float, expected))
        bold = [float(text.strip("*")) for text in shown[row] if text.startswith("**")]
        assert bold == [best]


def test_every_answer_names_a_file_and_the_command_that_made_it():
    page = REPOSITORY / "docs" / "results_overview.md"
    table = page.read_text(encoding="utf-8").partition("## Does it")[2]
    makefile = (REPOSITORY / "Makefile").read_text()
    rows = [line for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 7
    for row in rows:
        (source,) = linked_files(row, page)
        (command,) = re.findall(r"\| `([^`]+)` \|$", row)
        assert command in source.read_text(encoding="utf-8"), row
        target = Path(command)
        is_script = (REPOSITORY / target).is_file()
        assert is_script or f"\n{command.removeprefix('make ')}:" in makefile, row

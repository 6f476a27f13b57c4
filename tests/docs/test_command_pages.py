import argparse
import re
import tomllib

import pytest
from command_pages import PARSERS, command_pages, with_command_links

from tests.docs import REPOSITORY

PAGES = command_pages()
SCRIPTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]


def test_every_command_has_a_page():
    assert set(PARSERS) == set(SCRIPTS)
    assert set(PAGES) == {f"commands/{name}.md" for name in SCRIPTS}


@pytest.mark.parametrize("name", PARSERS)
def test_every_option_is_explained_on_the_page(name):
    page = PAGES[f"commands/{name}.md"]
    for maker in PARSERS[name].values():
        for action in maker()._actions:
            for option in action.option_strings:
                assert re.search(rf"^`[^`]*{re.escape(option)}\b.*\n:   \w", page, re.MULTILINE)


def test_subcommands_have_sections_and_defaults_are_filled_in():
    page = PAGES["commands/gpn-precompute.md"]
    assert "## gpn-precompute update\n" in page
    assert "## gpn-precompute verify\n" in page
    assert "%(default)s" not in page
    assert "(default: synthetic)" in page
    assert page.count("usage: gpn-precompute") == len(PARSERS["gpn-precompute"])


def parser_of(text):
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("--some", metavar="A", default=3, help=text)
    return parser


def test_signs_in_help_texts_are_no_markup(monkeypatch):
    parser = parser_of("a_b *c* <d> `e_f --g`, --other-one, %(default)s")
    monkeypatch.setitem(PARSERS, "x", {"": lambda: parser})
    page = command_pages()["commands/x.md"]
    assert "`--some A`\n:   A\\_b \\*c\\* \\<d\\> `e_f --g`, `--other-one`, 3." in page


def test_the_table_of_commands_leads_to_their_pages():
    text = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    linked = with_command_links(text)
    for name in PARSERS:
        assert f"| [`{name}`](commands/{name}.md) |" in linked

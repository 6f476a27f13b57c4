import doctest

import pytest
from fenced_examples import with_fenced_examples
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Text.", "Text."),
        ("Text.\n\n>>> 1\n1", "Text.\n\n```pycon\n>>> 1\n1\n```"),
        ("Text:\n>>> 1\n1\n\nMore.", "Text:\n\n```pycon\n>>> 1\n1\n```\n\nMore."),
        ("A.\n\n>>> 1\n\n>>> 2", "A.\n\n```pycon\n>>> 1\n```\n\n```pycon\n>>> 2\n```"),
        (">>> f()\n[1, [2]]", "```pycon\n>>> f()\n[1, [2]]\n```"),
    ],
)
def test_examples_are_fenced(text, expected):
    assert with_fenced_examples(text) == expected


lines = st.sampled_from(["Text.", "", ">>> 1 + 1", "2", ">>> 3", "3"])


@given(st.lists(lines))
def test_no_line_is_lost_and_fences_are_closed(texts):
    fenced = with_fenced_examples("\n".join(texts)).splitlines()
    kept = [line for line in fenced if line and "```" not in line]
    assert kept == [line for line in texts if line]
    assert fenced.count("```pycon") == fenced.count("```")


@given(st.lists(lines))
def test_the_examples_are_the_same(texts):
    """As doctest reads them; a fence ends the output that it would otherwise be part of."""
    text = "\n".join(texts)
    plain = with_fenced_examples(text).replace("```pycon", "").replace("```", "")
    examples = doctest.DocTestParser().get_examples
    assert [each.source for each in examples(plain)] == [each.source for each in examples(text)]

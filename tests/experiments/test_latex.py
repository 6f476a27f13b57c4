import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpn_scale.experiments.latex import (
    LatexTable,
    column_decimals,
    escaped,
    label_text,
    latex_text,
    number_texts,
)
from tests.experiments.latex_source import check_table, printed

errors = st.floats(1e-6, 1e6)
means = st.floats(-1e6, 1e6)


@given(st.text())
@example("--[*]\"'`?!,,\\ {x} $a$ & 5 % # _ ^ ~ < > |")
def test_escaped_texts_are_printed_as_they_are(text):
    assert printed(escaped(text)) == "".join(c if c.isprintable() else " " for c in text)


@pytest.mark.parametrize("text", ["--", "---", "``", "''", ",,", "?`", "!`", "-'-"])
def test_signs_that_would_join_into_another_are_kept_apart(text):
    assert escaped(text) == "".join(f"{{{character}}}" for character in text)


def test_ordinary_names_stay_readable():
    assert escaped("GPN-minibatch, k=3") == "GPN-minibatch, k=3"
    assert escaped("GPN[train.epochs=5]") == "GPN{[}train.epochs=5{]}"


def digits(text):
    """Number of significant digits that a text shows, trailing zeros before the point excepted."""
    shown = text.replace(".", "").lstrip("-0")
    return len(shown if "." in text else shown.rstrip("0"))


@given(means, errors, st.integers(-8, 8))
def test_errors_have_two_digits_at_most_and_means_the_same_decimals(mean, error, more):
    decimals = column_decimals([mean], [error], percent=True) + abs(more)
    mean_text, error_text = number_texts(mean, error, decimals)
    assert 1 <= digits(error_text) <= 2
    assert mean_text.partition(".")[2].__len__() == error_text.partition(".")[2].__len__()
    # Neither is moved by more than a tenth of the error, or half a digit of it.
    step = 10.0 ** math.floor(math.log10(error) + 1e-9)
    assert abs(float(error_text) - error) <= step / 2 * 1.001
    assert abs(float(mean_text) - mean) <= step / 2 * 1.001 + 1e-9 * abs(mean)


@given(st.lists(st.tuples(means, errors), min_size=1, max_size=6))
def test_a_column_has_the_same_decimals_unless_its_errors_differ_too_much(numbers):
    decimals = column_decimals(*zip(*numbers, strict=True), percent=True)
    texts = [number_texts(mean, error, decimals)[1] for mean, error in numbers]
    assert all(1 <= digits(text) <= 2 for text in texts)
    powers = [Decimal(f"{error:.1e}").adjusted() for _, error in numbers]
    if max(powers) - min(powers) <= 1:
        assert len({len(text.partition(".")[2]) for text in texts}) == 1


@pytest.mark.parametrize(
    ("mean", "error", "decimals", "expected"),
    [
        (80.123, 0.34, 1, ("80.1", "0.3")),
        (80.123, 0.034, 2, ("80.12", "0.03")),
        (80.123, 0.996, 2, ("80.1", "1.0")),
        (79.456, 12.3, 1, ("79", "12")),
        (1234.0, 123.0, 0, ("1230", "120")),
        (100.0, 0.0, 1, ("100.0", "0.0")),
        (81.25, math.nan, 1, ("81.2", None)),
        (-0.04, 0.1, 1, ("0.0", "0.1")),
    ],
)
def test_rounded_numbers(mean, error, decimals, expected):
    assert number_texts(mean, error, decimals) == expected


def test_columns_without_errors():
    assert column_decimals([80.0], [math.nan], percent=True) == 1
    assert column_decimals([0.01234], [math.nan], percent=False) == 4
    assert column_decimals([123.4], [0.0], percent=False) == 0
    assert column_decimals([], [], percent=False) == 1
    assert column_decimals([0.0], [], percent=False) == 1


def test_labels_have_harmless_characters_alone():
    assert label_text("results", "clean", "A&B_c %") == "tab:results-clean-a-b-c"


def test_a_whole_table():
    table = LatexTable(
        caption="A caption.",
        label="tab:x",
        header=("model", "a", "b", "a", "b"),
        rows=(("M", "1", "2", "3", "4"),),
        groups=("G", "G", "H", "H"),
    )
    check_table(table.text())
    assert (
        table.text()
        == r"""\begin{table}[t]
  \centering
  \caption{A caption.}
  \label{tab:x}
  \begin{tabular}{lrrrr}
    \toprule
     & \multicolumn{2}{c}{G} & \multicolumn{2}{c}{H} \\
    \cmidrule(lr){2-3} \cmidrule(lr){4-5}
    model & a & b & a & b \\
    \midrule
    M & 1 & 2 & 3 & 4 \\
    \bottomrule
  \end{tabular}
\end{table}
"""
    )


def test_notes_cannot_leave_their_comments():
    text = latex_text(["a\nb", "c\r\u2028d"], [])
    assert text == "% a b\n% c d\n% needs \\usepackage{booktabs}\n"

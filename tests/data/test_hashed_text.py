import re
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import HashingVectorizer

from gpn_scale.data import hashed_text
from gpn_scale.data.hashed_text import (
    frequent_words,
    hashed_columns,
    texts_with_word,
    word_matrix,
)

TEXTS = st.lists(
    st.text(st.characters(codec="latin-1"), max_size=12)
    | st.lists(st.sampled_from(["red", "Red", "old", "a", "naïve", "7up"])).map(" ".join)
)


def tokens(text):
    """The slow, obvious version: runs of letters and digits, in lower case."""
    return [run for run in re.split(r"[\W_]+", text.lower()) if len(run) > 1]


@settings(deadline=None)  # the first call imports scikit-learn
@given(TEXTS.filter(bool))
@example(["old red, RED house", "", "_"])
def test_the_matrix_is_that_of_scikit_learn(texts):
    vectorizer = HashingVectorizer(
        analyzer=tokens, n_features=64, alternate_sign=False, dtype=np.float64
    )
    expected = vectorizer.transform(texts).toarray()
    got = word_matrix(pa.array(texts, pa.string()), 64)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got.toarray(), expected, rtol=1e-6)


@given(TEXTS.flatmap(lambda texts: st.tuples(st.just(texts), st.permutations(texts))))
def test_frequent_words_are_counted(pair):
    texts, permuted = pair
    counts = np.arange(1, len(texts) + 1)
    totals = Counter()
    for text, count in zip(texts, counts.tolist(), strict=True):
        for token in tokens(text):
            totals[token] += count
    largest = [0] * 4
    for token, count in totals.items():
        column = hashed_columns(pa.array([token]), 4)[0]
        largest[column] = max(largest[column], count)
    got = frequent_words(pa.array(texts, pa.string()), counts, 4)
    assert [totals[token] for token in got] == largest
    ones = np.ones(len(texts), np.int64)
    assert frequent_words(pa.array(texts, pa.string()), ones, 4) == frequent_words(
        pa.array(permuted, pa.string()), ones, 4
    )


def test_of_equally_frequent_words_the_first_counts():
    assert frequent_words(pa.array(["zoo", "ape"]), np.array([1, 1]), 1) == ("ape",)


def test_chunks_make_no_difference(monkeypatch):
    texts = pa.array(["old red house", "", "red", "a boat", "old"])
    counts = np.array([1, 2, 3, 4, 5])
    whole, common = word_matrix(texts, 32), frequent_words(texts, counts, 32)
    monkeypatch.setattr(hashed_text, "_CHUNK_TEXTS", 2)
    np.testing.assert_array_equal(word_matrix(texts, 32).toarray(), whole.toarray())
    assert frequent_words(texts, counts, 32) == common


def test_nothing_to_hash():
    none = pa.array([], pa.string())
    assert hashed_columns(none, 8).tolist() == []
    assert word_matrix(none, 8).shape == (0, 8)
    assert frequent_words(none, np.empty(0, np.int64), 2) == ("", "")


def test_columns_are_within_their_number():
    columns = hashed_columns(pa.array([f"v{number}" for number in range(999)]), 16)
    assert set(columns.tolist()) == set(range(16))


COUNTED = st.tuples(st.text(alphabet="ab c", max_size=6), st.integers(1, 3))


@given(st.lists(COUNTED, unique_by=lambda pair: pair[0]))
def test_rows_with_a_word_are_counted_as_by_hand(pairs):
    texts, counts = [text for text, _ in pairs], np.array([count for _, count in pairs], np.int64)
    expected = Counter()
    for text, count in pairs:
        for word in {word for word in text.split() if len(word) > 1}:
            expected[word] += count
    table = texts_with_word(pa.array(texts, pa.string()), counts)
    assert dict(zip(table["word"].to_pylist(), table["rows"].to_pylist(), strict=True)) == expected
    assert table["rows"].to_pylist() == sorted(expected.values(), reverse=True)


def test_rows_with_a_word_are_the_same_in_chunks(monkeypatch):
    texts, counts = pa.array(["red car", "blue car", "red", "?"]), np.array([1, 2, 3, 4])
    whole = texts_with_word(texts, counts)
    monkeypatch.setattr(hashed_text, "_CHUNK_TEXTS", 1)
    assert texts_with_word(texts, counts).to_pydict() == whole.to_pydict()

"""Texts and words hashed into a fixed number of columns, with scikit-learn's hash function.

Shapes: V texts, W columns.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numpy.typing import NDArray

_CHUNK_TEXTS = 1 << 16
_BETWEEN_TOKENS = r"[^\pL\pM\pN]+"
_SHORTEST = 2
_NO_ROWS = np.empty(0, np.int64)


def hashed_columns(texts: pa.Array, num_columns: int) -> NDArray[np.int64]:
    """Return the column in [0, num_columns) of every text, (V,); equal texts have equal columns.

    >>> columns = hashed_columns(pa.array(["DE", "FR", "DE"]), 256)
    >>> bool(columns[0] == columns[2]), bool(columns[0] == columns[1])
    (True, False)
    """
    from sklearn.feature_extraction import FeatureHasher

    if not len(texts):
        return np.empty(0, np.int64)
    hasher = FeatureHasher(num_columns, input_type="string", alternate_sign=False)
    one_per_row = hasher.transform([text] for text in texts.to_pylist())
    return np.asarray(one_per_row.indices, np.int64)


def word_matrix(texts: pa.Array, num_columns: int) -> scipy.sparse.csr_array:
    """Return hashed word counts of every text, divided by their Euclidean norm, (V, W).

    Words are runs of at least two letters, marks and digits, in lower case. The matrix is what
    scikit-learn's `HashingVectorizer` gives for these words, without alternating signs.

    >>> matrix = word_matrix(pa.array(["Old library", "library, old", "?"]), 1024)
    >>> (matrix.sum(axis=1) ** 2).round().tolist(), bool((matrix[[0]] != matrix[[1]]).nnz)
    ([2.0, 2.0, 0.0], False)
    """
    blocks = [_counted(tokens, num_columns) for tokens in _tokens(texts)]
    if not blocks:
        return scipy.sparse.csr_array((0, num_columns), dtype=np.float32)
    return scipy.sparse.csr_array(scipy.sparse.vstack(blocks, format="csr"))


def frequent_words(texts: pa.Array, counts: NDArray[np.int64], num_columns: int) -> tuple[str, ...]:
    """Return the most frequent word of every column, (W,); "" for a column without any.

    Of equally frequent words, the first in alphabetical order counts.

    >>> tokens = frequent_words(pa.array(["red red", "blue"]), np.array([1, 3]), num_columns=1)
    >>> tokens
    ('blue',)

    Args:
        texts: Distinct texts, (V,).
        counts: How often each occurs, (V,).
        num_columns: W.
    """
    pieces, start = [], 0
    for tokens in _tokens(texts):
        stop = start + len(tokens.indptr) - 1
        weight = np.repeat(counts[start:stop], np.diff(tokens.indptr))
        totals = np.bincount(tokens.code, weight, minlength=len(tokens.distinct)).astype(np.int64)
        pieces.append(pa.table({"token": tokens.distinct, "count": totals}))
        start = stop
    if not pieces:
        return ("",) * num_columns
    table = pa.concat_tables(pieces).group_by("token").aggregate([("count", "sum")])
    table = table.sort_by([("count_sum", "descending"), ("token", "ascending")])
    tokens_by_count = table["token"].combine_chunks()
    columns, first = np.unique(hashed_columns(tokens_by_count, num_columns), return_index=True)
    names = [""] * num_columns
    for column, token in zip(
        columns.tolist(), tokens_by_count.take(first).to_pylist(), strict=True
    ):
        names[column] = token
    return tuple(names)


def texts_with_word(texts: pa.Array, counts: NDArray[np.int64]) -> pa.Table:
    """Return every word, and the number of rows whose text has it, the most frequent word first.

    >>> texts_with_word(pa.array(["red red", "blue red"]), np.array([1, 3])).to_pylist()
    [{'word': 'red', 'rows': 4}, {'word': 'blue', 'rows': 3}]

    Args:
        texts: Distinct texts, (V,).
        counts: Number of rows of each, (V,).
    """
    pieces, start = [pa.table({"word": pa.array([], pa.large_string()), "rows": _NO_ROWS})], 0
    for tokens in _tokens(texts):
        stop = start + len(tokens.indptr) - 1
        row = np.repeat(np.arange(start, stop), np.diff(tokens.indptr))
        # A word counts once per text.
        size = max(len(tokens.distinct), 1)
        row, code = np.divmod(np.unique(row * size + tokens.code), size)
        totals = np.bincount(code, counts[row], minlength=len(tokens.distinct)).astype(np.int64)
        pieces.append(pa.table({"word": tokens.distinct, "rows": totals}))
        start = stop
    table = pa.concat_tables(pieces).group_by("word").aggregate([("rows", "sum")])
    table = table.rename_columns({"word": "word", "rows_sum": "rows"}).select(["word", "rows"])
    return table.sort_by([("rows", "descending"), ("word", "ascending")])


class _Tokens(NamedTuple):
    """The words of a chunk of texts: row v has `distinct[code[indptr[v]:indptr[v + 1]]]`."""

    distinct: pa.Array
    code: NDArray[np.int64]
    indptr: NDArray[np.int64]


def _tokens(texts: pa.Array) -> Iterator[_Tokens]:
    for start in range(0, len(texts), _CHUNK_TEXTS):
        yield _tokens_of_chunk(texts[start : start + _CHUNK_TEXTS])


def _tokens_of_chunk(texts: pa.Array) -> _Tokens:
    lower = pc.utf8_lower(texts.cast(pa.large_string()))
    lists = pc.split_pattern_regex(lower, _BETWEEN_TOKENS)
    row = np.asarray(pc.list_parent_indices(lists))
    encoded = lists.flatten().dictionary_encode()
    code = np.asarray(encoded.indices)
    is_long = np.asarray(pc.utf8_length(encoded.dictionary)) >= _SHORTEST
    kept = is_long[code]
    place = np.cumsum(is_long) - 1
    counts = np.bincount(row[kept], minlength=len(texts))
    return _Tokens(
        encoded.dictionary.filter(pa.array(is_long, pa.bool_())),
        place[code[kept]].astype(np.int64),
        np.append(0, np.cumsum(counts)).astype(np.int64),
    )


def _counted(tokens: _Tokens, num_columns: int) -> scipy.sparse.csr_array:
    column = hashed_columns(tokens.distinct, num_columns)[tokens.code]
    shape = (len(tokens.indptr) - 1, num_columns)
    ones = np.ones(len(column))
    matrix = scipy.sparse.csr_array((ones, column, tokens.indptr), shape=shape)
    matrix.sum_duplicates()
    row = np.repeat(np.arange(shape[0]), np.diff(matrix.indptr))
    norms = np.sqrt(np.bincount(row, matrix.data**2, minlength=shape[0]))
    matrix.data /= norms[row]
    return matrix.astype(np.float32)

"""The header of a CSV file: its encoding, column names and delimiter."""

import codecs
import csv
import io
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gpn_scale.data.faults import Fault, TableFaults

SAMPLE_BYTES = 1 << 20
"""Number of bytes at the beginning of a file that are examined."""

_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 50
_ZIP = b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class CSVHeader(NamedTuple):
    r"""Names of the columns and delimiter of a CSV file.

    >>> csv_header("id;age\n1;31\n", complete=True)
    CSVHeader(names=['id', 'age'], delimiter=';', num_rows=1)
    """

    names: list[str]
    delimiter: str
    num_rows: int
    """Number of rows of the sample, at most `_SAMPLE_ROWS`."""


def decoded_sample(sample: bytes, complete: bool, name: str) -> str:
    """Return the text at the beginning of a file.

    >>> decoded_sample(b"id,age", True, "people.csv")
    'id,age'

    Args:
        sample: The bytes.
        complete: Whether they are the whole file.
        name: Name of the file in faults.

    Raises:
        TableFaults: the file is not UTF-8 text.
    """
    if sample.startswith(_ZIP):
        raise _fault(name, "the file is an archive or an Excel workbook: save the table as CSV")
    if sample.startswith(_UTF_16):
        raise _fault(name, "the text is UTF-16: save the file as UTF-8")
    if b"\0" in sample:
        raise _fault(name, "the file is binary: expected a CSV or Parquet file")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(sample, complete)
    except UnicodeDecodeError as error:
        value = sample[error.start : error.start + 1].hex()
        advice = f"byte 0x{value} is not UTF-8 text: save the file as UTF-8 CSV, or as Parquet"
        raise _fault(name, advice) from error


def csv_header(text: str, complete: bool) -> CSVHeader | None:
    r"""Return the header, with the delimiter that splits all rows into the same number of values.

    If several delimiters qualify, the one with most values wins, and one that leaves quotes around
    whole values is preferred. A text without rows has no header.

    >>> csv_header("id|age, in years\n1|31\n", complete=True).delimiter
    '|'

    Args:
        text: The beginning of the file.
        complete: Whether it is the whole file.
    """
    candidates = []
    for delimiter in _DELIMITERS:
        rows, quotes_fit = _first_rows(text, delimiter, complete)
        if rows:
            alike = len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
            candidates.append((alike, quotes_fit, len(rows[0]), delimiter, rows))
    if not candidates:
        return None
    *_, delimiter, rows = max(candidates, key=lambda each: each[:3])
    return CSVHeader(names=rows[0], delimiter=delimiter, num_rows=len(rows) - 1)


def _first_rows(text: str, delimiter: str, complete: bool) -> tuple[list[list[str]], bool]:
    """Return the first rows that are not empty, and whether quotes stand around whole values."""
    limit = csv.field_size_limit(SAMPLE_BYTES)
    quotes_fit, rows = False, []
    try:
        for strict in (True, False):
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
            with suppress(csv.Error):
                rows = list(islice((row for row in reader if row), _SAMPLE_ROWS + 1))
                quotes_fit = strict
                break
    finally:
        csv.field_size_limit(limit)
    # The sample may end within its last row.
    return rows if complete or len(rows) > _SAMPLE_ROWS else rows[:-1], quotes_fit


def _fault(file: str, advice: str) -> TableFaults:
    return TableFaults([Fault(file=file, advice=advice)])

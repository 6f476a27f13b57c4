"""Lists of nodes in text files, one whole number per line."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import FileError
from gpn_scale.reading import read_text

_LONGEST = 40


def read_id_list(path: Path | str) -> NodeIds:
    r"""Return the numbers in a text file, one per line.

    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w") as file:
    ...     _ = file.write("7\n0\n")
    ...     file.flush()
    ...     read_id_list(file.name).tolist()
    [7, 0]

    Raises:
        FileError: the file is missing, no regular file, empty, or holds anything else.
    """
    lines: list[str] = []
    try:
        lines = read_text(path).splitlines()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file, or an id like 1.5
            ids: NodeIds = np.loadtxt(lines, dtype=np.int64, ndmin=1)
        if ids.ndim != 1:
            raise ValueError(f"{ids.shape[1]} numbers per line")
    except (OSError, ValueError, OverflowError, Warning) as error:
        reason = _wrong_line(lines) or str(error).partition("\n")[0]
        raise FileError(
            f"{path} cannot be read ({reason}), expected one node id per line"
        ) from error
    return ids


def _wrong_line(lines: Sequence[str]) -> str:
    """Return where the first line that is not one whole number is, or ""."""
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        try:
            if text:
                int(text)
        except ValueError:
            shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
            return f"line {number} is {shown!r}"
    return ""

"""A promise on disk, tied to the model that it was made for."""

import hashlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from gpn_scale.checked_json import read_checked_json, write_checked_json
from gpn_scale.errors import FileError, RunError
from gpn_scale.reading import file_size, open_file
from gpn_scale.triage.promise import PROMISE_CONDITION, Promise

ORDER = "probability x sqrt(p_known, continued)"
"""The score that thresholds refer to; a promise for another order is refused."""
_MODEL_BYTES = 1 << 34
_AGAIN = "make the promise again, or remove the file"


def write_promise(path: Path, promise: Promise, model: Path) -> None:
    """Write a promise for the model in the file `model`.

    >>> from tempfile import TemporaryDirectory
    >>> counts = dict(held_out_nodes=200, answered_nodes=150, answered_errors=3)
    >>> promise = Promise(error=0.05, confidence=0.9, threshold=0.4, **counts)
    >>> with TemporaryDirectory() as folder:
    ...     model = Path(folder, "model.safetensors")
    ...     _ = model.write_bytes(b"weights")
    ...     write_promise(Path(folder, "promise.json"), promise, model)
    ...     read_promise(Path(folder, "promise.json"), model) == promise
    True

    Raises:
        RunError: the file cannot be written.
    """
    values = asdict(promise) | {"answered": promise.answered, "order": ORDER}
    values |= {"model": model_fingerprint(model), "condition": PROMISE_CONDITION}
    try:
        write_checked_json(path, values)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror})", arguments=("run",)
        ) from error


def read_promise(path: Path, model: Path) -> Promise:
    """Read the promise that was made for the model in the file `model`.

    >>> read_promise(Path("no_promise.json"), Path("model.safetensors"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.RunError: no_promise.json cannot be read (...): make the promise again, ...

    Raises:
        RunError: the file is missing or damaged, or belongs to another model.
    """
    try:
        values = read_checked_json(path)
        kinds: dict[str, Any] = {field.name: field.type for field in fields(Promise)}
        promise = Promise(**{name: kind(values[name]) for name, kind in kinds.items()})
        made_for, order = values["model"], values["order"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        message = f"{path} cannot be read ({type(error).__name__}: {error}): {_AGAIN}"
        raise RunError(message, arguments=("run",)) from error
    if made_for != model_fingerprint(model) or order != ORDER:
        raise RunError(
            f"{path} is a promise for another model than {model}: {_AGAIN}", arguments=("run",)
        )
    return promise


def model_fingerprint(model: Path) -> str:
    """Return a hash of a model file, which tells models apart.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "model.safetensors").write_bytes(b"weights")
    ...     len(model_fingerprint(Path(folder, "model.safetensors")))
    32

    Raises:
        RunError: the file cannot be read.
    """
    try:
        if (size := file_size(model)) > _MODEL_BYTES:
            raise FileError(f"it holds {size:,} bytes, expected at most {_MODEL_BYTES:,}")
        with open_file(model) as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except (OSError, FileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunError(
            f"{model} cannot be read ({reason}), expected a model file", arguments=("run",)
        ) from error

"""What a command has computed, without what may differ between two equal calls."""

import hashlib
import re
from pathlib import Path

from hostile.trial import Job

_SECONDS = re.compile(r"[0-9.]+ s\b")


def results_of(job: Job, folder: Path) -> dict[str, str]:
    """Return a hash of each file that a job has written; "missing" for one that it has not."""
    return {name: _hash(folder / name) for name in job.outputs if name != "stdout"}


def printed_result(job: Job, printed: str) -> dict[str, str]:
    """Return a hash of what a job has printed, without times, if that is its result."""
    return (
        {"stdout": _digest(_SECONDS.sub("", printed).encode())} if "stdout" in job.outputs else {}
    )


def _hash(path: Path) -> str:
    if not path.exists():
        return "missing"
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path).replace_schema_metadata()
        return _digest(repr(table.to_pydict()).encode())
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            tensors = [(name, file.get_tensor(name)) for name in sorted(file.keys())]
        return _digest(b"".join(name.encode() + array.tobytes() for name, array in tensors))
    return _digest(path.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()

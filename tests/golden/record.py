"""What the jobs of `jobs.py` compute, compared with `golden.json`.

`python tests/golden/record.py` prints what differs from the record and then ends with code 1;
`--write` records anew. A change of names or interfaces must leave the record as it is.

Machines differ in the last bits of floating-point numbers. So the record has two parts:

- `results`, compared on every platform: names, types and shapes; hashes of ids and of all else
  that is exact; of real numbers a sum, a mean size and a few entries, within `TOLERANCE`.
- `exact`, by platform (processor, its vector instructions, versions of the libraries that
  compute): hashes of the very bytes of each array, and metrics to six digits. They are compared
  only where the record has the platform at hand; `--write` adds it, and drops the other platforms
  if the results have changed.
"""

import argparse
import hashlib
import json
import math
import platform
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden.jobs import JOBS, Results, Workshop

RECORD = Path(__file__).with_name("golden.json")
TOLERANCE = 1e-3
"""Of real numbers between platforms, relative to the mean size in their array."""
METRIC_TOLERANCE = 0.02
"""Of metrics between platforms: a node or two may be ranked or classified otherwise."""
DECIDED_BY_ROUNDING = ("predicted_class", "contributor", "contributor_class", "best_epoch")
"""Whole numbers that follow from real ones, so that they are exact on one platform only."""
Recorded = dict[str, dict[str, Any]]
"""By job and name."""


def platform_key() -> str:
    """What the last bits of a result depend on."""
    return (
        f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()} "
        f"{torch.backends.cpu.get_cpu_capability()} torch {torch.__version__} "
        f"numpy {np.__version__} numba {numba.__version__}"
    )


def exact_value(value: Any) -> Any:
    """A hash of an array's bytes, or a number to six digits."""
    if isinstance(value, np.ndarray):
        header = f"{value.dtype.str} {value.shape} ".encode()
        content = np.ascontiguousarray(value).tobytes()
        return hashlib.blake2b(header + content, digest_size=8).hexdigest()
    return round(value, 6) if isinstance(value, float) else value


def summary(name: str, value: Any) -> Any:
    """What can be compared on every platform."""
    if not isinstance(value, np.ndarray):
        return exact_value(value)
    facts: dict[str, Any] = {"dtype": value.dtype.str, "shape": list(value.shape)}
    if value.dtype.kind == "f":
        numbers = value.astype(np.float64).ravel()
        places = np.unique(np.linspace(0, max(numbers.size - 1, 0), 4).astype(int))
        facts["sum"] = rounded(numbers.sum())
        facts["mean_size"] = rounded(np.abs(numbers).sum() / max(numbers.size, 1))
        facts["entries"] = [rounded(number) for number in numbers[places[: numbers.size]]]
    elif name.split()[-1] not in DECIDED_BY_ROUNDING:
        facts["hash"] = exact_value(value)
    return facts


def rounded(number: float) -> float:
    """To five significant digits."""
    assert math.isfinite(number), number
    return float(f"{number:.5g}")


def job_differences(job: str, results: Results, record: Mapping[str, Any]) -> list[str]:
    """One line for each result of the job that is not as recorded, with its name."""
    recorded: Mapping[str, Any] = record["results"].get(job, {})
    exact = record["exact"].get(platform_key(), {}).get(job, {})
    lines = [f"{job}: {name}: is gone" for name in recorded if name not in results]
    for name, value in results.items():
        old, new = recorded.get(name, "nothing"), summary(name, value)
        if name not in recorded or (
            exact_value(value) != exact[name] if name in exact else not alike(name, old, new)
        ):
            hint = " (elsewhere in its bytes)" if old == new else ""
            lines.append(f"{job}: {name}: recorded {old}, now {new}{hint}")
    return lines


def alike(name: str, old: Any, new: Any) -> bool:
    """Whether two summaries may be of one result on two platforms."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        if isinstance(old, float) and isinstance(new, float):
            return abs(old - new) <= METRIC_TOLERANCE * max(1.0, abs(old))
        return name in DECIDED_BY_ROUNDING or (type(old) is type(new) and old == new)
    same = ("dtype", "shape", "hash")
    if [old.get(fact) for fact in same] != [new.get(fact) for fact in same]:
        return False
    if "sum" not in old:
        return True
    allowed = TOLERANCE * old["mean_size"]
    pairs = zip(
        [*old["entries"], old["mean_size"]], [*new["entries"], new["mean_size"]], strict=True
    )
    near = all(abs(a - b) <= max(allowed, TOLERANCE * abs(a)) for a, b in pairs)
    return near and abs(old["sum"] - new["sum"]) <= allowed * math.prod(old["shape"])


def record_text(record: Mapping[str, Any]) -> str:
    """The record as JSON with one result a line."""

    def lines(value: Mapping[str, Any], depth: int) -> str:
        if depth == 0:
            return json.dumps(value, allow_nan=False)
        parts = (f"{json.dumps(key)}: {lines(value[key], depth - 1)}" for key in value)
        return "{\n" + ",\n".join(parts) + "\n}"

    parts = {"results": lines(record["results"], 2), "exact": lines(record["exact"], 3)}
    return "{\n" + ",\n".join(f'"{name}": {text}' for name, text in parts.items()) + "\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all jobs and compares or records them; 1 if something differs from the record."""
    parser = argparse.ArgumentParser(prog="record.py", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="record what the jobs compute now")
    parser.add_argument("--threads", type=int, default=1, help="of each build of a store")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"results": {}, "exact": {}}
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder), options.threads)
        results = {}
        for job in JOBS:
            began = time.monotonic()
            results[job] = workshop.results(job)
            sys.stderr.write(f"{job}: {time.monotonic() - began:.1f} s\n")
    differences = [
        line for job in results for line in job_differences(job, results[job], record)
    ] + [f"{job}: is gone" for job in record["results"] if job not in results]
    if options.write:
        RECORD.write_text(record_text(updated(record, results, keep_others=not differences)))
    sys.stdout.writelines(f"{line}\n" for line in differences)
    return 1 if differences and not options.write else 0


def updated(
    record: Mapping[str, Any], results: Mapping[str, Results], *, keep_others: bool
) -> dict[str, Any]:
    """The record of these results; those of other platforms stay only if nothing has changed."""
    exact = {
        job: {name: exact_value(value) for name, value in named.items()}
        for job, named in results.items()
    }
    summaries = {
        job: {name: summary(name, value) for name, value in named.items()}
        for job, named in results.items()
    }
    if keep_others:
        return {
            "results": record["results"],
            "exact": record["exact"] | {platform_key(): exact},
        }
    return {"results": summaries, "exact": {platform_key(): exact}}


if __name__ == "__main__":
    sys.exit(main())

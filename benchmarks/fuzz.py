"""Does any file make a reader fail with anything but one sentence?

    pip install gpn-scale[fuzz]
    python benchmarks/fuzz.py --work DIR [--seconds 30] [--targets npz,csv]

Coverage-guided fuzzing (atheris) of every reader in `fuzz_targets.py`, `--seconds` for each, from
valid files. What reached new code stays in DIR/corpus, so that a later call goes on from there. A
finding is any error or warning but a `GpnScaleError`, a wrong result, a crash, 20 seconds without
an answer, or 4 GB of memory; its bytes are kept in DIR/findings. Prints a table; exits with 1 if
there is a finding.
"""

import argparse
import hashlib
import json
import random
import re
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from types import TracebackType

_INSTRUMENTED = ["gpn_scale", "zipfile", "pickletools", "numpy.lib"]
_LARGEST_FILE = 1 << 16
_LIMITS = ("-timeout=20", "-rss_limit_mb=4096", f"-max_len={_LARGEST_FILE}", "-verbosity=1")
_UNEDITABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError, struct.error)
"""Errors of an edit whose content has lost its format."""
_EDITS = 0.7
"""Fraction of changes that know the format, where a target has such."""
_COVERED = re.compile(r"cov: (\d+) ")
_RUNS = re.compile(r"Done (\d+) runs? in (\d+) second")


class Findings:
    """Notes errors within a block, each place once, and lets the program go on.

    Args:
        folder: Where the bytes of findings are kept.
        target: Name of the reader.
    """

    def __init__(self, folder: Path, target: str) -> None:
        self._folder, self._target = folder, target
        self._places: set[str] = set()
        self.content = b""
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "/gpn_scale/" in frame.filename] or frames
        place = f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}"
        if place not in self._places:
            self._places.add(place)
            digest = hashlib.blake2b(place.encode(), digest_size=6).hexdigest()
            path = self._folder / f"{self._target}-{digest}.bin"
            path.write_bytes(self.content)
            note = {"target": self._target, "place": place, "error": str(error)[:200]}
            path.with_suffix(".json").write_text(json.dumps(note) + "\n", encoding="utf-8")
        return True


def work_on(name: str, work: Path, folder: Path, seconds: int) -> None:
    """Fuzz one target in this process, which ends here, with scratch files in `folder`."""
    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        from fuzz_targets import TARGETS, accepts
    warnings.simplefilter("error")
    target, corpus = TARGETS[name], work / "corpus" / name
    findings = Findings(work / "findings", name)
    corpus.mkdir(parents=True, exist_ok=True)
    (folder / "seeds").mkdir()
    for seed in target.seeds(folder / "seeds"):
        assert accepts(target, seed, folder), f"a seed of {name} is refused"
        (corpus / f"seed-{hashlib.blake2b(seed, digest_size=8).hexdigest()}").write_bytes(seed)

    def try_content(content: bytes) -> None:
        findings.content = content
        with findings:
            accepts(target, content, folder)

    def mutate(content: bytes, largest: int, rng_seed: int) -> bytes:
        rng = random.Random(rng_seed)
        if target.mutate is not None and rng.random() < _EDITS:
            try:
                return target.mutate(content, rng)[:largest]
            except _UNEDITABLE:
                pass
        return bytes(atheris.Mutate(content, largest))

    options = [*_LIMITS, f"-max_total_time={seconds}", f"-artifact_prefix={work}/findings/{name}-"]
    edits = {} if target.mutate is None else {"custom_mutator": mutate}
    atheris.Setup([sys.argv[0], *options, str(corpus)], try_content, **edits)
    atheris.Fuzz()


def fuzz(name: str, work: Path, seconds: int) -> dict[str, object]:
    """Fuzz one target in a process of its own, and return what happened."""
    command = [sys.executable, __file__, "--worker", name, "--work", str(work)]
    command += ["--seconds", str(seconds), "--scratch"]
    with tempfile.TemporaryDirectory() as scratch:  # libFuzzer ends a process without clean-up
        done = subprocess.run([*command, scratch], capture_output=True, text=True, errors="replace")
    (work / f"{name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    runs, covered = _RUNS.findall(done.stderr), _COVERED.findall(done.stderr)
    notes = [path for path in (work / "findings").glob(f"{name}-*") if path.suffix != ".json"]
    return {
        "target": name,
        "seconds": int(runs[-1][1]) if runs else 0,
        "files": int(runs[-1][0]) if runs else 0,
        "covered": int(covered[-1]) if covered else 0,
        "corpus": len(list((work / "corpus" / name).iterdir())),
        "findings": len(notes) + (done.returncode != 0 and not notes),
    }


def main() -> None:
    """Fuzz all targets, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="corpus and findings")
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--targets", default="", help="names with commas (default: all)")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.worker:
        work_on(options.worker, options.work.resolve(), options.scratch, options.seconds)
    from fuzz_targets import TARGETS

    names = options.targets.split(",") if options.targets else list(TARGETS)
    if unknown := set(names) - TARGETS.keys():
        parser.error(f"no target {min(unknown)!r}; expected {', '.join(TARGETS)}")
    columns = ("target", "seconds", "files", "covered", "corpus", "findings")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    total = 0
    for name in names:
        facts = fuzz(name, options.work, options.seconds)
        print(f"| {' | '.join(str(facts[key]) for key in columns)} |", flush=True)
        total += int(str(facts["findings"]))
    if total:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

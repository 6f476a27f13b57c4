"""How do time and memory of minibatch GPN grow with the graph, from precompute to prediction?

    python benchmarks/bench_minibatch_scaling.py --sizes 1000000,3000000,10000000 --work DIR
    python benchmarks/bench_minibatch_scaling.py --work DIR --report

The first call makes synthetic graphs (mean degree 10, 64 features, 16 classes, 5 % of the nodes
labelled), computes the rows of the labelled nodes, trains for a fixed number of epochs and predicts
all nodes. Each stage is a separate process whose memory is sampled every 50 ms from outside,
anonymous memory apart from mapped files. A finished stage prints one JSON line and appends it to
DIR/results.jsonl; a later call with the same settings runs only what is missing. The second call
writes a table and a plot of all results.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from minibatch_scaling_report import Record, Records, write_report

# This process starts the stages and stays small: they import what they need themselves.

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("graph", "precompute", "train", "predict")
CLASSES, FEATURES, DEGREE = 16, 64, 10
TRAIN_FRACTION, VAL_FRACTION = 0.04, 0.01
K, CLUSTERS, TELEPORT, PUSH_TOLERANCE = 32, 32, 0.2, 1e-4
PREDICT_BYTES = 4 * 10**9
RNG_SEED = 1
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """One graph size and the place of its files."""

    nodes: int
    work: Path
    threads: int
    epochs: int

    @property
    def name(self) -> str:
        """Name of the graph's folder and of all files made from it."""
        return f"nodes{self.nodes}"

    @property
    def facts(self) -> dict[str, int]:
        """Settings that a finished stage must have to be reused."""
        return {"threads": self.threads, "epochs": self.epochs}

    def path(self, kind: str, suffix: str = "") -> Path:
        """Return the path of a file or directory of this size, and create its parent."""
        (self.work / kind).mkdir(parents=True, exist_ok=True)
        return self.work / kind / f"{self.name}{suffix}"


class Phases:
    """Start and end of a stage's phases, on the clock that all processes share."""

    def __init__(self) -> None:
        self.spans: dict[str, tuple[float, float]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Record one phase."""
        began = time.monotonic()
        yield
        self.spans[name] = (began, time.monotonic())


def make_graph(setting: Setting, phases: Phases) -> Record:
    """Draw the graph, hide all labels but 5 %, and save it as a folder of mapped arrays."""
    import numpy as np

    from gpn_scale.data.graph import MISSING_LABEL, Split
    from gpn_scale.data.graph_folder import save_graph
    from gpn_scale.data.splits import stratified_split
    from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph

    with phases.of("draw"):
        graph = synthetic_graph(
            SyntheticConfig(
                nodes=setting.nodes,
                classes=CLASSES,
                unseen_classes=0,
                features=FEATURES,
                degree=DEGREE,
                isolated=0.0,
                foreign=0.0,
                rng_seed=RNG_SEED,
            )
        )
        graph = stratified_split(graph, train=TRAIN_FRACTION, val=VAL_FRACTION, rng_seed=RNG_SEED)
    assert graph.split is not None
    train, val = graph.split.train, graph.split.val
    np.save(setting.path("truth", ".npy"), graph.labels)
    labels = np.full_like(graph.labels, MISSING_LABEL)
    for subset in (train, val):
        labels[subset] = graph.labels[subset]
    split = Split(train=train, val=val, test=np.empty(0, np.int64))
    with phases.of("save"):
        save_graph(replace(graph, labels=labels, split=split), setting.path("graphs"))
    return {"edges": graph.num_edges, "train": len(train), "val": len(val)}


def precompute_command(setting: Setting) -> list[str]:
    """Return the command line of precompute."""
    command = f"-m precompute --k {K} --clusters {CLUSTERS} --teleport {TELEPORT} --method push"
    command += f" --push-tolerance {PUSH_TOLERANCE} --roots labelled --threads {setting.threads}"
    store = str(setting.path("stores"))
    where = ["--data-dir", str(setting.work / "graphs"), "--out", store, "--overwrite"]
    return [sys.executable, *command.split(), "--dataset", setting.name, *where]


def train(setting: Setting, phases: Phases) -> Record:
    """Train for a fixed number of epochs and save the model."""
    import torch

    from gpn_scale.config import override
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.recipes import in_minibatches, recipe_for

    torch.set_num_threads(setting.threads)
    graph = load_graph(setting.name, setting.work / "graphs")
    recipe = in_minibatches(recipe_for(setting.name, graph), graph)
    changes = {"model": "GPN", "diffusion.teleport": TELEPORT, "train.epochs": setting.epochs}
    config = override(recipe, [(key, str(value)) for key, value in changes.items()])
    classifier = GPNClassifier(config, device="cpu")
    with phases.of("set up"):
        trainer = classifier.trainer(graph, setting.path("stores"))
    ends, accuracies = [time.monotonic()], []

    def observe(record: Any) -> None:
        ends.append(time.monotonic())
        accuracies.append(record.val_accuracy)

    with phases.of("epochs"):
        classifier.fit_trainer(trainer, observe=observe)
    classifier.save(setting.path("models", ".safetensors"))
    seconds = [stop - start for start, stop in pairwise(ends)]
    facts = {"epoch_seconds": seconds, "val_accuracy": max(accuracies)}
    # Outside all phases, since it reads every row again.
    return facts | trainer.task.facts() | {"config": config.to_dict()}


def predict(setting: Setting, phases: Phases) -> Record:
    """Predict all nodes by exact diffusion and write predictions.parquet."""
    import numpy as np
    import torch

    from gpn_scale.data.datasets import load_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.prediction_table import write_predictions

    torch.set_num_threads(setting.threads)
    graph = load_graph(setting.name, setting.work / "graphs")
    classifier = GPNClassifier.load(setting.path("models", ".safetensors"), device="cpu")
    table = setting.path("predictions", ".parquet")
    with phases.of("predict"):
        prediction = classifier.predict(graph, memory_bytes=PREDICT_BYTES, scratch=table.parent)
    with phases.of("write"):
        write_predictions(table, prediction, graph)
    right = prediction.predicted_class == np.load(setting.path("truth", ".npy"), mmap_mode="r")
    return {"accuracy": float(right[graph.labels < 0].mean())}


STAGE_OF: dict[str, Callable[[Setting, Phases], Record]] = {
    "graph": make_graph,
    "train": train,
    "predict": predict,
}


class Sample(NamedTuple):
    """Memory of a process at one moment, in bytes."""

    at: float
    anonymous: int
    resident: int
    peak: int


def memory_of(process: int) -> Sample | None:
    """Return the memory of another process now; None if it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="ignore")
        facts = dict(line.split(":", 1) for line in text.splitlines())
        kib = {name: int(facts[name].split()[0]) for name in ("RssAnon", "RssShmem")}
        resident, peak = (int(facts[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))
    except (OSError, KeyError):
        return None
    return Sample(time.monotonic(), sum(kib.values()) << 10, resident, peak)


def watched(command: list[str], log: Path, threads: int) -> Record:
    """Run a process; return its time, memory and phases, and the JSON that it prints."""
    samples, lines = [], []
    count = str(threads)
    environment = os.environ | {"OMP_NUM_THREADS": count, "NUMBA_NUM_THREADS": count}
    load, began = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout

    def listen() -> None:
        with output, log.open("w", encoding="utf-8") as file:
            for line in output:
                lines.append((time.monotonic(), line))
                print(f"{lines[-1][0] - began:9.1f} {line}", end="", file=file, flush=True)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        while process.poll() is None:
            if (sample := memory_of(process.pid)) is not None:
                samples.append(sample)
            time.sleep(PAUSE)
    finally:
        process.kill()  # nothing to do unless this process was interrupted
    ended = time.monotonic()
    listener.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}: see {log}")
    printed = [json.loads(line) for _, line in lines if line.startswith('{"phases"')]
    result = printed[-1] if printed else {"phases": precompute_phases(lines, began, ended)}
    spans = result.pop("phases")
    return {
        "seconds": ended - began,
        "anonymous_gb": max(sample.anonymous for sample in samples) / 1e9,
        "peak_gb": max(sample.peak for sample in samples) / 1e9,
        "phases": {name: phase_facts(samples, *span) for name, span in spans.items()},
        "load": load,
        **result,
    }


def phase_facts(samples: list[Sample], start: float, stop: float) -> Record:
    """Return the time of a phase and the most memory within it (around it, if it is short)."""
    within = [each for each in samples if start - PAUSE <= each.at <= stop + PAUSE]
    return {
        "seconds": stop - start,
        "anonymous_gb": max((each.anonymous for each in within), default=0) / 1e9,
        "file_gb": max((each.resident - each.anonymous for each in within), default=0) / 1e9,
        "total_gb": max((each.resident for each in within), default=0) / 1e9,
    }


def precompute_phases(
    lines: list[tuple[float, str]], began: float, ended: float
) -> dict[str, tuple[float, float]]:
    """Return the phases of precompute, recognised by the lines that it prints."""
    starts = {"open": began}
    for at, line in lines:
        if " nodes, " in line and len(starts) == 1:
            starts["plan"] = at
        elif line.startswith("  disk "):  # the last line of the plan
            starts["partition"] = at
        elif line.startswith("diffusing"):
            starts["rows"] = at
    stops = [*list(starts.values())[1:], ended]
    spans = dict(zip(starts, zip(starts.values(), stops, strict=True), strict=True))
    return spans | {"all": (starts.get("plan", began), ended)}


def run(setting: Setting, done: Records, results: Path) -> None:
    """Run the stages of one size that are not done yet, one after the other."""
    for stage in STAGES:
        old = done.get((setting.nodes, stage))
        if old is not None and old["settings"] == setting.facts:
            continue
        command = precompute_command(setting)
        if stage != "precompute":
            command = [sys.executable, __file__, "--stage", stage, "--work", str(setting.work)]
            command += ["--sizes", str(setting.nodes), "--epochs", str(setting.epochs)]
            command += ["--threads", str(setting.threads)]
        record: Record = {"nodes": setting.nodes, "stage": stage, "settings": setting.facts}
        record |= {"commit": commit()}
        record |= watched(command, setting.path("logs", f"-{stage}.log"), setting.threads)
        with results.open("a", encoding="utf-8") as file:
            print(json.dumps(record), file=file)
        print(json.dumps(record), flush=True)


def compile_kernels(work: Path, threads: int) -> None:
    """Run a tiny precompute, so that no measured stage compiles."""
    options = "-m precompute --dataset synthetic:nodes=500,classes=3 --method push --overwrite"
    command = [sys.executable, *options.split(), "--out", str(work / "compiled"), "--k", "8"]
    command += ["--threads", str(threads)]
    watched(command, work / "compiled.log", threads)


def commit() -> str:
    """Return the commit that is measured, with `dirty` if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def read_records(results: Path) -> Records:
    """Read what earlier calls have measured."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return {(record["nodes"], record["stage"]): record for record in records}


def main() -> None:
    """Run what is not done yet, or one stage (`--stage`), or write the report (`--report`)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", default="1000000,3000000,10000000", help="numbers of nodes")
    parser.add_argument("--work", type=Path, required=True, help="about 8 GB for 10M nodes")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3, help="training epochs (default: 3)")
    parser.add_argument("--report", type=Path, nargs="?", const=ROOT / "benchmarks/results")
    parser.add_argument("--stage", choices=STAGE_OF, help=argparse.SUPPRESS)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in options.sizes.split(",")]
    settings = [Setting(nodes, work, options.threads, options.epochs) for nodes in sizes]
    results = work / "results.jsonl"
    if options.stage:
        phases = Phases()
        facts = STAGE_OF[options.stage](settings[0], phases)
        print(json.dumps({"phases": phases.spans, **facts}))
    elif options.report:
        write_report(read_records(results), options.report)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # and the stage with it
        compile_kernels(work, options.threads)
        for setting in settings:
            run(setting, read_records(results), results)


if __name__ == "__main__":
    main()

"""A small service of raw tables whose ids are hostile, for the tests of the explorer."""

import csv
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.train import main as train

HOSTILE_IDS = (
    "<script>window.wasRun=1</script>",
    "<img src=x onerror=window.wasRun=1>",
    "a/b\"c'd",
    "50 % & #1?x=y+z",
    "\u202egnirts\u200f",
    "..",
)
COUNT = 120
CLASSES = ("legit", "mule", "fraud")


@dataclass(frozen=True)
class RunningService:
    """A service that answers, and the run behind it."""

    address: str
    run: Path

    def get(self, path, **query):
        """The answer to a GET request."""
        with urllib.request.urlopen(f"{self.address}{path}?{urlencode(query)}") as answer:
            return json.load(answer)

    def post(self, path, body):
        """The answer to a POST request."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), headers=headers
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def decisions(self):
        """The decisions in the file of the run, the oldest first."""
        path = self.run / "decisions.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [each for each in map(json.loads, lines) if "decision" in each]


def trained_run(folder):
    """A finished run of a graph with raw columns, three classes and hostile ids."""
    rng = np.random.default_rng(3)
    ids = [f"n{number:03d}" for number in range(COUNT - len(HOSTILE_IDS))] + list(HOSTILE_IDS)
    label = np.arange(COUNT) % len(CLASSES)
    amount = 4.0 * label + rng.normal(size=COUNT)
    country = np.where(rng.random(COUNT) < 0.8, np.array(["DE", "FR", "IT"])[label], "PL")
    verdict = [CLASSES[each] if rng.random() < 0.8 else "" for each in label]
    nodes = zip(ids, amount.round(2), country, verdict, strict=True)
    targets = [(node + 3 * step) % COUNT for node in range(COUNT) for step in (1, 2)]
    edges = [(ids[place // 2], ids[target]) for place, target in enumerate(targets)]
    _write(folder / "nodes.csv", ("id", "amount", "country", "verdict"), nodes)
    _write(folder / "edges.csv", ("source", "target"), edges)
    tables = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
    roles = ["--id", "id", "--label", "verdict", "--source", "source", "--target", "target"]
    assert import_graph([*tables, *roles, "--out", str(folder / "graphs" / "shop")]) == 0
    data = ["--dataset", "shop", "--data-dir", str(folder / "graphs")]
    settings = ["--mode", "exact", "--epochs", "15", "--threads", "1"]
    assert train([*data, *settings, "--out", str(folder / "run")]) == 0
    return folder / "run"


def _write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


@contextmanager
def running(run):
    """The service of a run in a process of its own, which ends with the context."""
    command = [sys.executable, "-m", "launch.serve", "--run", str(run), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    log = run.parent / "service.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield RunningService(_address(process, log), run)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _address(process, log):
    """The address that the service prints once it answers."""
    while not (match := re.search(r"at (http://\S+)/\s", text := log.read_text("utf-8"))):
        assert process.poll() is None, text
        time.sleep(0.1)
    return match[1]

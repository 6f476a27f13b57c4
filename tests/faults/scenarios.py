"""Commands on a tiny graph: what is there before, the call, and the call after a failure."""

import contextlib
import io
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from unittest import mock

from gpn_scale import disk
from gpn_scale.cli.evaluate import main as evaluate
from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.report import main as report
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.npz import write_npz
from gpn_scale.disk import Disk
from precompute.cli import main as precompute
from tests.data.tables import EDGES, NAMES, NODES, write_csv
from tests.faults.recording_disk import Tree, read_tree

Command = Callable[[Sequence[str]], int]
GRAPH = "synthetic:nodes=40,classes=2,unseen_classes=0,features=4,separation=4"
DATASET = ["--dataset", "tiny", "--data-dir", "graphs"]
STORE = [*DATASET, "--teleport", "0.1", "--threads", "1", "--out", "store"]
RUN = [*DATASET, "--epochs", "1", "--set", "train.warmup_steps=1", "--threads", "1", "--out", "run"]
RUN += ["--checkpoint-seconds", "0"]
EXACT = [*RUN, "--mode", "exact"]
MINIBATCH = [*RUN, "--mode", "minibatch", "--ppr", "store"]
PREDICT = ["--run", "run", "--threads", "1", "--out", "predicted.parquet"]
TRIAGE = ["--run", "run", "--threads", "1", "--review", "5", "--label-next", "3", "--out", "lists"]
REPORT = ["--run", "run", "--threads", "1", "--png"]
EVALUATE = ["--datasets", "tiny", "--data-dir", "graphs", "--models", "LP,VGCN", "--splits", "1"]
EVALUATE += ["--inits", "1", "--experiment", "clean,isolated", "--set", "train.epochs=1"]
EVALUATE += ["--out", "matrix"]
IMPORT = ["--nodes", "things.csv", "--edges", "links.csv", "--out", "graphs/bank"]
IMPORT += [word for name, column in NAMES.items() for word in (f"--{name}", column)]
PART = [*STORE, "--k", "8", "--part"]
UPDATE = ["update", "store", *DATASET, "--changes", "changes.csv", "--write-graph", "graphs/later"]
UPDATE += ["--threads", "1"]
VOLATILE = ("run/tensorboard/*", "matrix/locks/*")
"""Files that a run which was continued has more of, and locks, which hold nothing."""


@dataclass(frozen=True)
class Scenario:
    """A command, what it finds, and the call that continues after a failure."""

    name: str
    command: Command
    arguments: list[str]
    again: list[str]
    """Arguments of the call after a failure."""
    before: tuple[tuple[Command, list[str]], ...] = ()
    """Calls whose files the command finds."""
    may_succeed: bool = False
    """Whether it may end well though a call has failed, since it tries again by itself, and leave
    files of the old state to the next call."""


SCENARIOS = (
    Scenario("precompute", precompute, [*STORE, "--k", "8"], [*STORE, "--k", "8", "--resume"]),
    Scenario(
        "precompute --overwrite",
        precompute,
        [*STORE, "--k", "8", "--overwrite"],
        [*STORE, "--k", "8", "--overwrite"],
        ((precompute, [*STORE, "--k", "4"]),),
    ),
    Scenario(
        "update",
        precompute,
        UPDATE,
        UPDATE,
        ((precompute, [*STORE, "--k", "8"]),),
        may_succeed=True,
    ),
    Scenario(
        "compact",
        precompute,
        ["compact", "store"],
        ["compact", "store"],
        ((precompute, [*STORE, "--k", "8"]), (precompute, UPDATE)),
        may_succeed=True,
    ),
    Scenario(
        "part",
        precompute,
        [*PART, "2/2"],
        [*PART, "2/2"],
        ((precompute, [*PART, "1/2"]),),
    ),
    Scenario(
        "finish",
        precompute,
        ["finish", "store"],
        ["finish", "store"],
        ((precompute, [*PART, "1/2"]), (precompute, [*PART, "2/2"])),
    ),
    Scenario("train, exact", train, EXACT, [*EXACT, "--resume"]),
    Scenario(
        "train --overwrite, exact",
        train,
        [*EXACT, "--overwrite"],
        [*EXACT, "--overwrite"],
        ((train, [*EXACT, "--seed", "5", "--model", "GPN"]),),
    ),
    Scenario(
        "train, minibatch",
        train,
        MINIBATCH,
        [*MINIBATCH, "--resume"],
        ((precompute, [*STORE, "--k", "8"]),),
    ),
    Scenario("predict", predict, PREDICT, [*PREDICT, "--overwrite"], ((train, EXACT),)),
    Scenario(
        "predict --overwrite, CSV",
        predict,
        ["--run", "run", "--threads", "1", "--out", "predicted.csv", "--overwrite"],
        ["--run", "run", "--threads", "1", "--out", "predicted.csv", "--overwrite"],
        (
            (train, [*EXACT, "--seed", "5", "--model", "GPN"]),
            (predict, ["--run", "run", "--threads", "1", "--out", "predicted.csv"]),
            (train, [*EXACT, "--overwrite"]),
        ),
    ),
    Scenario("report", report, REPORT, REPORT, ((train, EXACT),)),
    Scenario(
        "triage",
        triage,
        [*TRIAGE, "--error-among-answered", "0.9"],
        [*TRIAGE, "--error-among-answered", "0.9", "--overwrite"],
        ((train, EXACT),),
    ),
    Scenario("evaluate", evaluate, EVALUATE, EVALUATE),
    Scenario("import", import_graph, IMPORT, [*IMPORT, "--overwrite"]),
    Scenario(
        "import --overwrite",
        import_graph,
        [*IMPORT, "--overwrite"],
        [*IMPORT, "--overwrite"],
        ((import_graph, [*IMPORT, "--drop", "country"]),),
    ),
)


def some_changes(graph: Graph) -> str:
    """Return a table that removes the first edge of a graph, and adds one."""
    neighbours = graph.indices[: graph.indptr[1]].tolist()
    stranger = min({*range(1, graph.num_nodes)} - {*neighbours})
    return f"source,target,change\n0,{neighbours[0]},remove\n0,{stranger},add\n"


class Bench:
    """A folder in which a scenario is tried again and again.

    The clock stands still and memory is not measured, so that equal runs write equal bytes.

    Args:
        scenario: The scenario.
        folder: An empty folder, which is that of all calls.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario, self.folder = scenario, folder
        graph = load_graph(GRAPH)
        write_npz(graph, folder / "tiny.npz")
        (folder / "changes.csv").write_text(some_changes(graph))
        (folder / "graphs").mkdir()
        os.replace(folder / "tiny.npz", folder / "graphs" / "tiny.npz")
        write_csv(folder / "things.csv", NODES)
        write_csv(folder / "links.csv", EDGES)
        for command, arguments in scenario.before:
            code, errors = self.call(command, arguments)
            assert code == 0, errors
        self.before = read_tree(folder)

    def call(
        self, command: Command, arguments: Sequence[str], system: Disk | None = None
    ) -> tuple[int, str]:
        """Return the exit code of a call, and what it says on standard error."""
        errors = io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.chdir(self.folder))
            stack.enter_context(contextlib.redirect_stderr(errors))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            stack.enter_context(standing_still())
            stack.enter_context(mock.patch.object(disk, "system", system or Disk()))
            code = command(arguments)
        return code, errors.getvalue()

    def run(self, system: Disk | None = None) -> tuple[int, str]:
        """Make the call of the scenario."""
        return self.call(self.scenario.command, self.scenario.arguments, system)

    def repeat(self) -> tuple[int, str]:
        """Make the call that continues after a failure."""
        return self.call(self.scenario.command, self.scenario.again)

    def restore(self, tree: Tree | None = None) -> None:
        """Put a state into the folder; None for that before the call."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for name, content in sorted((self.before if tree is None else tree).items()):
            if content is None:
                (self.folder / name).mkdir()
            else:
                (self.folder / name).write_bytes(content)


@contextlib.contextmanager
def standing_still() -> Iterator[None]:
    """Stop the clock and the measurement of memory."""
    values = {
        "gpn_scale.memory.resident_bytes": (1 << 20, 1 << 20),
        "gpn_scale.experiments.training_cost.resident_bytes": (1 << 20, 1 << 20),
        "gpn_scale.cli.train.anonymous_bytes": 1 << 20,
        "time.monotonic": 1.0,
        "time.time": 1.0,
    }
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(mock.patch(name, return_value=value))
        clock = stack.enter_context(mock.patch("gpn_scale.experiments.training_cost.time"))
        clock.perf_counter.return_value = clock.process_time.return_value = 1.0
        yield


def lasting(tree: Tree) -> Tree:
    """Return the files that equal runs write alike."""
    return {
        name: content
        for name, content in tree.items()
        if not any(fnmatch(name, pattern) for pattern in VOLATILE)
    }


def difference(left: Tree, right: Tree) -> list[str]:
    """Return the names of files in which two states differ."""
    first, second, missing = lasting(left), lasting(right), b"missing"
    names = sorted({*first, *second})
    return [name for name in names if first.get(name, missing) != second.get(name, missing)]

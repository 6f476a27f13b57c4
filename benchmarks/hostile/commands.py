"""The commands by name: how they run in this process, and as processes of their own."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

_IMPORTED_LATER = ("torch.utils.tensorboard", "gpn_scale.serve.server", "precompute.build")
ROOT = Path(__file__).resolve().parents[2]
"""The repository."""


class Command(NamedTuple):
    """A command of the library."""

    main: Callable[[Sequence[str]], int]
    script: tuple[str, ...]
    """Arguments of Python that start it as a process of its own."""
    parser: Callable[[], argparse.ArgumentParser]


def load_commands() -> dict[str, Command]:
    """Import all commands, with what they import later, and return them by name."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process with threads cannot be forked
    for module in _IMPORTED_LATER:
        import_module(module)
    from gpn_scale.cli import evaluate, import_graph, predict, report, serve, train, triage
    from gpn_scale.cli.arguments import training_parser
    from gpn_scale.cli.evaluate_options import evaluation_parser
    from gpn_scale.cli.import_options import import_parser
    from precompute.arguments import ppr_parser
    from precompute.cli import COMMANDS, _store_parser
    from precompute.cli import main as precompute_main
    from precompute.update_arguments import update_parser

    launch = partial(Path, ROOT / "launch")
    commands = {
        name: Command(
            lambda words, name=name: precompute_main([name, *words]),
            ("-m", "precompute", name),
            update_parser if name == "update" else partial(_store_parser, name),
        )
        for name in COMMANDS[1:]  # without the name of the default
    }
    commands["precompute"] = Command(precompute_main, ("-m", "precompute"), ppr_parser)
    for name, module, parser in (
        ("import", import_graph, import_parser),
        ("train", train, training_parser),
        ("predict", predict, predict.prediction_parser),
        ("evaluate", evaluate, evaluation_parser),
        ("report", report, report.report_parser),
        ("triage", triage, triage.triage_parser),
        ("serve", serve, serve.serve_parser),
    ):
        script = f"{module.__name__.rpartition('.')[2]}.py"
        commands[name] = Command(module.main, (str(launch(script)),), parser)
    return commands


def python_command(command: Command, words: Sequence[str]) -> list[str]:
    """Return the arguments of a process that runs a command."""
    return [sys.executable, *command.script, *words]

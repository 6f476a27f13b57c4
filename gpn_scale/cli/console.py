"""Code shared by all commands: error messages, exit codes, signals, and the summary of a run."""

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from gpn_scale.cli.torchrun import repeat_after_torchrun
from gpn_scale.command_line import BAD_INPUT, SIGNALLED, flush_standard_streams, run_parsed
from gpn_scale.errors import ElsewhereError, GpnScaleError
from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.evaluation.quality_change import QualityChange
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import DETECTION_SCORES, SCORES
from gpn_scale.explained import Explained
from gpn_scale.flags import FLAGS, with_flags
from gpn_scale.messages import message_format, say
from gpn_scale.train.run_directory import RunDirectory


class Stopped(BaseException):
    """Raised when a signal asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_command(
    parser: Callable[[], argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], None],
    arguments: Sequence[str] | None,
    flags: Mapping[str, str] = FLAGS,
) -> int:
    """Parse the command line, run the command, and return its exit code.

    Args:
        parser: Function that returns the command's parser.
        run: The command.
        arguments: Its arguments; None for those of this process.
        flags: The command's flag for each argument that an error may name.
    """
    return run_parsed(parser, lambda options: exit_code_of(lambda: run(options), flags), arguments)


def exit_code_of(run: Callable[[], None], flags: Mapping[str, str] = FLAGS) -> int:
    """Run a command and return its exit code.

    The code is 0 on success, 2 for bad input (with one sentence on standard error, which is
    repeated as the last line under torchrun), and 128 + n if signal n ended the command.

    Args:
        run: The command.
        flags: The command's flag for each argument that an error may name.
    """
    try:
        with Explained():
            run()
    except ElsewhereError:
        return BAD_INPUT
    except GpnScaleError as error:
        message = with_flags(error, flags)
        say("error", message, level="error", arguments=error.arguments)
        if message_format() == "text":
            repeat_after_torchrun(f"error: {message}")
        return BAD_INPUT
    except Stopped as stopped:
        return SIGNALLED + stopped.number
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT
    return 0


def leave(code: int) -> NoReturn:
    """End the process; one of several ranks skips the interpreter's clean-up.

    gloo's threads may outlive their process group (torch's DistributedDataParallel keeps it even
    after it is destroyed) and use objects that the clean-up has already freed. A rank that has
    done its work would then abort, and torchrun would stop the other ranks as well.
    """
    flush_standard_streams()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        os._exit(code)
    sys.exit(code)


@contextmanager
def stop_requests() -> Iterator[Callable[[], int | None]]:
    """Catch SIGINT and SIGTERM; yield a function that returns the one received, or None.

    A second signal ends the process at once.
    """
    received: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if received:
            raise Stopped(number)
        received.append(number)

    previous: dict[int, Any] = {}
    for watched in (signal.SIGINT, signal.SIGTERM):
        previous[watched] = signal.signal(watched, remember)
    try:
        yield lambda: received[0] if received else None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def print_summary(report: Report, directory: RunDirectory) -> None:
    """Print the main results of a run and the files that it wrote."""
    test, seconds = report.metrics["test"], report.seconds
    intervals = report.intervals.get("test", {})
    written = [file for file in directory.files if file.exists()]
    title = (
        f"{report.dataset}: {report.graph['nodes']:,} nodes, {report.epochs} epochs, "
        f"{seconds['train']:.1f} s training, {seconds['inference']:.2f} s inference"
    )
    largest = _percent(test.get("accuracy_largest_class", math.nan))
    lines = [
        "",
        title,
        f"  test accuracy            {_with_interval(test, intervals, 'accuracy')}",
        f"    always largest class   {largest}",
        f"  calibration error (ECE)  {_with_interval(test, intervals, 'ece')}",
    ]
    lines += _detection_lines(report.ood, report.intervals.get("ood", {})) if report.ood else []
    lines += _change_lines(report)
    lines += _listed("few labelled nodes:", report.warnings)
    lines += _listed("not shown, because of too few nodes:", report.left_out)
    lines += _listed("written:", written)
    say(
        "summary",
        title,
        text="\n".join(lines),
        result=True,
        dataset=report.dataset,
        nodes=report.graph["nodes"],
        epochs=report.epochs,
        seconds=seconds,
        test=test,
        intervals=report.intervals,
        ood=report.ood,
        warm_start=report.warm_start,
        warnings=report.warnings,
        left_out=report.left_out,
        written=written,
    )


def _change_lines(report: Report) -> list[str]:
    """Return the lines that compare the model with the run that training started from."""
    if not report.warm_start:
        return []
    change = QualityChange(**report.warm_start)
    rows = [
        f"{subset + ' ' + metric_label(name):<45}{_percent(before)} -> {_percent(after)}"
        for subset, name, before, after in change.rows()
    ]
    return _listed(f"before ({change.run}) and after, on the same nodes:", rows or ["nothing"])


def _listed(title: str, items: Sequence[object]) -> list[str]:
    """Return the lines of a titled list; [] without items."""
    return ["", title, *(f"  {item}" for item in items)] if items else []


def _detection_lines(ood: dict[str, Any], intervals: Mapping[str, Any]) -> list[str]:
    names = (*SCORES, "entropy", "p_known")
    groups = ood["marks"].values()
    present = [
        name
        for name in names
        if not all(math.isnan(values.get(f"auroc_{name}", math.nan)) for values in groups)
    ]
    labels = {name: DETECTION_SCORES[name].label for name in present}
    heads = (f"{label:>17}" for label in labels.values())
    lines = [
        f"  accuracy on known nodes  {_with_interval(ood, intervals, 'id_accuracy')}",
        "",
        "how well each score detects unknown nodes (AUC-ROC, 95 % interval; 50 % is chance):",
        "  ".join([f"  {'':<20}{'nodes':>7}", *heads]),
    ]
    for mark, values in ood["marks"].items():
        ends = intervals.get("marks", {}).get(mark, {})
        percents = (
            f"{_short_interval(values, ends, f'auroc_{name}'):>{max(len(label), 17)}}"
            for name, label in labels.items()
        )
        lines.append(
            "  ".join([f"  {mark.replace('_', ' '):<20}{values['ood_nodes']:>7,}", *percents])
        )
    return lines


def _with_interval(
    metrics: Mapping[str, float], intervals: Mapping[str, Sequence[float]], name: str
) -> str:
    """Return a metric with its interval; n.a. if there are too few nodes for an interval."""
    if name not in intervals:
        return "n.a."
    low, high = (100 * end for end in intervals[name])
    return f"{_percent(metrics[name])} (95 % interval: {low:.1f} to {high:.1f} %)"


def _short_interval(
    metrics: Mapping[str, float], intervals: Mapping[str, Sequence[float]], name: str
) -> str:
    if name not in intervals:
        return "n.a."
    low, high = (100 * end for end in intervals[name])
    return f"{_percent(metrics[name])} ({low:.0f} to {high:.0f})"


def _percent(value: float) -> str:
    return "n.a." if value != value else f"{100 * value:.1f} %"

"""What all commands share: error messages, exit codes, signals, and the summary of a run."""

import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from gpn_scale.errors import ElsewhereError, GpnScaleError
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import DETECTION_SCORES, SCORES
from gpn_scale.flags import with_flags
from gpn_scale.train.run_directory import RunDirectory

BAD_INPUT = 2


class Stopped(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def exit_code_of(run: Callable[[], None]) -> int:
    """Run a command and return its exit code.

    It is 0 on success, 2 for bad input (with one sentence on standard error), and 128 + n if signal
    n ended the command.
    """
    try:
        run()
    except ElsewhereError:
        return BAD_INPUT
    except GpnScaleError as error:
        print(f"error: {with_flags(error)}", file=sys.stderr)
        return BAD_INPUT
    except Stopped as stopped:
        return 128 + stopped.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def leave(code: int) -> NoReturn:
    """End the process; one of several ranks ends at once, without the interpreter's clean-up.

    gloo's threads may outlive their process group (torch's DistributedDataParallel keeps it even
    after it is destroyed). During the clean-up they may use objects that no longer exist. A rank
    that has done its work would then abort, and torchrun would end the other ranks with it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
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
    test, intervals = report.metrics["test"], report.intervals.get("test", {})
    print(f"\n{report.dataset}: {report.graph['nodes']:,} nodes, {report.epochs} epochs, ", end="")
    print(
        f"{report.seconds['train']:.1f} s training, {report.seconds['inference']:.2f} s inference"
    )
    print(f"  test accuracy            {_with_interval(test, intervals, 'accuracy')}")
    largest = _percent(test.get("accuracy_largest_class", math.nan))
    print(f"    always largest class   {largest}")
    print(f"  calibration error (ECE)  {_with_interval(test, intervals, 'ece')}")
    if report.ood:
        _print_detection(report.ood, report.intervals.get("ood", {}))
    if report.warnings:
        print("\nfew labelled nodes:")
        print("\n".join(f"  {sentence}" for sentence in report.warnings))
    if report.left_out:
        print("\nnot shown, because of too few nodes:")
        print("\n".join(f"  {sentence}" for sentence in report.left_out))
    print("\nwritten:")
    for file in directory.files:
        if file.exists():
            print(f"  {file}")


def _print_detection(ood: dict[str, Any], intervals: Mapping[str, Any]) -> None:
    print(f"  accuracy on known nodes  {_with_interval(ood, intervals, 'id_accuracy')}")
    print("\nhow well each score detects unknown nodes (AUC-ROC, 95 % interval; 50 % is chance):")
    names = (*SCORES, "entropy", "p_known")
    groups = ood["marks"].values()
    present = [
        name
        for name in names
        if not all(math.isnan(values.get(f"auroc_{name}", math.nan)) for values in groups)
    ]
    labels = {name: DETECTION_SCORES[name].label for name in present}
    print(f"  {'':<20}{'nodes':>7}", *(f"{label:>17}" for label in labels.values()), sep="  ")
    for mark, values in ood["marks"].items():
        ends = intervals.get("marks", {}).get(mark, {})
        percents = (
            f"{_short_interval(values, ends, f'auroc_{name}'):>{max(len(label), 17)}}"
            for name, label in labels.items()
        )
        print(f"  {mark.replace('_', ' '):<20}{values['ood_nodes']:>7,}", *percents, sep="  ")


def _with_interval(
    metrics: Mapping[str, float], intervals: Mapping[str, Sequence[float]], name: str
) -> str:
    """Return a metric with its interval; n.a. if it rests on too few nodes to have one."""
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

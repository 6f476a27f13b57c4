"""Which of a few outcomes the ending of a trial is, and why."""

import json
import re
import signal
from typing import NamedTuple

from hostile.results import printed_result
from hostile.runner import Ending

PROMISED = "as promised"
BAD = ("silent", "code runs", "crash", "hang", "traceback", "unclear")
OUTCOMES = (PROMISED, *BAD)
_SENTENCE = re.compile(r"^(?:error: |[\w ./-]+: error: )(.*)$")
_FAULT = "this is a bug in gpn_scale"
_LISTS_FAULTS = ("import", "predict", "update")
"""Commands that list all faults of tables at once, below the first line."""
_SHORTEST = 15
_CONTROLS = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]")


class Verdict(NamedTuple):
    """An outcome, and the reason in a few words."""

    outcome: str
    reason: str = ""


def judged(ending: Ending, whole: dict[str, str]) -> Verdict:
    """Return the outcome of a trial; `whole` are the results of its job with whole files."""
    everything = ending.out + ending.err
    if ending.broken:
        return Verdict("unclear", f"the trial itself is broken: {_last(ending.broken)}")
    if ending.canary:
        return Verdict("code runs", "a pickle of a file was run")
    if ending.is_late:
        return Verdict("hang", "it was still running")
    if ending.signal:
        return Verdict("crash", signal.Signals(ending.signal).name)
    if "Traceback (most recent call last)" in everything or _FAULT in everything:
        return Verdict("traceback", _last(everything))
    if ending.code is None:
        return Verdict("crash", "it ended without an exit code")
    if ending.code not in ending.trial.codes:
        outcome = "traceback" if ending.code == 1 else "unclear"
        return Verdict(outcome, f"exit code {ending.code}: {_last(everything)}")
    if ending.code == 2 and not ending.trial.is_mute:
        problem = _unclear(ending)
        return Verdict("unclear", problem) if problem else Verdict(PROMISED)
    if ending.fault:
        return Verdict("silent", ending.fault)
    if controls := _CONTROLS.search(everything):
        return Verdict("unclear", f"the terminal gets {controls[0]!r}")
    if ending.trial.is_compared and ending.code == 0 and not _warned(ending):
        results = ending.results | printed_result(ending.trial.job, ending.out)
        if different := [name for name in whole if whole[name] != results.get(name)]:
            return Verdict("silent", f"other results: {', '.join(different)}")
    return Verdict(PROMISED)


def _warned(ending: Ending) -> bool:
    """Whether a warning or a note tells that something was left out or made again."""
    told = re.search(r"^warning: |\"level\": \"warning\"", ending.err, re.MULTILINE)
    return bool(told) or "have missing results" in ending.out


def _unclear(ending: Ending) -> str:
    """Return what is wrong with the message of exit code 2; "" if it is one sentence."""
    lines = ending.err.splitlines()
    if ending.err.lstrip().startswith("{"):
        return _unclear_json(lines)
    places = [place for place, line in enumerate(lines) if _SENTENCE.match(line)]
    if not places:
        return f"no sentence on standard error: {_last(ending.err)!r}"
    if len(places) > 1:
        return f"{len(places)} errors where one is due"
    match = _SENTENCE.match(lines[places[0]])
    assert match is not None
    if len(match[1]) < _SHORTEST:
        return f"no sentence: {match[1]!r}"
    below = lines[places[0] + 1 :]
    if below and ending.trial.job.command not in _LISTS_FAULTS:
        return f"{len(below) + 1} lines where one sentence is due: {match[1][:80]}"
    return ""


def _unclear_json(lines: list[str]) -> str:
    records = [json.loads(line) for line in lines if line.startswith("{")]
    errors = [record["message"] for record in records if record["level"] == "error"]
    return "" if len(errors) == 1 and len(errors[0]) >= _SHORTEST else f"messages: {errors}"


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:400] if lines else ""

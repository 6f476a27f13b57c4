"""One call of the disk fails: one sentence, the old state or a new one, and the next call goes on.

`make faults` tries all calls of all commands in all ways; here is a sample.
"""

import os
import random
from itertools import product

import pytest

from gpn_scale import disk
from gpn_scale.errors import RunError
from gpn_scale.files import write_text
from gpn_scale.serve.decisions import DecisionLog
from tests.faults.failing_disk import CALLS, ERRORS, FailingDisk
from tests.faults.scenarios import SCENARIOS, Bench
from tests.faults.trials import Trials

EVERYTHING = os.environ.get("GPN_SCALE_FAULTS") == "all"
"""Whether to try everything, as `make faults` does."""
SAMPLES = {"report": 4, "train, exact": 5, "train --overwrite, exact": 4, "train, minibatch": 4}
SAMPLES |= {"update": 6, "compact": 6, "part": 6, "finish": 6}
USUAL_SAMPLE = 12


def sampled(scenario, items):
    """The first, the last and some others."""
    count = SAMPLES.get(scenario.name, USUAL_SAMPLE)
    if EVERYTHING or len(items) <= count:
        return list(items)
    between = random.Random(22).sample(items[1:-1], count - 2)
    return [items[0], *between, items[-1]]


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.name, scope="module")
def trials(request, tmp_path_factory):
    return Trials(Bench(request.param, tmp_path_factory.mktemp("bench")))


def test_after_a_failed_call_the_next_one_goes_on(trials):
    for number, kind in sampled(trials.bench.scenario, trials.failures):
        trials.fail(number, kind)


def test_after_a_loss_of_power_the_next_call_goes_on(trials):
    for index in sampled(trials.bench.scenario, range(len(trials.crashes))):
        trials.lose_power(index)


@pytest.mark.parametrize("kind", ERRORS)
def test_the_disk_fails_once_as_it_is_told(tmp_path, monkeypatch, kind):
    write_text(tmp_path / "file", "old")
    system = FailingDisk(3, kind)
    monkeypatch.setattr(disk, "system", system)
    with pytest.raises(OSError, match=os.strerror(ERRORS[kind])):
        write_text(tmp_path / "file", "new text")
    assert system.calls == ["open", "lock", "write", "unlink"]
    write_text(tmp_path / "file", "new text")
    assert (tmp_path / "file").read_text() == "new text"


def test_a_torn_write_leaves_half(tmp_path):
    system = FailingDisk(2, "torn")
    descriptor = system.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space left"):
        system.write(descriptor, b"12345678")
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"1234"


def test_all_calls_are_counted():
    own = {name for name, value in vars(disk.Disk).items() if callable(value)}
    assert own == set(CALLS)


def attempt(log, node_id):
    """The decision about a node if it is stored."""
    try:
        return [log.append(node_id, "accept", label=None, note=None, model="m")]
    except RunError:
        return []


@pytest.mark.parametrize(("earlier", "failures"), [(0, 19), (1, 13)], ids=["new", "existing"])
def test_a_decision_is_stored_or_not_whichever_call_fails(tmp_path, monkeypatch, earlier, failures):
    """A decision that was refused does not appear later, and none that was stored is lost."""
    outcomes = []
    for number, kind in product(range(1, 8), ERRORS):
        path = tmp_path / f"{number}_{kind}.jsonl"
        log = DecisionLog(path, "run", "bank")
        before = [each for _ in range(earlier) for each in attempt(log, "first")]
        system = FailingDisk(number, kind)
        monkeypatch.setattr(disk, "system", system)
        stored = attempt(log, "second")
        monkeypatch.undo()
        assert bool(stored) != system.has_failed
        assert DecisionLog(path, "run", "bank").page(0, 9)[1] == stored + before
        assert attempt(log, "third") == log.page(0, 1)[1]
        outcomes.append(system.has_failed)
    assert outcomes.count(True) == failures

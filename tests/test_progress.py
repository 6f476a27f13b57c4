import io
import json

from gpn_scale.messages import formatted
from gpn_scale.progress import ProgressMeter


def lines_of(**options):
    stream = io.StringIO()
    with ProgressMeter("train", "epoch", stream=stream, seconds=0.0, **options) as meter:
        meter.update(4, "going well")
        meter.update(10)
    return stream.getvalue().splitlines()


def test_plain_lines_tell_rate_and_time_left():
    first, second = lines_of(total=10)
    assert first.startswith("train: epoch 4/10, ")
    assert "epoch/s" in first
    assert "s left at most, going well" in first
    assert second.startswith("train: epoch 10/10, ")


def test_without_a_total_no_end_is_promised():
    assert all("left" not in line and "/10" not in line for line in lines_of(total=None))


def test_other_ranks_are_silent():
    assert lines_of(total=10, silent=True) == []


def test_nothing_done_says_nothing():
    stream = io.StringIO()
    with ProgressMeter("train", "epoch", 5, stream=stream):
        pass
    assert stream.getvalue() == ""


def test_on_a_terminal_there_is_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with ProgressMeter("train", "epoch", 10, done=2, stream=stream) as meter:
        meter.update(10, "done")
    assert "10/10" in stream.getvalue()
    assert "100%" in stream.getvalue()


def test_json_lines_have_numbers_as_fields_and_no_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with (
        formatted("json"),
        ProgressMeter("train", "epoch", 10, done=2, stream=stream, seconds=0.0) as meter,
    ):
        meter.update(4, "loss 0.25", loss=0.25)
        meter.update(10)
    first, last = map(json.loads, stream.getvalue().splitlines())
    facts = {"event": "progress", "task": "train", "unit": "epoch", "done": 4, "total": 10}
    assert facts.items() <= first.items()
    assert first["loss"] == 0.25
    assert first["per_second"] > 0
    assert first["seconds_left"] > 0
    assert last["seconds_left"] is None
    assert "loss" not in last

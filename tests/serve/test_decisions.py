"""Decisions survive crashes and other writers, and are never mixed with those of another run."""

import json
import multiprocessing
import os
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.checked_json import CHECKSUM, json_checksum
from gpn_scale.errors import RunError
from gpn_scale.serve.decisions import DecisionLog, run_fingerprint


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def log_of(path, run="r"):
    return DecisionLog(path, run, "bank")


def store(log, node_id="a", decision="accept", **more):
    return log.append(node_id, decision, **{"label": None, "note": None, "model": "m"} | more)


def test_decisions_are_stored_and_the_latest_one_counts(path):
    log = log_of(path)
    assert log.page(0, 10) == (0, [])
    assert not path.exists()
    first = store(log, "a\n<script>", "relabel", label="bad", note='"quoted" \u202e')
    second = store(log, "a\n<script>", "skip")
    third = store(log, "b")
    assert log.page(0, 10) == (3, [third, second, first])
    assert log.page(1, 1) == (3, [second])
    assert log.page(9, 5) == (3, [])
    assert log.page(0, 10, "a\n<script>") == (2, [second, first])
    assert log.page(1, 10, "a\n<script>") == (2, [first])
    assert log.page(0, 10, "nobody") == (0, [])
    assert sorted(log.decided_ids()) == ["a\n<script>", "b"]
    assert log.latest("a\n<script>") == second
    assert log.latest("nobody") is None
    again = log_of(path)
    assert again.page(0, 10) == log.page(0, 10)
    header, *lines = path.read_text().splitlines()
    assert json.loads(header) == {"gpn_scale_decisions": 1, "run": "r", "graph": "bank"}
    stored = [json.loads(line) for line in lines]
    assert all(each.pop(CHECKSUM) == json_checksum(each) for each in stored)
    assert stored == [asdict(each) for each in (first, second, third)]
    assert path.stat().st_mode & 0o077 == 0


def test_what_another_log_appends_is_seen(path):
    first, second = log_of(path), log_of(path)
    store(first, "a")
    second.refresh()
    assert second.latest("a").decision == "accept"
    store(second, "a", "skip")
    assert first.page(0, 10)[0] == 2
    path.unlink()
    assert first.page(0, 10) == (0, [])


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_is_not_read_and_is_cut_off_before_the_next_one(path, cut, capsys):
    log = log_of(path)
    store(log, "a")
    store(log, "b")
    path.write_bytes(path.read_bytes()[:-cut])
    opened = log_of(path)
    assert opened.page(0, 10)[0] == 1
    store(opened, "c")
    assert [each.id for each in log_of(path).page(0, 10)[1]] == ["c", "a"]
    assert "was incomplete" in capsys.readouterr().err


def test_a_torn_header_is_written_again(path):
    path.write_text('{"gpn_scale')
    log = log_of(path)
    store(log)
    assert log_of(path).page(0, 10)[0] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"gpn_scale_decisions": 1, "run": "other", "graph": "shop"}\n', "another run .*'shop'"),
        ('{"gpn_scale_decisions": 2, "run": "r", "graph": "bank"}\n', "another run"),
        ("id,decision\n", "is not a file of decisions"),
        ("[1]\n", "is not a file of decisions"),
        ('{"gpn_scale_decisions": 1, "run": "r"}\nnonsense\n', "damaged in line 2"),
        ('{"gpn_scale_decisions": 1, "run": "r"}\n{"decision": "maybe"}\n', "damaged in line 2"),
        ('{"gpn_scale_decisions": 1, "run": "r"}\n{"decision": "skip"}\n', "damaged in line 2"),
        ('{"gpn_scale_decisions": 1, "run": "r"}\n[1]\n', "damaged in line 2"),
    ],
)
def test_files_of_another_run_or_kind_are_refused(path, content, message):
    path.write_text(content)
    with pytest.raises(RunError, match=message):
        log_of(path)
    assert path.read_text() == content


def test_a_file_that_is_replaced_while_the_service_runs_is_not_mixed(path):
    log = log_of(path)
    store(log)
    path.unlink()
    store(log_of(path, run="other"))
    with pytest.raises(RunError, match="another run"):
        store(log)
    assert len(path.read_text().splitlines()) == 2


def test_a_folder_that_is_missing_or_a_folder_in_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(RunError, match="folder does not exist"):
        log_of(tmp_path / "nowhere" / "decisions.jsonl")
    with pytest.raises(RunError, match="cannot be read"):
        log_of(tmp_path)


def test_a_file_that_cannot_be_written_is_one_sentence(path):
    log = log_of(path)
    path.mkdir()
    with pytest.raises(RunError, match="was not stored"):
        store(log)


def append_many(path, name):
    log = log_of(path)
    for number in range(30):
        store(log, f"{name}-{number}", note="x" * 5000)


def test_two_processes_append_side_by_side(path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=append_many, args=(path, name)) for name in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    total, decisions = log_of(path).page(0, 100)
    assert total == 60
    assert {each.id for each in decisions} == {f"{n}-{i}" for n in "ab" for i in range(30)}


@given(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), max_size=5))
def test_any_text_is_kept(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("texts") / "decisions.jsonl"
    log = log_of(path)
    for text in texts:
        store(log, text, note=text)
    decisions = log_of(path).page(0, 10)[1]
    assert [(each.id, each.note) for each in reversed(decisions)] == [(t, t) for t in texts]


def test_the_fingerprint_tells_runs_apart():
    first = run_fingerprint("a", "b")
    assert first == run_fingerprint("a", "b")
    assert len({first, run_fingerprint("a", "c"), run_fingerprint("c", "b")}) == 3


@given(st.data())
def test_a_flipped_bit_in_a_decision_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flipped") / "decisions.jsonl"
    log = log_of(path)
    store(log, "n7", "relabel", label="bad", note="seen")
    header, line = path.read_bytes().splitlines(keepends=True)
    content = bytearray(line)
    place = data.draw(st.integers(0, len(content) - 2))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(header + bytes(content))
    try:
        decisions = log_of(path).page(0, 10)[1]
    except RunError:
        return
    assert decisions == log.page(0, 10)[1]  # the name of the checksum itself was flipped


@pytest.mark.parametrize("change", [{"label": 7}, {"note": []}, {"id": None}, {"decision": []}])
def test_decisions_of_other_types_are_refused(path, change):
    store(log_of(path))
    header, line = path.read_text().splitlines()
    values = {key: value for key, value in json.loads(line).items() if key != CHECKSUM}
    path.write_text(f"{header}\n{json.dumps(values | change)}\n")
    with pytest.raises(RunError, match="is damaged in line 2"):
        log_of(path)


def test_a_line_without_end_is_not_read_into_memory(path):
    store(log_of(path))
    os.truncate(path, 1 << 40)
    with pytest.raises(RunError, match=r"damaged in line 3 \(it has more than 16,777,216 bytes"):
        log_of(path)

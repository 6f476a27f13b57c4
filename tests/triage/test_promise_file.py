import json

import pytest

from gpn_scale.checked_json import read_checked_json, write_checked_json
from gpn_scale.errors import RunError
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import model_fingerprint, read_promise, write_promise

PROMISE = Promise(
    error=0.05,
    confidence=0.9,
    threshold=0.1 + 0.2,
    held_out_nodes=200,
    answered_nodes=150,
    answered_errors=3,
)


@pytest.fixture
def files(tmp_path):
    """A promise and the model that it is for."""
    model = tmp_path / "model.safetensors"
    model.write_bytes(b"weights")
    path = tmp_path / "promise.json"
    write_promise(path, PROMISE, model)
    return path, model


def test_a_promise_is_read_as_it_was_written(files):
    assert read_promise(*files) == PROMISE


def test_the_file_says_what_is_promised_and_when_it_holds(files):
    values = json.loads(files[0].read_text())
    assert values["answered"] == 0.75
    assert values["order"] == "probability x sqrt(p_known, continued)"
    assert "does not hold for nodes of other classes" in values["condition"]


def test_a_promise_of_another_run_is_refused(files):
    files[1].write_bytes(b"other weights")
    with pytest.raises(RunError, match=r"is a promise for another model than .*make the promise"):
        read_promise(*files)


def test_a_threshold_that_was_damaged_is_refused(files):
    values = json.loads(files[0].read_text())
    files[0].write_text(json.dumps(values | {"threshold": values["threshold"] / 2}))
    with pytest.raises(RunError, match="is damaged: its checksum is"):
        read_promise(*files)


def test_a_promise_for_another_order_is_refused(files):
    write_checked_json(files[0], read_checked_json(files[0]) | {"order": "probability"})
    with pytest.raises(RunError, match="is a promise for another model"):
        read_promise(*files)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"error": "many"}', "\udcff"])
def test_a_damaged_file_is_refused(files, text):
    files[0].write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunError, match=r"promise.json cannot be read \(\w+: .*make the promise"):
        read_promise(*files)


def test_a_file_that_cannot_be_written_is_an_error_of_the_run(files, tmp_path):
    with pytest.raises(RunError, match="cannot be written"):
        write_promise(tmp_path / "missing" / "promise.json", PROMISE, files[1])


def test_a_model_that_cannot_be_read_is_one_sentence(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(RunError, match=r"cannot be read \(.*\), expected a model file"):
            model_fingerprint(path)

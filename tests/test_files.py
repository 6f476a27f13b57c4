import json
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.files import claimed, file_name, replacing, write_json, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    write_text(path, "old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_refuses_what_json_does_not_have(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1.5})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1.5}


def test_one_claim_at_a_time_which_ends_with_its_block_or_process(tmp_path):
    path = tmp_path / "folder" / "lock"
    with claimed(path, wait=False) as first, claimed(path, wait=False) as second:
        assert (first, second) == (True, False)
    with pytest.raises(ValueError, match="failed"), claimed(path, wait=False):
        raise ValueError("failed")
    code = (
        "import sys, time, pathlib; from gpn_scale.files import claimed\n"
        "with claimed(pathlib.Path(sys.argv[1]), wait=True): print('has it', flush=True); "
        "time.sleep(600)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "has it\n"
    with claimed(path, wait=False) as mine:
        assert not mine
    other.send_signal(signal.SIGKILL)
    other.communicate()
    with claimed(path, wait=True) as mine:
        assert mine


@given(text=st.text(max_size=400))
def test_any_text_becomes_the_name_of_one_file(text):
    name = file_name(text)
    assert name not in {"", ".", ".."}
    assert not set(name) & set("/\\\0")
    assert len(name.encode(errors="surrogateescape")) <= 200


@given(texts=st.lists(st.text(alphabet="./%\\A2F\0", max_size=8), min_size=2, unique=True))
def test_different_texts_have_different_names(texts):
    assert len(set(map(file_name, texts))) == len(texts)


@pytest.mark.parametrize(
    "text", ["CoraML", "synthetic:nodes=20,classes=3", "GPN[train.epochs=2;mode=exact]", "a.b", "Ä"]
)
def test_usual_names_stay_as_they_are(text):
    assert file_name(text) == text


def test_long_names_differ_in_their_hash():
    names = {file_name("x" * 300 + ending) for ending in "abc"}
    assert len(names) == 3
    assert all(name.startswith("x" * 100) for name in names)

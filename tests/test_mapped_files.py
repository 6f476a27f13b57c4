import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpn_scale.mapped_files import truncated_files

REPOSITORY = Path(__file__).parents[1]
TOUCH = """
import mmap, os, sys
from gpn_scale.mapped_files import bus_errors_explained
path = sys.argv[1]
with open(path, "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
def say(text):
    os.write(2, text.encode())
with bus_errors_explained(say, 2):
    os.truncate(path, 0)
    {touch}
"""


@pytest.mark.parametrize(
    "touch",
    [
        "mapped[9000]",
        "import numpy; numpy.frombuffer(mapped, numpy.uint8).sum()",
        "import threading; t = threading.Thread(target=lambda: mapped[9000]); t.start(); t.join()",
    ],
)
def test_a_file_that_is_cut_short_ends_the_process_with_a_sentence(tmp_path, touch):
    path = tmp_path / "mapped"
    path.write_bytes(bytes(10_000))
    code = TOUCH.replace("{touch}", touch)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"{path} was truncated while it was in use: restore it")


def test_outside_of_the_block_the_signal_is_what_it_was(tmp_path):
    path = tmp_path / "mapped"
    path.write_bytes(bytes(10_000))
    code = TOUCH.replace("    {touch}", "mapped[9000]")
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=REPOSITORY)
    assert done.returncode == -signal.SIGBUS


def test_the_files_that_are_too_short_are_named(tmp_path):
    page = os.sysconf("SC_PAGE_SIZE")
    for name, size in (("whole", 2 * page), ("part", page + 1), ("short", page)):
        (tmp_path / name).write_bytes(bytes(size))
    place = f"10000-{0x10000 + 2 * page:x} r--p 00000000 08:01 7 "
    names = ("whole", "part", "short", "short", "gone")
    maps = "".join(f"{place}{tmp_path / name}\n" for name in names)
    assert truncated_files(f"{maps}7f00-7f10 rw-p 00000000 00:00 0\n") == [str(tmp_path / "short")]
    shifted = place.replace("00000000", f"{page:08x}")
    assert truncated_files(f"{shifted}{tmp_path / 'whole'}\n") == [str(tmp_path / "whole")]

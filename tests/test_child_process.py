"""Children end with their parent, however it ends."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from gpn_scale.child_process import end_with_parent

REPOSITORY = Path(__file__).parents[1]
PATIENCE_SECONDS = 60


def report_and_sleep() -> None:
    """Write the id of this process, then do nothing for longer than any test takes."""
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(PATIENCE_SECONDS * 10)


def start_pool() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=end_with_parent) as pool:
        for job in [pool.submit(report_and_sleep) for _ in range(4)]:
            job.result()


def is_running(process: int) -> bool:
    """Whether a process exists and is more than an entry that nobody has collected."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_children_end_with_their_parent(number):
    code = "from tests.test_child_process import start_pool; start_pool()"
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(2)]
    assert all(is_running(child) for child in children)
    parent.send_signal(number)
    parent.wait()
    give_up = time.monotonic() + PATIENCE_SECONDS
    while any(is_running(child) for child in children) and time.monotonic() < give_up:
        time.sleep(0.05)
    left = [child for child in children if is_running(child)]
    for child in left:
        os.kill(child, signal.SIGKILL)
    parent.stdout.close()
    assert not left


def test_a_process_without_a_parent_of_its_own_goes_on():
    end_with_parent()
    assert multiprocessing.parent_process() is None

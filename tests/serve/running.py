"""A service as a process of its own, for tests that need a socket."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


@contextmanager
def running(run, *options, stderr=subprocess.DEVNULL):
    """Start a service on a free port; yield its process and address, and end it."""
    command = [sys.executable, "-c", "from gpn_scale.cli.serve import start; start()"]
    arguments = ["--run", str(run), "--port", "0", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
    ) as process:
        try:
            line = process.stdout.readline()
            address = re.search(r"http://\S+?(?=/?\"|/?$)", line.strip())
            assert address, f"the service did not start: {line!r}"
            yield process, address[0].rstrip("/")
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)

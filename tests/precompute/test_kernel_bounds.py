"""All kernels with numba's bounds checks, on random and hostile graphs and settings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("hostile_builds.py")


@pytest.mark.slow
def test_no_kernel_leaves_its_arrays(tmp_path):
    # Compiled code with checks must not mix with that of other tests.
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "150"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("150 builds, ")

"""A page in headless Chromium, where it is installed."""

import shutil
import subprocess

import pytest

from gpn_scale.page.png import BROWSERS


def shown(page, profile):
    """The page after its script has run, and what the browser complained of."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium here")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += ["--enable-logging=stderr", f"--user-data-dir={profile}", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, page.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

"""A page in headless Chromium, where it is installed."""

import re
import shutil
import subprocess

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def shown(page, profile, script=""):
    """The page after its scripts have run, and what the browser complained of.

    A script, if given, runs last in a copy of the page whose policy allows it: it can click and
    write what it sees into the page.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no Chromium here")
    if script:
        text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text(encoding="utf-8"), count=1)
        page = profile / "scripted.html"
        before, _, after = text.rpartition("</body>")
        page.write_text(f"{before}<script>{script}</script></body>{after}", "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    options += ["--enable-logging=stderr", f"--user-data-dir={profile}", "--dump-dom"]
    options += ["--virtual-time-budget=10000"]
    done = subprocess.run(
        [browser, *options, page.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

"""How large is the page of a run, and how long does a browser take to open it?

    python benchmarks/bench_page.py RUN/report.html [--repeats 5]

Prints one JSON line: the size of the page, and the time from the start of loading until table, map
and histograms are drawn, which the page writes into itself. Needs Chromium.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
OPTIONS += ("--disable-component-update", "--disable-sync", "--no-first-run", "--dump-dom")


def seconds_to_draw(browser: str, page: Path) -> float:
    """Return the seconds from the start of loading until the page says that it is drawn."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *OPTIONS, f"--user-data-dir={profile}", page.absolute().as_uri()]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    drawn = re.search(r'<html[^>]* data-drawn="(\d+)"', text)
    if drawn is None:
        raise SystemExit(f"{page} was not drawn")
    return int(drawn[1]) / 1000


def main() -> None:
    """Print the figures of a page as one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed")
    seconds = sorted(seconds_to_draw(browser, options.page) for _ in range(options.repeats))
    figures = {
        "page_megabytes": round(options.page.stat().st_size / 1e6, 2),
        "seconds_to_draw": statistics.median(seconds),
        "fastest": seconds[0],
        "slowest": seconds[-1],
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

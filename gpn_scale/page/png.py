"""Plots as PNG files, drawn by an installed browser, which is started once for all of them."""

import base64
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from gpn_scale.errors import ConfigError, RunError
from gpn_scale.files import replacing
from gpn_scale.page.markup import tag

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SCALE = 3
"""Number of pixels per unit of a drawing."""
_SECONDS = 300
_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--dump-dom"),
)
_SIZE = re.compile(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"')
_DRAWN = re.compile(r'data-name="([^"]*)" data-png="data:image/png;base64,([^"]*)"')
_SCRIPT = """
window.addEventListener("load", () => {
  for (const image of document.querySelectorAll("img")) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    image.dataset.png = canvas.toDataURL("image/png");
    image.removeAttribute("src");
  }
});
"""


def find_browser() -> str:
    """Return the path of Chromium or Chrome.

    Raises:
        ConfigError: neither is installed.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ConfigError(
            f"PNG files need a browser, and none of {', '.join(BROWSERS)} is on the PATH: install "
            "Chromium, or use the SVG files",
            arguments=("png",),
        )
    return browser


def write_pngs(folder: Path, browser: str) -> list[Path]:
    """Write a PNG file next to every SVG file of the folder, and return their paths.

    Raises:
        RunError: the browser fails, or an SVG file has no size.
    """
    plots = sorted(folder.glob("*.svg"))
    if not plots:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "plots.html"
        page.write_text(_page(plots), encoding="utf-8")
        rendered = _rendered(browser, page, Path(scratch) / "profile")
    images = dict(_DRAWN.findall(rendered))
    missing = [plot.stem for plot in plots if not images.get(plot.stem)]
    if missing:
        raise RunError(f"{browser} did not draw {missing[0]}.svg: use the SVG files")
    written = []
    for plot in plots:
        path = plot.with_suffix(".png")
        with replacing(path) as temporary:
            temporary.write_bytes(base64.b64decode(images[plot.stem]))
        written.append(path)
    return written


def _page(plots: list[Path]) -> str:
    images = []
    for plot in plots:
        text = plot.read_text(encoding="utf-8")
        size = _SIZE.search(text)
        if size is None:
            raise RunError(f"{plot} has no viewBox: delete it, and write the page again")
        width, height = (round(SCALE * float(length)) for length in size.groups())
        sized = text.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
        source = base64.b64encode(sized.encode()).decode()
        link = f"data:image/svg+xml;base64,{source}"
        images.append(tag("img", src=link, width=width, height=height, data_name=plot.stem))
    head = tag("head", tag("meta", charset="utf-8"), tag("script", _SCRIPT))
    return f"<!DOCTYPE html>{tag('html', head, tag('body', *images))}"


def _rendered(browser: str, page: Path, profile: Path) -> str:
    options = [*_OPTIONS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:  # Chromium has no sandbox as root; the page is our own
        options.append("--no-sandbox")
    command = [browser, *options, page.as_uri()]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        problem = f"exit code {done.returncode}" if done.returncode else ""
    except OSError as error:
        problem = str(error.strerror)
    except subprocess.TimeoutExpired:
        problem = f"no result after {_SECONDS} s"
    if problem:
        raise RunError(f"{browser} failed to draw PNG files ({problem}): use the SVG files")
    return done.stdout

"""Plots as PNG files, drawn by a browser that is on the machine: one start for all of them."""

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
"""Pixels per unit of a drawing."""
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
    """Chromium or Chrome.

    Raises:
        ConfigError: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise ConfigError(
            f"--png found none of {', '.join(BROWSERS)}, expected one on the PATH to draw with: "
            "install Chromium, or use the SVG files"
        )
    return found


def write_pngs(folder: Path, browser: str) -> list[Path]:
    """A PNG beside every SVG of the folder.

    Raises:
        RunError: the browser fails.
    """
    plots = sorted(folder.glob("*.svg"))
    if not plots:
        return []
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "plots.html"
        page.write_text(_page(plots), encoding="utf-8")
        shown = _shown(browser, page, Path(scratch) / "profile")
    images = dict(_DRAWN.findall(shown))
    missing = [plot.stem for plot in plots if not images.get(plot.stem)]
    if missing:
        raise RunError(f"{browser} drew no {missing[0]}.svg: try another browser, or use the SVG")
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
            raise RunError(f"{plot} has no viewBox: delete it, and make the page again")
        width, height = (round(SCALE * float(length)) for length in size.groups())
        sized = text.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
        source = base64.b64encode(sized.encode()).decode()
        link = f"data:image/svg+xml;base64,{source}"
        images.append(tag("img", src=link, width=width, height=height, data_name=plot.stem))
    head = tag("head", tag("meta", charset="utf-8"), tag("script", _SCRIPT))
    return f"<!DOCTYPE html>{tag('html', head, tag('body', *images))}"


def _shown(browser: str, page: Path, profile: Path) -> str:
    options = [*_OPTIONS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:  # Chromium cannot confine itself as root; the page is our own
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
        problem = f"no answer in {_SECONDS} s"
    if problem:
        raise RunError(f"{browser} drew no PNG ({problem}): use the SVG files instead")
    return done.stdout

"""A running service, and its explorer in a headless browser."""

import json
import shutil
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT = 30_000
"""Milliseconds after which a page counts as stuck; only a failing test waits so long."""
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@dataclass(frozen=True)
class ExploredService:
    """A service that answers, and its file of decisions."""

    address: str
    decisions_file: Path

    def get(self, path, **query):
        """The answer to a GET request."""
        with urllib.request.urlopen(f"{self.address}{path}?{urlencode(query)}") as answer:
            return json.load(answer)

    def post(self, path, body):
        """The answer to a POST request."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), headers=headers
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def decisions(self):
        """The decisions in the file, the oldest first."""
        path = self.decisions_file
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [each for each in map(json.loads, lines) if "decision" in each]


@contextmanager
def launched_browser():
    """A headless Chromium; tests are skipped without it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


class Explorer:
    """A page of the explorer, the service behind it, and what the browser complained of."""

    def __init__(self, page, service):
        # Playwright is optional, so that the module can be imported without it.
        self.expect = pytest.importorskip("playwright.sync_api").expect
        self.page, self.service = page, service
        self.complaints = []
        page.set_default_timeout(TIMEOUT)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _refuse(self, dialog):
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def open(self, address=""):
        self.page.goto(f"{self.service.address}/{address}")
        self.settle()

    def settle(self):
        """Wait until everything that was asked for is shown."""
        self.page.evaluate("new Promise((resolve) => setTimeout(resolve))")
        self.expect(self.page.locator("[aria-busy=true]")).to_have_count(0, timeout=TIMEOUT)

    def open_node(self, node_id):
        self.open(f"#node={quote(node_id, safe='')}")

    def heading(self):
        return self.page.locator("main h2").first

    def wait_for_node(self, node_id):
        self.page.locator("#entry-title bdi").get_by_text(node_id, exact=True).wait_for()
        self.settle()

    def search_field(self):
        return self.page.get_by_role("combobox", name="Search a node by its id")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def focused(self, expression="document.activeElement.textContent"):
        return self.page.evaluate(expression)

    def expect_failed_requests(self):
        """Drop the browser's own messages about requests that failed, as a test intended."""
        self.complaints = [each for each in self.complaints if "Failed to load" not in each]

    def rows(self, caption):
        """The rows of the table with this caption."""
        table = self.page.locator("table", has=self.page.get_by_text(caption, exact=True))
        return table.first.locator("tbody tr")

    def column(self, caption, title):
        """The texts of a column."""
        cells = self.rows(caption).locator(f"[data-title='{title}']")
        return [text.strip() for text in cells.all_inner_texts()]

    def ids(self, caption):
        """The ids in the column of nodes, without the marks of strange ones."""
        return [name.removeprefix("◆").strip() for name in self.column(caption, "node")]

"""Pages in headless Chromium by Playwright, where both are installed."""

import shutil
import time
from contextlib import contextmanager

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 30
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@contextmanager
def chromium():
    """A browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """An opened page, and what the browser complained of."""

    def __init__(self, browser, path, **settings):
        settings = {"viewport": {"width": 1100, "height": 900}} | settings
        self.page = browser.new_page(**settings)
        self.page.set_default_timeout(1000 * _SECONDS)
        self.complaints = []
        self.page.on("console", self._remember)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.goto(path.absolute().as_uri())

    def _remember(self, message):
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def wait_until_drawn(self):
        """Wait until table, map and histograms are there."""
        self.page.wait_for_selector("html[data-drawn]")

    def wait_until(self, expression):
        """Wait until JavaScript is true; Playwright's own way is against the policy of pages."""
        end = time.monotonic() + _SECONDS
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, f"still not so: {expression}"
            self.page.wait_for_timeout(20)

    def text(self, selector):
        """The text that a reader sees in the first such element."""
        return self.page.locator(selector).first.inner_text()


@contextmanager
def opened(browser, path, **settings):
    """A page that must not cause any complaint while it is open."""
    tab = Tab(browser, path, **settings)
    try:
        yield tab
        assert not tab.complaints, tab.complaints
    finally:
        tab.page.close()

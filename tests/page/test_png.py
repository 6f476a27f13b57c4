import base64

import pytest

from gpn_scale.errors import ConfigError, RunError
from gpn_scale.page.png import find_browser, write_pngs

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"></svg>'


@pytest.fixture
def browser(tmp_path):
    """Writes a program that stands for a browser, and says where it is."""

    def standing_for(script):
        path = tmp_path / "browser"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return standing_for


@pytest.fixture
def plots(tmp_path):
    folder = tmp_path / "plots"
    folder.mkdir()
    (folder / "a-b.svg").write_text(SVG)
    return folder


def test_what_the_browser_drew_is_written(plots, browser):
    image = base64.b64encode(b"an image").decode()
    drawn = f'<img data-name="a-b" data-png="data:image/png;base64,{image}">'
    (written,) = write_pngs(plots, browser(f"echo '{drawn}'"))
    assert written == plots / "a-b.png"
    assert written.read_bytes() == b"an image"


def test_a_browser_that_fails_is_reported(plots, browser, tmp_path):
    for script, message in (
        ("exit 3", r"failed to draw PNG files \(exit code 3\): use the SVG files"),
        ("echo nothing", r"did not draw a-b\.svg"),
    ):
        with pytest.raises(RunError, match=message):
            write_pngs(plots, browser(script))
    with pytest.raises(RunError, match=r"failed to draw PNG files .No such file"):
        write_pngs(plots, str(tmp_path / "nothing"))
    assert not list(plots.glob("*.png"))


def test_nothing_to_draw_and_what_is_no_plot(tmp_path, plots, browser):
    assert write_pngs(tmp_path / "nothing", browser("exit 3")) == []
    (plots / "a-b.svg").write_text("<svg></svg>")
    with pytest.raises(RunError, match="has no viewBox"):
        write_pngs(plots, browser("exit 3"))


def test_the_browser_on_the_path_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"none of chromium, .* is on the PATH") as error:
        find_browser()
    assert error.value.arguments == ("png",)
    browser = tmp_path / "chromium-browser"
    browser.write_text("")
    browser.chmod(0o755)
    assert find_browser() == str(browser)

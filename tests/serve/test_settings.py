"""Settings of a service: what is refused, and when a token is needed."""

import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.serve.settings import ServeSettings, parsed_bytes, read_token

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_a_loopback_needs_no_token(host):
    assert ServeSettings(host=host).is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_any_other_host_needs_a_token(host):
    with pytest.raises(ConfigError, match="a token is needed"):
        ServeSettings(host=host)
    assert not ServeSettings(host=host, token=TOKEN).is_local


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", -1),
        ("port", 70000),
        ("workers", 0),
        ("max_body", 0),
        ("max_nodes", 0),
        ("max_new_nodes", 0),
        ("slow_threads", 0),
        ("slow_queue", -1),
        ("request_seconds", 0.0),
        ("request_seconds", float("inf")),
        ("poll_seconds", float("nan")),
        ("workers", 2**31 - 1),
        ("max_body", 2**63),
        ("max_nodes", 2**31),
        ("max_new_nodes", 2**31),
        ("poll_seconds", 1e6),
    ],
)
def test_values_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} is {value}") as error:
        ServeSettings(**{name: value})
    assert error.value.arguments == (name,)


def test_a_token_is_read_from_a_file(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    assert read_token(path) == TOKEN
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "absent")
    for content in ("short", "two words and more of them", "", "ümlaut-0123456789abc"):
        path.write_text(content)
        with pytest.raises(ConfigError, match="expected a token of at least 16"):
            read_token(path)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8MB", 8_000_000), ("1.5 kb", 1500), ("10", 10), ("7B", 7), ("2G", 2 * 10**9)],
)
def test_sizes_have_units(text, size):
    assert parsed_bytes(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "8 apples", "nan", "9" * 5000 + "MB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ConfigError, match="expected a size such as 8MB"):
        parsed_bytes(text)

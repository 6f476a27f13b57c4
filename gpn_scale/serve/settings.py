"""Settings of a service: address, limits, token."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from gpn_scale.errors import ConfigError
from gpn_scale.field_types import checks_fields, shown
from gpn_scale.reading import read_text

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_MOST_DIGITS = 15
_DAY = 86_400
_LEAST_TOKEN = 16
_TOKEN_BYTES = 1 << 16
"""Number of characters below which a token is easy to guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields(
    port=65535,
    workers=64,
    max_body=10**9,
    max_nodes=10_000_000,
    max_new_nodes=1_000_000,
    request_seconds=_DAY,
    slow_threads=64,
    slow_queue=1_000_000,
    poll_seconds=_DAY,
)
class ServeSettings:
    """Address, limits and token of a service.

    Raises:
        ConfigError: a value is out of range, or the host is reachable from outside and there is no
            token.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    """Number of processes that answer requests."""
    token: str | None = None
    """Token that clients must send as `Authorization: Bearer TOKEN`; None for no check."""
    max_body: int = 8 * 10**6
    """Largest size of a request's body in bytes."""
    max_nodes: int = 10_000
    """Largest number of known nodes in a request."""
    max_new_nodes: int = 1_000
    """Largest number of new nodes in a request."""
    request_seconds: float = 30.0
    """Longest time of a request, in seconds."""
    slow_threads: int = 2
    """Number of threads for everything except predictions of known nodes."""
    slow_queue: int = 32
    """Number of requests that may wait for such a thread."""
    poll_seconds: float = 5.0
    """Seconds between two checks for a swapped model."""

    def __post_init__(self) -> None:
        least = {"workers": 1, "max_body": 1, "max_nodes": 1, "max_new_nodes": 1}
        least |= {"slow_threads": 1, "slow_queue": 0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value < bound:
                raise ConfigError(
                    f"{name} is {value}, expected at least {bound}", arguments=(name,)
                )
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port is {self.port}, expected 0 to 65535", arguments=("port",))
        for name in ("request_seconds", "poll_seconds"):
            value = getattr(self, name)
            if not 0.0 < value < float("inf"):
                raise ConfigError(f"{name} is {value}, expected more than 0", arguments=(name,))
        if not self.is_local and self.token is None:
            raise ConfigError(
                f"host is {self.host}, which other machines can reach, so a token is needed: give "
                "a file that holds one, or use the host 127.0.0.1",
                arguments=("token_file", "host"),
            )

    @property
    def is_local(self) -> bool:
        """Whether only processes of this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_token(path: Path) -> str:
    """Return the token in a file.

    Raises:
        ConfigError: the file cannot be read, or holds no token.
    """
    try:
        token = read_text(path, _TOKEN_BYTES).strip()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be read ({error}), expected a file with a token",
            arguments=("token_file",),
        ) from error
    if len(token) < _LEAST_TOKEN or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token):
        raise ConfigError(
            f"{path} holds {len(token)} characters, expected a token of at least {_LEAST_TOKEN} "
            "letters, digits or -._~+/= in one line",
            arguments=("token_file",),
        )
    return token


def parsed_bytes(text: str) -> int:
    """Return the number of bytes in a text with or without a unit, such as 8MB.

    Raises:
        ConfigError: the text is not such a number.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]?B?)\s*", text.upper())
    unit = None if match is None else match[2] if match[2] in _UNITS else f"{match[2]}B"
    if match is None or unit is None or len(match[1]) > _MOST_DIGITS:
        raise ConfigError(
            f"max_body is {shown(text)}, expected a size such as 8MB", arguments=("max_body",)
        )
    return int(float(match[1]) * _UNITS[unit])

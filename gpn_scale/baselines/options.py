"""Options of comparison models: frozen dataclasses whose fields can be set from text.

Hyper-parameters that a run's configuration has a field for are set there. All others are fields of
the model's own `Options`, with keys `model.FIELD`.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, get_type_hints

from gpn_scale.errors import ConfigError
from gpn_scale.field_types import parse_value

_FORMER_NAMES = {"prior_share": "prior_fraction", "own_share": "own_fraction"}
"""Names that fields had in earlier versions, and their present names.

Names of stored cells may contain the former ones, and fingerprints do, so that finished cells stay
valid.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """Options of models that the run's configuration describes completely."""


def changed_options(kind: str, options: Any, pairs: Iterable[tuple[str, str]]) -> Any:
    """Return the options of the model `kind` with some fields replaced.

    Args:
        kind: Name of the model, for messages.
        options: The options to start from.
        pairs: Keys `model.FIELD` and the texts of their new values; former names are accepted.

    Raises:
        ConfigError: a field does not exist, or its value cannot be parsed or is not finite.
    """
    types = get_type_hints(type(options))
    changes = {}
    for key, text in pairs:
        field = key.removeprefix("model.")
        field = _FORMER_NAMES.get(field, field)
        if field not in types:
            names = ", ".join(f"model.{name}" for name in types) or "none"
            raise ConfigError(f"{kind} has no option {key!r}, its options are: {names}")
        value = parse_value(types[field], text, key)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(
                f"{key} of {kind} is {text}, expected a finite number", arguments=(key,)
            )
        changes[field] = value
    return replace(options, **changes)


def fingerprint_values(options: Any) -> dict[str, Any]:
    """Return the values that a fingerprint of `options` is made from, by former names of fields.

    >>> fingerprint_values(NoOptions())
    {}
    """
    former = {present: name for name, present in _FORMER_NAMES.items()}
    return {former.get(name, name): value for name, value in asdict(options).items()}


def require_positive(key: str, value: int, unit: str) -> None:
    """Refuse numbers below 1.

    Raises:
        ConfigError: `value` is below 1; the message names `key` and `unit`.
    """
    if value < 1:
        raise ConfigError(f"{key} is {value}, expected at least 1 {unit}", arguments=(key,))


def require_in_range(key: str, value: float, *, allowed: bool, expected: str) -> None:
    """Refuse a number that is not allowed.

    Raises:
        ConfigError: `allowed` is false; the message names `key`, `value` and what is `expected`.
    """
    if not allowed:
        raise ConfigError(f"{key} is {value:g}, expected {expected}", arguments=(key,))

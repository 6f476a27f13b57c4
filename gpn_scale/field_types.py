"""Types of configuration fields: checks of values, and conversion from text.

A field is an int, a float, a bool, a text, a `Literal`, or a union of these.
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gpn_scale.errors import ConfigError

T = TypeVar("T")

_SHOWN = 80


def checks_fields(section: str = "", **most: float) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that makes a dataclass reject values that its fields do not allow.

    It rejects values that a `Literal` does not list, numbers of the wrong type, and numbers above
    the field's upper bound, which every numeric field has. Types are checked before the class's own
    `__post_init__`, upper bounds after it. Put the decorator below `@dataclass`.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... @checks_fields("encoder", layers=1000)
    ... class Encoder:
    ...     activation: Literal["relu", "tanh"] = "relu"
    ...     layers: int = 2
    >>> Encoder("sine")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: encoder.activation is 'sine', expected relu or tanh
    >>> Encoder(layers=2**31)
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: encoder.layers is 2147483648, expected at most 1,000

    Args:
        section: Name of the section of `RunConfig` that the class stands for, used in messages.
        most: Largest allowed value of each numeric field, for which runs still fit and finish.
    """

    def decorate(cls: type[T]) -> type[T]:
        check_rest = getattr(cls, "__post_init__", None)

        def __post_init__(self: Any) -> None:
            own_class: Any = type(self)
            prefix = f"{section}." if section else ""
            for name, kind in _checked_fields(own_class).items():
                value = getattr(self, name)
                require(_is_choice(kind, value), prefix + name, value, describe(kind))
            if check_rest is not None:
                check_rest(self)
            for name, bound in most.items():
                value = getattr(self, name)
                allowed = isinstance(value, str) or value <= bound
                require(allowed, prefix + name, value, f"at most {bound:,}")

        cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
        return cls

    return decorate


@cache
def _checked_fields(cls: Any) -> dict[str, Any]:
    """Return the types of the fields that are a number, a `Literal`, or a union of both."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if _is_checked(hints[f.name])}


def _is_checked(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(map(_is_checked, get_args(kind)))
    return get_origin(kind) is Literal or kind in (int, float)


def _is_choice(kind: Any, value: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_is_choice(option, value) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return any(type(value) is type(option) and value == option for option in get_args(kind))
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def require(condition: bool, name: str, value: object, expected: str) -> None:
    """Raise a `ConfigError` about the field `name` unless `condition` holds.

    >>> require(0 >= 1, "encoder.layers", 0, "at least 1")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.ConfigError: encoder.layers is 0, expected at least 1

    Args:
        condition: Whether the value is allowed.
        name: The field, or several joined by ` + ` if `value` is their sum.
        value: What was given.
        expected: The allowed values, as the end of a sentence.
    """
    if not condition:
        arguments = name.split(" + ")
        raise ConfigError(f"{name} is {shown(value)}, expected {expected}", arguments=arguments)


def shown(value: object) -> str:
    """Return a value as text for a message, shortened if it is very long.

    >>> shown("inf"), shown(10**100)
    ("'inf'", '100000000000000000000000000000... (101 characters)')
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:30]}... ({len(text):,} characters)"


def parse_value(kind: Any, text: str, key: str) -> Any:
    """Return `text` as a value of the type `kind`; `key` names the field in messages.

    >>> parse_value(int | Literal["inf"], "10", "diffusion.steps")
    10

    Raises:
        ConfigError: the text is not a value of this type.
    """
    parsers: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, bool: _as_bool}
    if get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            try:
                return parse_value(option, text, key)
            except ConfigError:
                continue
    elif get_origin(kind) is Literal:
        if text in get_args(kind):
            return text
    else:
        try:
            return parsers[kind](text)
        except ValueError:
            pass
    raise ConfigError(f"{key} is {shown(text)}, expected {describe(kind)}", arguments=(key,))


def _as_bool(text: str) -> bool:
    values = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]


def describe(kind: Any) -> str:
    """Return a description of the values that a field of the type `kind` takes.

    >>> describe(int | Literal["inf"])
    'a whole number or inf'
    """
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(describe(option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a text")


def parse_assignments(assignments: Iterable[str]) -> list[tuple[str, str]]:
    """Return texts of the form `section.field=value` as (key, value) pairs.

    >>> parse_assignments(["train.epochs=3", "mode=exact"])
    [('train.epochs', '3'), ('mode', 'exact')]

    Raises:
        ConfigError: a text has no `=`.
    """
    pairs = []
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"assignment is {assignment!r}, expected section.field=value")
        pairs.append((key.strip(), value.strip()))
    return pairs


def unknown_field(key: str, known: Sequence[str]) -> str:
    """Return a message about the unknown configuration field `key`, with similar fields.

    >>> unknown_field("train.epoch", ["mode", "train.epochs"])
    "the configuration has no field 'train.epoch'; did you mean train.epochs?"
    """
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    tail = key.rpartition(".")[2]
    near += [name for name in known if name.rpartition(".")[2] == tail and name not in near]
    hint = f"did you mean {' or '.join(near)}?" if near else f"its fields are {', '.join(known)}"
    return f"the configuration has no field {key!r}; {hint}"

"""Checks that a JSON value has the shape that its reader expects.

A shape is a type (`str`, `int`, `float`, `bool`, `dict`, `list`), None for null, or a tuple of
alternative shapes. A list with one shape stands for any number of elements of that shape; a list
with several shapes stands for exactly these elements. A dictionary with the key `str` gives the
shape of all values; other dictionaries give the shapes of single entries, which are optional if
their names end in `?`.
"""

from typing import Any

from gpn_scale.errors import FileError
from gpn_scale.field_types import shown

_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_NAMES |= {dict: "an object", list: "a list"}


def check_shape(value: Any, shape: Any, name: str) -> None:
    """Raise a `FileError` if a value does not have the given shape.

    >>> check_shape({"seconds": {"train": 2.5}, "more": 1}, {"seconds": {str: float}}, "report")
    >>> check_shape({"seconds": [2.5]}, {"seconds": {str: float}}, "report")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: report.seconds is [2.5], expected an object
    >>> check_shape({"files": ["a", None]}, {"files": [str]}, "list")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: list.files[1] is None, expected a text

    Args:
        value: A value that was read from JSON.
        shape: The expected shape, see above; objects may have additional entries.
        name: Name of the value in messages.

    Raises:
        FileError: the value, or one inside of it, has another shape.
    """
    if isinstance(shape, dict):
        _require(isinstance(value, dict), value, name, "an object")
        for key, inner in _entries(value, shape, name):
            check_shape(value[key], inner, f"{name}.{key}")
    elif isinstance(shape, list):
        _require(isinstance(value, list), value, name, "a list")
        inner = shape * len(value) if len(shape) == 1 else shape
        _require(len(value) == len(inner), value, name, f"{len(inner)} elements")
        for place, (each, one) in enumerate(zip(value, inner, strict=True)):
            check_shape(each, one, f"{name}[{place}]")
    elif isinstance(shape, tuple):
        _check_any(value, shape, name)
    else:
        _require(_is(value, shape), value, name, _described(shape))


def _entries(value: dict[str, Any], shape: dict[Any, Any], name: str) -> list[tuple[str, Any]]:
    """Return the entries to check, with their shapes."""
    if str in shape:
        return [(key, shape[str]) for key in value]
    entries = []
    for key, inner in shape.items():
        if key.removesuffix("?") in value:
            entries.append((key.removesuffix("?"), inner))
        elif not key.endswith("?"):
            raise FileError(f"{name} has no entry {key!r}")
    return entries


def _check_any(value: Any, shapes: tuple[Any, ...], name: str) -> None:
    for shape in shapes:
        try:
            return check_shape(value, shape, name)
        except FileError as error:
            if isinstance(shape, dict | list) and _is(value, type(shape)):
                raise error
    expected = " or ".join(map(_described, shapes))
    raise FileError(f"{name} is {shown(value)}, expected {expected}")


def _is(value: Any, kind: Any) -> bool:
    if kind is None:
        return value is None
    if kind in (int, float):
        allowed = int if kind is int else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    return isinstance(value, kind)


def _described(shape: Any) -> str:
    if shape is None:
        return "null"
    return _NAMES[type(shape) if isinstance(shape, dict | list) else shape]


def _require(condition: bool, value: Any, name: str, expected: str) -> None:
    if not condition:
        raise FileError(f"{name} is {shown(value)}, expected {expected}")

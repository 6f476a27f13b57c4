"""Reads arrays and plain containers from a pickle without running any of its code.

Planetoid's raw files are pickles. Python's own unpickler imports and calls the names in a pickle,
so opening a file runs its author's code. This reader imports and calls nothing: it interprets the
few instructions that such files use, and replaces the functions that they name (those of NumPy and
SciPy for arrays and matrices) by its own records. Every other name and instruction is refused.
"""

import pickletools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.errors import FileError

_NUMBER_TYPES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"f4", "f8", "b1"}
_MATRIX_MODULES = ("scipy.sparse.csr", "scipy.sparse._csr")
_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")


class _Refused(Exception):
    """The pickle is damaged, or asks for something that is not allowed."""


@dataclass
class _TypeRecord:
    """The type of an array's numbers."""

    code: str
    order: str = "<"

    def build(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "|", "="):
            raise _Refused("the type of an array is damaged")
        self.order = state[1]

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"{self.order}{self.code}")


@dataclass
class _ArrayRecord:
    """An array of numbers; `array` is None before its state was read."""

    array: NDArray[Any] | None = None

    def build(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise _Refused("the state of an array is damaged")
        _, shape, kind, by_columns, content = state
        data = content.encode("latin-1") if isinstance(content, str) else content
        whole = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
        if not (whole and isinstance(kind, _TypeRecord) and isinstance(data, bytes)):
            raise _Refused("the state of an array is damaged")
        count = 1
        for length in shape:
            count *= length
        if len(shape) > 2 or count * kind.dtype().itemsize != len(data):
            raise _Refused(f"an array of shape {shape} holds {len(data):,} bytes")
        flat = np.frombuffer(data, kind.dtype()).astype(kind.code)  # in this machine's byte order
        self.array = flat.reshape(shape, order="F" if by_columns else "C")


@dataclass
class _MatrixRecord:
    """A sparse matrix in compressed rows; `matrix` is None before its state was read."""

    matrix: scipy.sparse.csr_array | None = None

    def build(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise _Refused("the state of a matrix is damaged")
        shape: Any = state.get("_shape")
        indptr, indices, values = (_vector_of(state, key) for key in ("indptr", "indices", "data"))
        is_pair = isinstance(shape, tuple) and len(shape) == 2
        if not is_pair or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape):
            raise _Refused(f"a matrix has the shape {str(shape)[:60]}")
        _check_rows(indptr, indices, values, *shape)
        self.matrix = scipy.sparse.csr_array((values, indices, indptr), shape=shape)


@dataclass(frozen=True)
class _Name:
    """A function or class that a pickle may name, and what calling it gives."""

    call: Callable[..., Any] | None = None
    new: Callable[..., Any] | None = None


def _array_of(kind: Any, *_: Any) -> _ArrayRecord:
    if kind is not _ARRAY:
        raise _Refused("an array is of a class of its own")
    return _ArrayRecord()


def _type_of(code: Any, *_: Any) -> _TypeRecord:
    if code not in _NUMBER_TYPES:
        raise _Refused(f"an array holds {str(code)[:40]!r}, expected numbers")
    return _TypeRecord(code)


def _latin_1(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused("a text is to be encoded in another way than Latin-1")
    return text.encode("latin-1")


def _no_bytes(*given: Any) -> bytes:
    if given:
        raise _Refused("bytes are made of something else")
    return b""


_ARRAY = _Name()
_LIST = _Name()


def _dict_of(factory: Any = None) -> dict[Any, Any]:
    if factory not in (None, _LIST):
        raise _Refused("a dictionary has a default other than an empty list")
    return {}


_NAMES = {
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): _Name(call=_type_of),
    ("collections", "defaultdict"): _Name(call=_dict_of),
    ("__builtin__", "list"): _LIST,
    ("builtins", "list"): _LIST,
    ("__builtin__", "bytes"): _Name(call=_no_bytes),
    ("_codecs", "encode"): _Name(call=_latin_1),
    **{(module, "csr_matrix"): _Name(new=_MatrixRecord) for module in _MATRIX_MODULES},
    **{(module, "_reconstruct"): _Name(call=_array_of) for module in _ARRAY_MODULES},
}
_MARK = object()
_VALUES = {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT"}
_VALUES |= {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"}
_VALUES |= {"BINBYTES", "SHORT_BINBYTES", "BINUNICODE8", "BINBYTES8"}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def read_plain_pickle(content: bytes, what: str) -> Any:
    """Return the arrays, sparse matrices and plain containers in a pickle, without running it.

    >>> import pickle
    >>> read_plain_pickle(pickle.dumps({0: [1, 2]}, protocol=2), "graph")
    {0: [1, 2]}
    >>> read_plain_pickle(pickle.dumps(print), "graph")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.FileError: graph: refused to read this pickle, since it names builtins.print; \
expected arrays, sparse matrices, lists and dictionaries only

    Args:
        content: The pickle, of any protocol. Memory is bounded by a small multiple of its length.
        what: Its name in messages.

    Returns:
        An array of numbers (`numpy.ndarray`), a sparse matrix (`scipy.sparse.csr_array`), or plain
        values: a number, text or bytes, or lists, tuples and dictionaries of them.

    Raises:
        FileError: the pickle is damaged, or holds anything else.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escape sequences in damaged texts
            return _Machine().run(content)
    except _Refused as error:
        raise FileError(
            f"{what}: refused to read this pickle, since {error}; "
            "expected arrays, sparse matrices, lists and dictionaries only"
        ) from error
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise FileError(f"{what} is a damaged pickle ({error})") from error


class _Machine:
    """The stack, the marks and the memory of a pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            self._step(opcode.name, argument)
        result = self._stack.pop()
        if self._stack or isinstance(result, _Name):
            raise _Refused("it ends with more or less than one value")
        return _finished(result)

    def _step(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            stack.append(tuple(self._popped(_TUPLES[name])))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("GLOBAL", "STACK_GLOBAL", "REDUCE", "NEWOBJ", "BUILD"):
            self._object(name, argument)
        elif name not in ("PROTO", "FRAME", "STOP"):
            self._container(name)

    def _container(self, name: str) -> None:
        stack = self._stack
        if name == "MARK":
            stack.append(_MARK)
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("LIST", "TUPLE"):
            items = self._since_mark()
            stack.append(items if name == "LIST" else tuple(items))
        elif name in ("APPEND", "APPENDS"):
            items = self._since_mark() if name == "APPENDS" else self._popped(1)
            _expect(stack[-1], list).extend(items)
        elif name in ("DICT", "SETITEM", "SETITEMS"):
            items = self._popped(2) if name == "SETITEM" else self._since_mark()
            if name == "DICT":
                stack.append({})
            if len(items) % 2 or not all(isinstance(key, int | str) for key in items[::2]):
                raise _Refused("the keys of a dictionary are neither numbers nor texts")
            _expect(stack[-1], dict).update(zip(items[::2], items[1::2], strict=True))
        else:
            raise _Refused(f"it has the instruction {name}")

    def _object(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in ("GLOBAL", "STACK_GLOBAL"):
            module, _, attribute = argument.partition(" ") if argument else ("", "", "")
            if name == "STACK_GLOBAL":
                module, attribute = self._popped(2)
            known = isinstance(module, str) and isinstance(attribute, str)
            if not known or (module, attribute) not in _NAMES:
                raise _Refused(f"it names {str(module)[:80]}.{str(attribute)[:80]}")
            stack.append(_NAMES[module, attribute])
            return
        target, given = self._popped(2)
        if name == "BUILD":
            if not isinstance(target, _TypeRecord | _ArrayRecord | _MatrixRecord):
                raise _Refused("it sets the state of something else than an array")
            target.build(given)
            stack.append(target)
            return
        make = None
        if isinstance(target, _Name):
            make = target.call if name == "REDUCE" else target.new
        if make is None or not isinstance(given, tuple):
            raise _Refused("it calls something else than the making of an array")
        stack.append(make(*given))

    def _popped(self, count: int) -> list[Any]:
        """Remove and return the last `count` values."""
        if count > len(self._stack):
            raise IndexError("a value is missing")
        items = self._stack[len(self._stack) - count :]
        if any(item is _MARK for item in items):
            raise IndexError("a mark stands where a value should")
        del self._stack[len(self._stack) - count :]
        return items

    def _since_mark(self) -> list[Any]:
        """Remove and return the values after the last mark, and remove the mark."""
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place] is _MARK:
                items = self._stack[place + 1 :]
                del self._stack[place:]
                return items
        raise IndexError("a mark is missing")


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _Refused(f"it adds to something else than a {kind.__name__}")
    return value


def _finished(value: Any) -> Any:
    """Return the array or the matrix of a record, and any other value as it is."""
    if isinstance(value, _ArrayRecord):
        value = value.array
    elif isinstance(value, _MatrixRecord):
        value = value.matrix
    if value is None or isinstance(value, _TypeRecord | _Name):
        raise _Refused("an array has no content")
    return value


def _vector_of(state: dict[Any, Any], key: str) -> NDArray[Any]:
    record = state.get(key)
    vector = record.array if isinstance(record, _ArrayRecord) else None
    if vector is None or vector.ndim != 1:
        raise _Refused(f"a matrix has no vector {key!r}")
    if key != "data" and vector.dtype.kind not in "iu":
        raise _Refused(f"a matrix has {key!r} of type {vector.dtype}")
    return vector


def _check_rows(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], rows: int, columns: int
) -> None:
    """Refuse compressed rows whose pieces do not fit each other."""
    ordered = len(indptr) == rows + 1 and indptr[0] == 0
    ordered = ordered and bool((np.diff(indptr.astype(np.int64)) >= 0).all())
    if not ordered or int(indptr[-1]) != len(indices) or len(indices) != len(values):
        raise _Refused("the rows of a matrix do not fit its entries")
    if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < columns):
        raise _Refused(f"a matrix of {columns:,} columns has an entry outside of them")

"""Ways to damage a file of any kind; each is a function of the path and of random numbers."""

import io
import json
import os
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile.runner import CANARY

Damage = Callable[[Path, random.Random], None]

WRONG_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 1.5, 1e300, -1e300, "", "x", "9" * 5000, "\udcff"),
    *(
        [],
        {},
        [[]],
        {"a": None},
        [None],
        ["x"],
        [1e300],
        "<script>",
        "../../x",
        "nan",
        float("nan"),
    ),
)
_DOCUMENTS = (
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"7",
    b"[1e999]",
    b"NaN",
    b"{" * 10_000,
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b"9" * 5000,
    b"\xff\xfe\x00\x01",
    b"\xef\xbb\xbf{}",
    b"a,b\n1,2\n",
    b"\x00" * 4096,
)


class _Canary:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (CANARY,)


def truncate(path: Path, rng: random.Random) -> None:
    """Cut the file at a random place."""
    os.truncate(path, rng.randrange(max(path.stat().st_size, 1)))


def empty(path: Path, _: random.Random) -> None:
    """Leave a file without content."""
    os.truncate(path, 0)


def extend(path: Path, rng: random.Random) -> None:
    """Append random bytes, or bytes of the file itself."""
    content = path.read_bytes()
    more = rng.randbytes(rng.choice([1, 8, 5000])) if rng.random() < 0.5 else content
    path.write_bytes(content + more)


def grow(path: Path, rng: random.Random) -> None:
    """Let the file have holes up to a size beyond all memory."""
    os.truncate(path, rng.choice([1 << 32, 1 << 40]))


def flip(path: Path, rng: random.Random) -> None:
    """Flip one bit; the beginning, the end and all parts between are equally likely."""
    content = bytearray(path.read_bytes())
    if not content:
        path.write_bytes(b"\x01")
        return
    part, size = rng.randrange(12), len(content)
    bounds = {0: (0, min(64, size)), 1: (max(size - 64, 0), size)}
    start, stop = bounds.get(part, ((part - 2) * size // 10, max((part - 1) * size // 10, 1)))
    place = rng.randrange(start, max(stop, start + 1)) % size
    content[place] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(content))


def scramble(path: Path, rng: random.Random) -> None:
    """Replace a random part by random bytes of another length."""
    content = path.read_bytes()
    start = rng.randrange(len(content) + 1)
    stop = min(start + rng.choice([1, 4, 100]), len(content))
    path.write_bytes(content[:start] + rng.randbytes(rng.choice([0, 4, 100])) + content[stop:])


def replace_document(path: Path, rng: random.Random) -> None:
    """Write something else in its place."""
    path.write_bytes(rng.choice(_DOCUMENTS))


def replace_pickle(path: Path, rng: random.Random) -> None:
    """Write a pickle that leaves a trace when it is run."""
    path.write_bytes(pickle.dumps(_Canary(), protocol=rng.choice([0, 2, 4])))


def replace_object_array(path: Path, _: random.Random) -> None:
    """Write an array of objects, as `np.save` does with pickle."""
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, np.array([_Canary()], dtype=object), allow_pickle=True)
    if path.suffix != ".npz":
        path.write_bytes(buffer.getvalue())
        return
    names = zipfile.ZipFile(path).namelist()
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, buffer.getvalue())


def replace_foreign(path: Path, rng: random.Random) -> None:
    """Put another file of the trial in its place."""
    others = [each for each in sorted(Path.cwd().rglob("*")) if each.is_file() and each != path]
    others = [each for each in others if each.name != "zero"]
    shutil.copyfile(rng.choice(others), path)


def replace_special(path: Path, rng: random.Random) -> None:
    """Put a pipe, a folder, a device or a link in its place."""
    path.unlink()
    kind = rng.choice(["pipe", "folder", "zero", "loop", "nowhere", "missing", "socket"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "nowhere":
        path.symlink_to("nowhere/at/all")
    elif kind == "socket":
        os.mknod(path, 0o140600)


def declare_huge(path: Path, rng: random.Random) -> None:
    """Let the file claim to hold far more than it does."""
    content = path.read_bytes()
    huge = rng.choice([1 << 31, 1 << 40, (1 << 63) - 1])
    if path.suffix == ".safetensors":
        path.write_bytes(huge.to_bytes(8, "little") + content[8:])
    elif path.suffix == ".npy":
        path.write_bytes(_array_header(huge) + content[128:])
    elif path.suffix == ".npz":
        names = zipfile.ZipFile(path).namelist()
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, _array_header(huge))
    elif path.suffix == ".ppr":
        path.write_bytes(huge.to_bytes(8, "little") + content[8:])
    elif path.suffix == ".parquet":
        size = rng.choice([1 << 30, (1 << 32) - 1])
        path.write_bytes(content[:-8] + size.to_bytes(4, "little") + content[-4:])
    else:
        path.write_bytes(content.replace(b"1", b"9" * 25, 1))


def _array_header(length: int) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({length},), }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + text.encode()


def change_json(path: Path, rng: random.Random) -> None:
    """Replace, remove or add one entry at a random place of a JSON document or line."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    chosen = rng.randrange(len(lines))
    document = change_value(json.loads(lines[chosen]), rng)
    lines[chosen] = json.dumps(document, indent=None if len(lines) > 1 else 2)
    path.write_text("\n".join(lines) + "\n")


def change_value(document: Any, rng: random.Random) -> Any:
    """Return a document with one wrong entry at a random place."""
    places: list[tuple[Any, Any]] = []
    open_values = [document]
    while open_values:
        value = open_values.pop()
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys)[:60]:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                open_values.append(value[key])
    if not places:
        return rng.choice(WRONG_VALUES)
    value, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.15:
        del value[key]
    elif kind < 0.25 and isinstance(value, dict):
        value["unheard of"] = value.pop(key)
    else:
        value[key] = rng.choice(WRONG_VALUES)
    return document


GENERAL: tuple[Damage, ...] = (
    *(truncate, empty, extend, grow, flip, scramble, replace_document, replace_pickle),
    *(replace_object_array, replace_foreign, replace_special, declare_huge),
)

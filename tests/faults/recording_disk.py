"""`RecordingDisk`: the system's disk, with a record of what would be left after a loss of power.

The model is a harsh one. Bytes of a file are safe once the file is synced, and names of a folder
once the folder is synced. Of everything else, nothing, all or some may have reached the disk.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from gpn_scale.disk import Disk
from gpn_scale.files import TEMPORARY

Tree = dict[str, bytes | None]
"""Contents of files by their paths below a folder; None for folders."""
NAMES_LEFT = ("none", "all", "last")
"""Which changes of names since the last sync of their folder have reached the disk."""
BYTES_LEFT = ("none", "half", "zeros", "all")
"""Which bytes since the last sync of their file have: zeros stand where sizes came first."""


def read_tree(folder: Path) -> Tree:
    """Return everything below a folder; links count as what they lead to."""
    paths = sorted(folder.rglob("*"))
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in paths
    }


@dataclass(eq=False)
class _File:
    """A file or folder in the record."""

    content: bytes | None
    """None for a folder."""
    synced: bytes = b""
    names: dict[str, "_File"] = field(default_factory=dict)
    synced_names: dict[str, "_File"] = field(default_factory=dict)
    pending: list[tuple[str, "_File | None"]] = field(default_factory=list)
    """Changes of names since the last sync: a name, and its file or None."""

    def change(self, *changes: tuple[str, "_File | None"]) -> None:
        for name, file in changes:
            if file is None:
                self.names.pop(name, None)
            else:
                self.names[name] = file
        self.pending += changes

    def sync(self) -> None:
        self.synced = self.content or b""
        self.synced_names, self.pending = dict(self.names), []

    def names_after(self, policy: str) -> dict[str, "_File"]:
        if policy == "all":
            return self.names
        left = dict(self.synced_names)
        for name, file in self.pending[-1:] if policy == "last" else []:
            if file is None:
                left.pop(name, None)
            else:
                left[name] = file
        return left

    def content_after(self, policy: str) -> bytes:
        assert self.content is not None
        whole, safe = self.content, self.synced
        if policy == "all" or (policy != "none" and safe.startswith(whole)):
            return whole
        if policy == "none":
            return safe
        start = len(safe) if whole.startswith(safe) else 0
        if policy == "half":
            return whole[: start + (len(whole) - start) // 2]
        return whole[:start] + bytes(len(whole) - start)

    def tree(
        self, names: str, content: str, prefix: str = ""
    ) -> Iterator[tuple[str, bytes | None]]:
        for name, file in sorted(self.names_after(names).items()):
            if file.content is not None:
                yield prefix + name, file.content_after(content)
            else:
                yield prefix + name, None
                yield from file.tree(names, content, f"{prefix}{name}/")


class RecordingDisk(Disk):
    """A disk that makes all calls, and records those below a folder.

    Args:
        folder: The folder. What it holds at first is safe.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, _File] = {}
        self._appending: set[int] = set()
        self.root = _File(None)
        self.crashes: list[tuple[str, Tree]] = []
        """States that a loss of power would leave, each once, with the call before it."""
        self.versions: dict[str, set[bytes | None]] = {}
        """Contents that each file had under its own name; None if it was missing."""
        self.grown: set[str] = set()
        """Files that were appended to."""
        self._seen: set[int] = set()
        self._num_calls = 0
        for name, content in read_tree(folder).items():
            parent, last = self._parent(folder / name)
            made = _File(content, content or b"")
            parent.names[last] = parent.synced_names[last] = made
        self.versions = {name: {content} for name, content in read_tree(folder).items()}

    def open(self, path: Path, flags: int, permissions: int = 0o666) -> int:
        descriptor = super().open(path, flags, permissions)
        if self._is_inside(path):
            file = self._at(path)
            if file is None:
                file = _File(b"")
                parent, name = self._parent(path)
                parent.change((name, file))
            self._open[descriptor] = file
            self._appending.discard(descriptor)
            if flags & os.O_APPEND:
                self._appending.add(descriptor)
                self.grown.add(self._name(path))
            self._record(f"open {path.name}")
        else:
            self._open.pop(descriptor, None)
        return descriptor

    def open_unnamed(self, folder: Path | None) -> int:
        descriptor = super().open_unnamed(folder)
        self._open.pop(descriptor, None)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> int:
        file = self._open.get(descriptor)
        if file is None:
            return super().write(descriptor, data)
        assert file.content is not None
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        if descriptor in self._appending:
            place = len(file.content)
        count = super().write(descriptor, data)
        written = bytes(memoryview(data).cast("B")[:count])
        start = file.content[:place].ljust(place, b"\0")
        file.content = start + written + file.content[place + count :]
        self._record("write")
        return count

    def truncate(self, descriptor: int, num_bytes: int) -> None:
        super().truncate(descriptor, num_bytes)
        if (file := self._open.get(descriptor)) is not None and file.content is not None:
            file.content = file.content[:num_bytes]
            self._record("truncate")

    def sync(self, descriptor: int) -> None:
        super().sync(descriptor)
        if (file := self._open.get(descriptor)) is not None:
            file.sync()
            self._record("sync")

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if not self._is_inside(source):
            return
        parent, name = self._parent(source)
        other, new = self._parent(target)
        assert parent is other, "a rename into another folder is not modelled"
        file = parent.names[name]
        del parent.names[name]
        parent.names[new] = file
        # One change, which happens as a whole: the old name goes with it if it had come.
        parent.pending = [each for each in parent.pending if each[0] != name]
        parent.synced_names.pop(name, None)
        parent.pending.append((new, file))
        self._record(f"rename {target.name}")

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._forget(path)

    def rmdir(self, path: Path) -> None:
        super().rmdir(path)
        self._forget(path)

    def mkdir(self, path: Path) -> None:
        super().mkdir(path)
        if self._is_inside(path):
            parent, name = self._parent(path)
            parent.change((name, _File(None)))
            self._record(f"mkdir {path.name}")

    def _forget(self, path: Path) -> None:
        if self._is_inside(path):
            parent, name = self._parent(path)
            parent.change((name, None))
            self._record(f"remove {path.name}")

    def _record(self, call: str) -> None:
        self._num_calls += 1
        for names, content in product(NAMES_LEFT, BYTES_LEFT):
            tree = dict(self.root.tree(names, content))
            identity = hash(tuple(tree.items()))
            if identity not in self._seen:
                self._seen.add(identity)
                label = f"after call {self._num_calls} ({call}), {names} names, {content} bytes"
                self.crashes.append((label, tree))
        self._keep_versions()

    def _keep_versions(self) -> None:
        tree = dict(self.root.tree("all", "all"))
        for name in {*self.versions, *tree}:
            if TEMPORARY.fullmatch(Path(name).name) is None:
                self.versions.setdefault(name, {None}).add(tree.get(name))

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.abspath(path)).is_relative_to(self._folder)

    def _name(self, path: Path) -> str:
        return Path(os.path.abspath(path)).relative_to(self._folder).as_posix()

    def _at(self, path: Path) -> _File | None:
        file = self.root
        for name in Path(os.path.abspath(path)).relative_to(self._folder).parts:
            if name not in file.names:
                return None
            file = file.names[name]
        return file

    def _parent(self, path: Path) -> tuple[_File, str]:
        parent = self._at(Path(os.path.abspath(path)).parent)
        assert parent is not None, path
        return parent, Path(path).name

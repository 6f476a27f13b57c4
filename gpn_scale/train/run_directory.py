"""The directory of a run: the names of its files, and checks of what may be overwritten."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from gpn_scale.errors import RunError
from gpn_scale.files import (
    TEMPORARY,
    make_folder,
    remove,
    remove_folder,
    remove_left_over,
    write_json,
)
from gpn_scale.locks import claimed
from gpn_scale.reading import read_json

_PLOT_SUFFIXES = (".svg", ".png")
SERVED_SUFFIXES = (".arrow", ".json", ".lock", ".npy", ".safetensors")
"""Suffixes of the files that the service writes to its folder."""
_EVENTS = "events.out.tfevents.*"
"""TensorBoard names its files itself, with time, machine and process."""


class _WrittenList(NamedTuple):
    """The list of a run: the files that it writes, and the launcher that has started it."""

    files: tuple[str, ...] = ()
    """Paths below the directory; `*` stands for any characters."""
    launch: str = ""
    """Identifies the launcher; "" for none."""


class RunDirectory:
    """Names of a run's files; `claim` prevents that anything is overwritten by accident.

    A run keeps the list `written.json` of the files that it writes. Overwriting removes the files
    on the list, and is refused if the directory has other files under the names of a run's files.

    Args:
        path: The directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = path / "written.json"
        self.config = path / "config.json"
        self.inputs = path / "inputs.json"
        self.warm_start = path / "warm_start.json"
        self.start_model = path / "start.safetensors"
        self.split = path / "split.npy"
        self.checkpoint = path / "checkpoint.safetensors"
        self.opinion_checkpoint = path / "checkpoint_opinion.safetensors"
        self.model = path / "model.safetensors"
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.report = path / "report.json"
        self.report_markdown = path / "report.md"
        self.page = path / "report.html"
        self.plots = path / "plots"
        self.predictions = path / "predictions.parquet"
        self.promise = path / "promise.json"
        self.served = path / "served"
        self.decisions = path / "decisions.jsonl"
        self.graph = path / "graph"
        self.store = path / "store"
        self.lock = path / ".lock"

    def checkpoint_of(self, part: str) -> Path:
        """Return the checkpoint of a part of the model, `features` or `opinion`."""
        return self.opinion_checkpoint if part == "opinion" else self.checkpoint

    @property
    def files(self) -> list[Path]:
        """All files that a run writes.

        Its inputs, the graph and the rows, are not among them. Neither are the lock and the
        decisions, which belong to the user and which only the user removes.
        """
        given = {self.path, self.graph, self.store, self.decisions, self.lock}
        return [value for value in vars(self).values() if value not in given]

    @property
    def _folders(self) -> tuple[Path, ...]:
        """The folders of files that a run writes."""
        return self.tensorboard, self.plots, self.served

    @property
    def holds_run(self) -> bool:
        """Whether anything has the name of a run's file."""
        return any(map(_is_present, self.files))

    def claim(self, *, overwrite: bool, resume: bool) -> None:
        """Create the directory and check that a run may be written there, without removing files.

        Args:
            overwrite: Whether an earlier run may be replaced.
            resume: Whether an earlier run may be continued.

        Raises:
            RunError: the directory cannot be written; or it holds a run and neither is allowed; or
                it has files under the names of a run's files that no run has written.
        """
        try:
            make_folder(self.path)
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be created ({error.strerror}): choose another directory",
                arguments=("out",),
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise RunError(
                f"{self.path} is not writable: choose another directory", arguments=("out",)
            )
        present = [file for file in self.files if _is_present(file)]
        if not present:
            return
        is_run = _is_present(self.written) or _is_present(self.config)
        if resume and is_run:
            return
        if is_run and not overwrite:
            raise RunError(
                f"{self.path} already holds a run ({present[0].name}): resume or overwrite it, or "
                "choose another directory",
                arguments=("existing", "out"),
            )
        foreign = self._foreign_files()
        if foreign or not overwrite:
            name = (foreign or present)[0].relative_to(self.path)
            raise RunError(
                f"{self.path} holds {name}, which a new run would replace although it is not on "
                f"the list of files that a run has written ({self.written.name}): move it away, or "
                "choose another directory",
                arguments=("out",),
            )

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep other processes from training in this directory while the block runs.

        The reservation ends with the process, whatever ends it.

        Raises:
            RunError: another process is training there.
        """
        with claimed(self.lock, wait=False) as acquired:
            if not acquired:
                raise RunError(
                    f"{self.path} is in use: another process is training there; wait until it has "
                    "ended, or choose another directory",
                    arguments=("out",),
                )
            yield

    def begin(self, *, overwrite: bool, launch: str = "") -> None:
        """Remove an earlier run if `overwrite`, then list the files that the new one will write.

        Args:
            overwrite: Whether to remove an earlier run.
            launch: Id of the launcher, which may restart the run if a process is lost; "" for none.
        """
        if overwrite:
            self.clear()
        own = {file.name for file in self.files}
        remove_left_over(self.path, lambda name: name in own)
        fixed = [file for file in self.files if file not in self._folders]
        events = (self.tensorboard / _EVENTS, self.tensorboard / "opinion" / _EVENTS)
        self.list_written((*fixed, *events), launch=launch)

    def begun_by(self, launch: str) -> bool:
        """Return whether this launcher has begun or continued the run that the directory holds.

        Raises:
            RunError: the list of the run cannot be read.
        """
        return bool(launch) and self._list().launch == launch

    def list_written(self, files: Iterable[Path], *, launch: str | None = None) -> None:
        """Add files of this directory to the list, before they are written.

        Args:
            files: The files.
            launch: Identifies the launcher of the run from now on; None for the same as before.
        """
        names = [file.relative_to(self.path).as_posix() for file in files]
        before = self._list()
        added = tuple(name for name in names if name not in before.files)
        after = _WrittenList(before.files + added, before.launch if launch is None else launch)
        if after != before:
            write_json(self.written, {"files": list(after.files), "launch": after.launch})

    def clear(self) -> None:
        """Remove the files on the list of an earlier run; all other files are kept."""
        listed = self._list().files
        own = [file for file in self._below(self.files) if self._is_listed(file, listed)]
        remove(*(file for file in own if file != self.written))
        for folder in (self.tensorboard / "opinion", *self._folders):
            if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                remove_folder(folder)
        remove(self.written)  # last, so that an interrupted removal can be repeated

    def _foreign_files(self) -> list[Path]:
        """Return files with the name of a run's file, or in its folders, that are not listed."""
        listed = self._list().files
        return [file for file in self._below(self.files) if not self._is_listed(file, listed)]

    def _below(self, paths: Iterable[Path]) -> list[Path]:
        """Return the existing paths, with each folder of a run replaced by its content."""
        present: list[Path] = []
        for path in paths:
            if path in self._folders and path.is_dir():
                inside = sorted(path.rglob("*"))
                present += [each for each in inside if each.is_symlink() or not each.is_dir()]
                continue
            temporary = (each for each in self.path.glob(".*.tmp") if _final(each) == path)
            present += [each for each in (path, *temporary) if _is_present(each)]
        return present

    def _is_listed(self, file: Path, listed: Sequence[str]) -> bool:
        """Return whether a list names the file, which a run may also have written by its name.

        The second condition protects other files from a list that was damaged or made up.
        """
        if file.is_dir() and not file.is_symlink():
            return False
        final = _final(file)
        name = final.relative_to(self.path).as_posix()
        if final == self.written:
            return True
        return self._is_own_name(name) and any(fnmatchcase(name, each) for each in listed)

    def _is_own_name(self, name: str) -> bool:
        path = PurePosixPath(name)
        if path.parts[0] == self.plots.name:
            return len(path.parts) == 2 and path.suffix in _PLOT_SUFFIXES
        if path.parts[0] == self.served.name:
            return len(path.parts) == 2 and path.suffix in SERVED_SUFFIXES
        if path.parts[0] == self.tensorboard.name:
            return fnmatchcase(path.name, _EVENTS)
        return len(path.parts) == 1

    def _list(self) -> "_WrittenList":
        """Return the list of an earlier run, or an empty one.

        Raises:
            RunError: the list cannot be read.
        """
        if not _is_present(self.written):
            return _WrittenList()
        try:
            values = read_json(self.written)
            names, launch = values["files"], values.get("launch", "")
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("its entry 'files' is not a list of names")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{self.written} cannot be read ({type(error).__name__}: {error}), so the files "
                "of the run are not known: remove the directory, or choose another one",
                arguments=("out",),
            ) from error
        return _WrittenList(tuple(names), str(launch))


def _final(path: Path) -> Path:
    """Return the path that a temporary file was to be renamed to; other paths as they are."""
    match = TEMPORARY.fullmatch(path.name)
    return path if match is None else path.with_name(match["name"])


def _is_present(path: Path) -> bool:
    return path.exists() or path.is_symlink()

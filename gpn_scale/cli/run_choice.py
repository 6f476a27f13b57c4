"""The directory of a run: which one is taken if none is given, and what happens to one in it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

from gpn_scale.cli.torchrun import is_restarted, launch_id
from gpn_scale.distributed import World
from gpn_scale.errors import RunError
from gpn_scale.files import file_name, make_folder
from gpn_scale.messages import say
from gpn_scale.train.run_directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """A directory, and whether the run in it is continued or replaced."""

    out: Path | None
    """The directory; None for `runs/NAME`."""
    resume: bool
    overwrite: bool

    @property
    def directory(self) -> RunDirectory:
        """The files of the directory, once it is chosen."""
        assert self.out is not None
        return RunDirectory(self.out)


def chosen_run(asked: RunChoice, dataset: str, world: World) -> RunChoice:
    """Return the run that this call is to make, the same in all processes; rank 0 decides.

    Without a directory it is `runs/NAME`, or `runs/NAME_2` and so on if that holds a run; `resume`
    and `overwrite` take the last of these. A call that torchrun has started again continues the run
    that it has begun.

    Raises:
        RunError: the directory cannot be used as asked.
    """
    text = ""
    with world.all_or_none():
        if world.is_first:
            chosen = _restarted(asked, dataset) if is_restarted() else None
            chosen = chosen or _claimed(asked, dataset)
            values = (str(chosen.out), chosen.resume, chosen.overwrite)
            text = json.dumps(values)
    out, resume, overwrite = json.loads(world.from_first(text))
    return RunChoice(out=Path(out), resume=resume, overwrite=overwrite)


def _restarted(asked: RunChoice, dataset: str) -> RunChoice | None:
    """Return the run that an earlier attempt of this torchrun has begun; None without one."""
    folders = [asked.out] if asked.out is not None else _present_folders(dataset)
    for folder in folders:
        if RunDirectory(folder).begun_by(launch_id()):
            return RunChoice(out=folder, resume=True, overwrite=False)
    return None


def _claimed(asked: RunChoice, dataset: str) -> RunChoice:
    """Return the choice with a directory that exists and may be written to as asked."""
    out = asked.out
    if out is None:
        present = _present_folders(dataset) if asked.resume or asked.overwrite else []
        out = present[-1] if present else _new_folder(dataset)
    RunDirectory(out).claim(overwrite=asked.overwrite, resume=asked.resume)
    return RunChoice(out=out, resume=asked.resume, overwrite=asked.overwrite)


def _new_folder(dataset: str) -> Path:
    """Create and return the first default folder without a run; say so if it has a number.

    Two calls at the same time get two folders.
    """
    first = folder = next(_default_folders(dataset))
    for folder in _default_folders(dataset):
        try:
            make_folder(folder, exist_ok=False)
        except FileExistsError:
            if not folder.is_dir() or RunDirectory(folder).holds_run:
                continue
        except OSError as error:
            raise RunError(
                f"{folder} cannot be created ({error.strerror}); choose another directory",
                arguments=("out",),
            ) from error
        break
    if folder != first:
        say("note", f"{first} holds a run, so this one goes to {folder}", path=folder)
    return folder


def _present_folders(dataset: str) -> list[Path]:
    return list(takewhile(Path.is_dir, _default_folders(dataset)))


def _default_folders(dataset: str) -> Iterator[Path]:
    """Yield runs/NAME, runs/NAME_2, runs/NAME_3 and so on."""
    name = file_name(Path(dataset.partition(":")[0]).name)
    yield Path("runs") / name
    for number in count(2):
        yield Path("runs") / f"{name}_{number}"

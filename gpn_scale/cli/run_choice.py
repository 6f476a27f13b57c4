"""Choice of a run's directory, and whether a run in it is continued, replaced or refused."""

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
    """A run's directory, and whether a run that it already holds is continued or replaced."""

    out: Path | None
    """The directory; None for `runs/NAME`."""
    resume: bool
    overwrite: bool

    @property
    def directory(self) -> RunDirectory:
        """Paths of the run's files; only once the directory has been chosen."""
        assert self.out is not None
        return RunDirectory(self.out)


def chosen_run(requested: RunChoice, dataset: str, world: World) -> RunChoice:
    """Return the run to train; rank 0 decides, and all processes get the same answer.

    The default directory is `runs/NAME`, or `runs/NAME_2` and so on if that holds a run; `resume`
    and `overwrite` use the last existing one. A call that torchrun has restarted continues the run
    that the first attempt began.

    Raises:
        RunError: the directory cannot be used as requested.
    """
    text = ""
    with world.all_or_none():
        if world.is_first:
            chosen = _restarted(requested, dataset) if is_restarted() else None
            chosen = chosen or _claimed(requested, dataset)
            values = (str(chosen.out), chosen.resume, chosen.overwrite)
            text = json.dumps(values)
    out, resume, overwrite = json.loads(world.from_first(text))
    return RunChoice(out=Path(out), resume=resume, overwrite=overwrite)


def _restarted(requested: RunChoice, dataset: str) -> RunChoice | None:
    """Return the run that an earlier attempt of this torchrun began, or None."""
    folders = [requested.out] if requested.out is not None else _present_folders(dataset)
    for folder in folders:
        if RunDirectory(folder).begun_by(launch_id()):
            return RunChoice(out=folder, resume=True, overwrite=False)
    return None


def _claimed(requested: RunChoice, dataset: str) -> RunChoice:
    """Choose or create the directory, check that it may be used as requested, and return it."""
    out = requested.out
    if out is None:
        present = _present_folders(dataset) if requested.resume or requested.overwrite else []
        out = present[-1] if present else _new_folder(dataset)
    RunDirectory(out).claim(overwrite=requested.overwrite, resume=requested.resume)
    return RunChoice(out=out, resume=requested.resume, overwrite=requested.overwrite)


def _new_folder(dataset: str) -> Path:
    """Create and return the first default folder without a run; print a note if it is numbered.

    Two simultaneous calls get two different folders.
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
        say("note", f"{first} already holds a run; writing this one to {folder}", path=folder)
    return folder


def _present_folders(dataset: str) -> list[Path]:
    return list(takewhile(Path.is_dir, _default_folders(dataset)))


def _default_folders(dataset: str) -> Iterator[Path]:
    """Yield runs/NAME, runs/NAME_2, runs/NAME_3 and so on."""
    name = file_name(Path(dataset.partition(":")[0]).name)
    yield Path("runs") / name
    for number in count(2):
        yield Path("runs") / f"{name}_{number}"

"""A trial: one call of a command, what was done to its files, and what it may end with."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Prepare = Callable[[Path], None]
"""Changes the copied files in a folder before the command runs."""


def nothing(_: Path) -> None:
    """Leave the files as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A call of a command that works, and the files that it writes."""

    name: str = ""
    command: str
    """Name of the command in `commands.COMMANDS`."""
    arguments: tuple[str, ...]
    uses: tuple[str, ...]
    """Files and folders of the workshop that it reads; they are copied."""
    outputs: tuple[str, ...] = ()
    """Files that it writes, or `stdout`; a damaged input must not change them without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A job with hostile options, files or limits."""

    section: str
    number: int
    job: Job
    arguments: tuple[str, ...] = ()
    """Further arguments, after those of the job; the last value of an option counts."""
    note: str = ""
    """What was done to the files or the process, in a few words."""
    prepare: Prepare = nothing
    limit: Callable[[], None] | None = None
    """Called in the process of the command just before it begins."""
    own_process: bool = False
    """Whether the command runs in a new process of its own, as a user starts it."""
    is_compared: bool = False
    """Whether the results must be those of the job with whole files, if there is no error."""
    check: Callable[[Path], str] | None = None
    """Maps the folder to what is wrong with the results in it; "" if nothing is."""
    call: Callable[[Path], int] | None = None
    """Runs in place of the command, and returns its exit code."""
    codes: tuple[int, ...] = (0, 2)
    """Exit codes that the documentation promises; 2 needs one sentence."""
    is_mute: bool = False
    """Whether the command has no standard error to write a sentence to."""
    stop_at: str = ""
    """Text on standard output that shows that a service has started, which is then stopped."""

    @property
    def name(self) -> str:
        """Section and number, by which `--only` repeats the trial."""
        return f"{self.section}:{self.number}"

    @property
    def words(self) -> tuple[str, ...]:
        """All arguments of the command."""
        return (*self.job.arguments, *self.arguments)


def generator(rng_seed: int, section: str, number: int) -> random.Random:
    """Return the random numbers of one trial, the same however many others there are."""
    return random.Random(f"{rng_seed}/{section}/{number}")


def shuffled(items: list[Job] | list[tuple[object, ...]], rng_seed: int, section: str) -> list:
    """Return the items in an order that the seed decides."""
    order = list(items)
    random.Random(f"{rng_seed}/{section}").shuffle(order)
    return order

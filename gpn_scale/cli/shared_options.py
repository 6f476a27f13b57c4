"""Options that several commands share, and checks of their values."""

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from gpn_scale.errors import ConfigError
from gpn_scale.files import make_folder, remove_folder
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES

_MOST_GIGABYTES = 1_000_000
_MOST_THREADS = 256


def add_run(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add `--run`, for every command that reads a run."""
    parser.add_argument(
        "--run",
        type=Path,
        required=required,
        metavar="RUN",
        help="directory of a run that gpn-train has written",
    )


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir`, for every command that loads the graph of a run."""
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder with the graph (default: the folder that the run used)",
    )


def add_rows(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--ppr`, whose use `text` explains."""
    parser.add_argument("--ppr", type=Path, metavar="STORE", help=text)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add `--device` and `--threads`, for every command that uses a model."""
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto, cpu, cuda, ...; auto is cuda if available (default: auto)",
    )
    parser.add_argument(
        "--threads", type=int, metavar="T", help="number of CPU threads (default: all cores)"
    )


def add_memory_budget(parser: argparse.ArgumentParser) -> None:
    """Add `--memory-budget`, for every command that predicts all nodes."""
    parser.add_argument(
        "--memory-budget",
        type=float,
        default=DEFAULT_MEMORY_BYTES / 1e9,
        metavar="GB",
        help="memory for predicting all nodes, in addition to graph and model; larger arrays go "
        "to disk (default: %(default).1f)",
    )


def memory_bytes(gigabytes: float) -> int:
    """Return the value of `--memory-budget` in bytes."""
    if not 0 < gigabytes <= _MOST_GIGABYTES:
        raise ConfigError(
            f"--memory-budget is {gigabytes}, expected a number of gigabytes above 0 and at most "
            f"{_MOST_GIGABYTES:,}"
        )
    return int(gigabytes * 1e9)


def checked_threads(threads: int) -> int:
    """Return the value of `--threads` if it is at least 1 and plausible for this machine."""
    if threads < 1:
        raise ConfigError(f"--threads is {threads}, expected at least 1")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if threads > most:
        raise ConfigError(
            f"--threads is {threads}, expected at most {most}; this machine has "
            f"{os.cpu_count()} cores"
        )
    return threads


def use_threads(threads: int | None) -> None:
    """Set torch's number of threads to the value of `--threads`; None keeps torch's default.

    Raises:
        ConfigError: the number is below 1 or too large.
    """
    if threads is not None:
        torch.set_num_threads(checked_threads(threads))


@contextmanager
def claimed_folder(folder: Path, names: Iterable[str], *, overwrite: bool) -> Iterator[None]:
    """Claim the folder of `--out` for a block; one that is new and stays empty is removed again.

    Another process may use the same folder and remove it while it is empty, so what writes there
    creates it again if needed.

    Args:
        folder: The folder.
        names: Names of the files that will be written there.
        overwrite: Whether they may exist already.

    Raises:
        ConfigError: one of the files exists, or the folder cannot be used.
    """
    is_new = not folder.exists()
    claim_folder(folder, names, overwrite=overwrite)
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # another process has removed it, or has just written to it
                if not any(folder.iterdir()):
                    remove_folder(folder)


def claim_folder(folder: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Create the folder of `--out`, and check that no file is overwritten by accident.

    Args:
        folder: The folder.
        names: Names of the files that will be written there.
        overwrite: Whether they may exist already.

    Raises:
        ConfigError: one of the files exists, or the folder cannot be used.
    """
    present = [folder / name for name in names if (folder / name).exists()]
    if present and not overwrite:
        raise ConfigError(f"{present[0]} already exists: use --overwrite to replace it")
    try:
        make_folder(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be created ({error.strerror}): choose another folder",
            arguments=("out",),
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{folder} is not writable: choose another folder", arguments=("out",))

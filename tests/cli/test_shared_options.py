import math
import re
from pathlib import Path

import pytest
import torch

from gpn_scale.cli.shared_options import (
    add_data_dir,
    add_device,
    add_memory_budget,
    add_rows,
    add_run,
    checked_threads,
    claim_folder,
    claimed_folder,
    memory_bytes,
    use_threads,
)
from gpn_scale.command_line import CommandParser
from gpn_scale.errors import ConfigError
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES


def test_options_and_their_defaults(capsys):
    parser = CommandParser(prog="x")
    add_run(parser)
    add_data_dir(parser)
    add_rows(parser, "rows of some use")
    add_device(parser)
    add_memory_budget(parser)
    options = parser.parse_args(["--run", "r"])
    assert (options.run, options.data_dir, options.ppr) == (Path("r"), None, None)
    assert (options.device, options.threads) == ("auto", None)
    assert memory_bytes(options.memory_budget) == DEFAULT_MEMORY_BYTES
    assert "rows of some use" in parser.format_help()
    with pytest.raises(SystemExit):
        parser.parse_args([])
    assert "--run" in capsys.readouterr().err
    optional = CommandParser(prog="x")
    add_run(optional, required=False)
    assert optional.parse_args([]).run is None


def test_threads_and_memory_are_positive():
    assert checked_threads(2) == 2
    assert memory_bytes(1.5) == 1_500_000_000
    with pytest.raises(ConfigError, match="--threads is 0, expected at least 1"):
        checked_threads(0)
    with pytest.raises(
        ConfigError, match="--memory-budget is nan, expected a number of gigabytes above 0"
    ):
        memory_bytes(float("nan"))


def test_torch_uses_as_many_threads_as_asked_for():
    before = torch.get_num_threads()
    try:
        use_threads(before + 1)
        use_threads(None)
        assert torch.get_num_threads() == before + 1
        with pytest.raises(ConfigError, match="--threads is 0"):
            use_threads(0)
    finally:
        torch.set_num_threads(before)


def test_a_folder_is_made_and_its_files_are_kept(tmp_path):
    folder = tmp_path / "a" / "b"
    claim_folder(folder, ("x.csv", "y.csv"), overwrite=False)
    assert folder.is_dir()
    (folder / "y.csv").touch()
    with pytest.raises(ConfigError, match=r"y\.csv already exists: use --overwrite to replace it"):
        claim_folder(folder, ("x.csv", "y.csv"), overwrite=False)
    claim_folder(folder, ("x.csv", "y.csv"), overwrite=True)
    claim_folder(folder, ("x.csv",), overwrite=False)
    with pytest.raises(ConfigError, match=r"cannot be created \(Not a directory\)") as refusal:
        claim_folder(folder / "y.csv" / "c", ("x.csv",), overwrite=False)
    assert refusal.value.arguments == ("out",)


def test_a_new_folder_that_stays_empty_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    for name in ("old", "new"):
        with (
            pytest.raises(ConfigError, match="too few"),
            claimed_folder(tmp_path / name, ("x.csv",), overwrite=False),
        ):
            raise ConfigError("too few")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    with claimed_folder(tmp_path / "new", ("x.csv",), overwrite=False):
        (tmp_path / "new" / "x.csv").touch()
    assert (tmp_path / "new" / "x.csv").exists()


def test_a_folder_that_has_vanished_does_not_hide_the_error(tmp_path):
    def refuse_without_folder():
        with claimed_folder(tmp_path / "new", ("x.csv",), overwrite=False):
            (tmp_path / "new").rmdir()
            raise ConfigError("too few")

    with pytest.raises(ConfigError, match="too few"):
        refuse_without_folder()


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, -math.inf, math.nan, 1e30])
def test_memory_budgets_are_bounded(value):
    with pytest.raises(ConfigError, match=rf"--memory-budget is {re.escape(str(value))}, expected"):
        memory_bytes(value)


def test_threads_are_bounded():
    assert checked_threads(3) == 3
    for threads in (0, -1, 100_000, 10**30):
        with pytest.raises(ConfigError, match=rf"--threads is {threads}, expected at "):
            checked_threads(threads)

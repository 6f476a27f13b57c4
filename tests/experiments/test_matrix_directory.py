import json
import math

import pytest

from gpn_scale import __version__
from gpn_scale.checked_json import (
    CHECKSUM,
    json_checksum,
    read_checked_json,
    write_checked_json,
)
from gpn_scale.errors import RunError
from gpn_scale.experiments.cells import CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.stored_results import stored_results
from gpn_scale.experiments.training_cost import TrainingCost
from tests.experiments.cells import CELL


@pytest.fixture
def directory(tmp_path):
    return MatrixDirectory(tmp_path / "matrix")


def test_results_are_read_as_they_were_written(directory):
    assert directory.result(CELL) is None
    result = CellResult("f", {"clean": {"auroc": math.nan, "accuracy": 1.0}})
    directory.write_result(CELL, result)
    stored = directory.result(CELL)
    assert stored.fingerprint == "f"
    assert math.isnan(stored.results["clean"]["auroc"])
    assert stored.results["clean"]["accuracy"] == 1.0


def test_the_layout_of_files_is_stable(directory):
    directory.write_result(CELL, CellResult("f", {"clean": {"auroc": math.nan}}))
    path = directory.path / "cells" / "G" / "GPN" / "all_classes" / "split1_init1.json"
    content = {"version": __version__, "fingerprint": "f", "results": {"clean": {"auroc": None}}}
    assert json.loads(path.read_text()) == content | {CHECKSUM: json_checksum(content)}
    assert directory.model_file(CELL) == path.with_suffix(".safetensors")
    assert directory.lock_file(CELL.name) == directory.path / "locks" / CELL.name


def test_results_of_another_version_or_configuration_are_refused(directory):
    directory.write_result(CELL, CellResult("f", {"clean": {"accuracy": 1.0}}))
    assert directory.unfinished(CELL, ["clean", "isolated"], "f") == ["isolated"]
    with pytest.raises(RunError, match="was made with another configuration") as caught:
        directory.unfinished(CELL, ["clean"], "other")
    assert caught.value.arguments == ("out",)
    path = directory.model_file(CELL).with_suffix(".json")
    write_checked_json(path, read_checked_json(path) | {"version": "0.0.0"})
    with pytest.raises(RunError, match=r"was written by version 0.0.0"):
        directory.result(CELL)
    path.write_text(path.read_text().replace("1.0", "0.9"))
    with pytest.raises(RunError, match="its checksum is"):
        directory.result(CELL)
    path.write_text('{"version": ')
    with pytest.raises(RunError, match="is damaged"):
        directory.result(CELL)


def test_the_cost_of_a_training_is_a_file_of_its_own(directory):
    assert directory.cost(CELL) is None
    cost = TrainingCost(seconds=2.5, cpu_seconds=2.0, added_bytes=1 << 20)
    directory.write_cost(CELL, cost)
    assert directory.cost(CELL) == cost
    assert directory.result(CELL) is None
    assert stored_results(directory.path) == {}
    path = directory.path / "costs" / "G" / "GPN" / "all_classes" / "split1_init1.json"
    for damaged in ("{", '{"seconds": 1}'):
        path.write_text(damaged)
        with pytest.raises(RunError, match="is damaged"):
            directory.cost(CELL)

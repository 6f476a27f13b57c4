import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.cells import CellResult, cells_of
from tests.experiments.cells import ALL, CELL


def test_cells_are_those_that_the_experiments_need():
    cells = cells_of(["A", "B"], ["GPN"], ["clean", "isolated"], 2, 2)
    assert len(cells) == 8
    assert not any(cell.left_out for cell in cells)
    assert {cell.left_out for cell in cells_of(["A"], ["GPN"], ALL, 1, 1)} == {False, True}
    assert len({cell.name for cell in cells}) == 8
    assert [(cell.split, cell.init) for cell in cells[::2]] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    with pytest.raises(ConfigError, match="got 0 splits and 1 inits") as caught:
        cells_of(["A"], ["GPN"], ALL, 0, 1)
    assert caught.value.arguments == ("splits", "inits")


def test_names_are_paths_of_files():
    assert CELL.name == "G/GPN/all_classes/split1_init1"
    assert CELL._replace(left_out=True, init=3).name == "G/GPN/left_out/split1_init3"


def test_left_out_classes_have_a_training_of_their_own():
    left_out = CELL._replace(left_out=True)
    assert left_out.experiments_among(ALL) == ["left-out-classes"]
    assert CELL.experiments_among(ALL) == [name for name in ALL if name != "left-out-classes"]


def test_unfinished_are_experiments_without_result_or_without_some_fractions():
    shift = {f"accuracy@{kind}_0.20": 1.0 for kind in ("random", "dice")}
    result = CellResult("f", {"clean": {"accuracy": 1.0}, "edge-shift": shift})
    wanted = ["clean", "isolated", "edge-shift", "left-out-classes"]
    assert CELL.unfinished(None, wanted) == ["clean", "isolated", "edge-shift"]
    assert CELL.unfinished(result, wanted, (0.2,)) == ["isolated"]
    assert CELL.unfinished(result, wanted, (0.2, 0.5)) == ["isolated", "edge-shift"]

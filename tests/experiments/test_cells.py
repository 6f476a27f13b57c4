import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.cells import Cell, CellResult, cells_of
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
    left_out = CELL._replace(left_out=True, init=3)
    assert left_out.name == "G/GPN/left_out/split1_init3"
    assert left_out._replace(class_set=2).name == "G/GPN/left_out_set2/split1_init3"


def test_left_out_classes_have_a_training_of_their_own():
    left_out = CELL._replace(left_out=True)
    own = ["left-out-classes", "left-out-false-alarms"]
    assert left_out.experiments_among(ALL) == own
    assert CELL.experiments_among(ALL) == [name for name in ALL if name not in own]


def test_every_class_set_is_a_cell_and_all_classes_are_one():
    cells = cells_of(["A"], ["GPN", "LP"], ["clean", "left-out-classes"], 2, 1, (3, 0))
    assert [(c.split, c.model, c.left_out, c.class_set) for c in cells[:6]] == [
        (1, "GPN", False, 0),
        (1, "GPN", True, 3),
        (1, "LP", False, 0),
        (1, "LP", True, 3),
        (1, "GPN", True, 0),
        (1, "LP", True, 0),
    ]
    assert len(cells) == 12
    assert len({cell.name for cell in cells}) == 12
    assert cells_of(["A"], ["GPN"], ["clean"], 1, 1, (0, 1)) == [Cell("A", "GPN", False, 1, 1)]


def test_own_seeds_are_those_of_no_other_cell_but_of_other_models():
    cells = cells_of(["A", "B"], ["GPN"], ["clean", "left-out-classes"], 5, 3, range(5))
    seeds = {cell.own_seed for cell in cells}
    assert len(seeds) == len(cells) == 2 * 5 * 3 * 6
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert CELL.own_seed == CELL._replace(model="LP").own_seed
    assert CELL.own_seed == Cell("G", "GPN", False, 1, 1, 0).own_seed


def test_initialisations_of_other_class_sets_are_told_apart():
    cells = cells_of(["A"], ["GPN"], ["left-out-classes"], 2, 3, range(5))
    assert len({cell.seeds for cell in cells}) == len(cells)
    assert CELL.seeds == (1, 1)


def test_unfinished_are_experiments_without_result_or_without_some_fractions():
    shift = {f"accuracy@{kind}_0.20": 1.0 for kind in ("random", "dice")}
    result = CellResult("f", {"clean": {"accuracy": 1.0}, "edge-shift": shift})
    wanted = ["clean", "isolated", "edge-shift", "left-out-classes"]
    assert CELL.unfinished(None, wanted) == ["clean", "isolated", "edge-shift"]
    assert CELL.unfinished(result, wanted, (0.2,)) == ["isolated"]
    assert CELL.unfinished(result, wanted, (0.2, 0.5)) == ["isolated", "edge-shift"]

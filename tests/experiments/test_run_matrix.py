import pytest

from gpn_scale.errors import ConfigError, RunError, StoreError
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.experiments.run_matrix import (
    needed_stores,
    run_cells,
    run_claimed_cell,
    run_matrix,
    unfinished_cells,
)
from gpn_scale.locks import claimed
from tests.ppr.stored import write_store

SMALL = "synthetic:nodes=100,classes=4,unseen_classes=0,features=6"


def request(tmp_path, **changes):
    facts = {
        "datasets": (SMALL,),
        "models": ("LP", "VGCN"),
        "experiments": ("clean", "left-out-classes"),
        "splits": 1,
        "inits": 1,
        "left_out_classes": "1",
        "changes": ("train.epochs=2",),
    }
    return MatrixRequest(out=tmp_path, **(facts | changes))


def test_a_matrix_is_run_and_then_finished(tmp_path):
    own = request(tmp_path)
    assert unfinished_cells(own) == own.cells
    results = run_matrix(own)
    assert list(results) == own.cells
    assert all(
        list(result.results) == cell.experiments_among(own.experiments)
        for cell, result in results.items()
    )
    assert unfinished_cells(own) == []
    assert run_matrix(own) == results
    other = request(tmp_path, changes=("train.epochs=3",))
    with pytest.raises(RunError, match="was made with another configuration"):
        run_matrix(other)


def test_several_processes_give_the_same_results(tmp_path):
    one, two = request(tmp_path / "one"), request(tmp_path / "two")
    assert run_matrix(one) == run_matrix(two, processes=2)


def test_stores_are_needed_once_and_must_exist_for_models_that_train_on_them(tmp_path):
    models = ("LP", "GPN", "GPN-minibatch", "PPRGo")
    own = request(tmp_path, models=models, changes=("minibatch.tail=stationary",))
    gpn, pprgo = needed_stores(own, own.cells)
    assert gpn.required
    assert pprgo.required
    assert gpn.dataset == SMALL
    (optional,) = needed_stores(request(tmp_path, models=("GPN",)), own.cells[2:4])
    assert not optional.required
    with pytest.raises(StoreError, match=r"is missing, expected a PPR store of synthetic"):
        run_matrix(own)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_rows_give_the_local_score_where_they_exist(tmp_path):
    own = request(tmp_path, models=("GPN",), experiments=("misclassification",))
    (cell,) = own.cells
    assert "auroc_epistemic_local" not in run_matrix(own)[cell].results["misclassification"]
    again = request(tmp_path / "rows", models=("GPN",), experiments=("misclassification",))
    (store,) = needed_stores(again, again.cells)
    store.path.parent.mkdir(parents=True)
    facts = store.diffusion.store_parameters
    write_store(str(store.path), again.graph(SMALL), store.diffusion, k=8, parameters=facts)
    assert "auroc_epistemic_local" in run_matrix(again)[cell].results["misclassification"]


def test_a_cell_that_another_process_runs_is_left_alone(tmp_path):
    own = request(tmp_path, models=("LP",), experiments=("clean",))
    (cell,) = own.cells
    with claimed(own.directory.lock_file(cell.name), wait=False) as is_free:
        assert is_free
        run_claimed_cell(own, cell)
    assert own.directory.result(cell) is None
    run_claimed_cell(own, cell)
    assert own.directory.result(cell) is not None


def test_at_least_one_process_is_needed(tmp_path):
    with pytest.raises(ConfigError, match="processes is 0, expected at least 1") as caught:
        run_cells(request(tmp_path), [], processes=0)
    assert caught.value.arguments == ("processes",)

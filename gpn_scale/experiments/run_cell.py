"""Training and measuring one cell of a matrix, resumed after any interruption.

The model file is written first. Then the results join the cell's JSON file one by one, so that a
matrix that is later asked for more experiments trains nothing again.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from gpn_scale.baselines.post_hoc_base import AbstractPostHoc
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import NumericalError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.trained import FRACTIONS, Trained
from gpn_scale.experiments.training_cost import TrainingCost, measured_cost
from gpn_scale.files import make_folder
from gpn_scale.models.protocol import NodeClassifier
from gpn_scale.models.setting import ModelSetting
from gpn_scale.train.checkpoint import load_tensors, save_tensors


def run_cell(
    directory: MatrixDirectory,
    cell: Cell,
    experiments: Sequence[str],
    setting: ModelSetting,
    load: Callable[[], Graph],
    *,
    store: Path | None = None,
    fractions: tuple[float, ...] = FRACTIONS,
) -> CellResult:
    """Train a cell unless its model is stored, add missing results, and return all of them.

    Args:
        directory: Directory of the matrix.
        cell: The cell.
        experiments: Names of experiments; those that need another training are ignored.
        setting: Setting of the model, with the cell's seeds and left-out classes in it.
        load: Function that returns the graph; called only if something is missing.
        store: PPR store with the rows of all nodes, for training in minibatch mode and for the
            score `epistemic_local`.
        fractions: Fractions of nodes or edges that the shifts change.

    Raises:
        NumericalError: the prediction of the trained model is not finite.
        RunError: the stored result comes from another configuration or version.
    """
    stored = directory.result_of(cell, setting.fingerprint)
    result = stored or CellResult(setting.fingerprint)
    unfinished = cell.unfinished(result, experiments, fractions)
    if not unfinished:
        return result
    graph = prepare_graph(load(), setting.config)
    record = partial(directory.write_cost, cell)
    base = stored_base(directory, cell, setting)
    classifier = fitted_model(directory.model_file(cell), setting, graph, store, record, base)
    trained = Trained(classifier, graph, experiment_seed(cell), store, fractions)
    for name in unfinished:
        try:
            metrics = EXPERIMENTS[name](trained)
        except NumericalError as error:
            raise NumericalError(f"{cell.name}, {name}: {error}") from error
        result.results[name] = result.results.get(name, {}) | metrics
        directory.write_result(cell, result)
    return result


def experiment_seed(cell: Cell) -> int:
    """Return the seed of the experiments' random choices in a cell."""
    return cell.split * 1000 + cell.init


class StoredBase(NamedTuple):
    """The trained network of a post-hoc method, from another cell of the matrix."""

    path: Path
    """File of its tensors."""
    tensors: dict[str, Tensor]
    cost: TrainingCost
    """Cost of training the network."""


def stored_base(directory: MatrixDirectory, cell: Cell, setting: ModelSetting) -> StoredBase | None:
    """Return the network of a post-hoc method that another cell has trained with the same seeds.

    None if the model has no such network, has changes of its own, or the other cell is not there.
    """
    if setting.base is None or cell.model != setting.kind:
        return None
    other = cell._replace(model=setting.base.kind)
    path, cost = directory.model_file(other), directory.cost(other)
    if cost is None or not path.exists():
        return None
    tensors, facts = load_tensors(path)
    is_same = facts.get("fingerprint") == setting.base.fingerprint
    return StoredBase(path, tensors, cost) if is_same else None


def fitted_model(
    path: Path,
    setting: ModelSetting,
    graph: Graph,
    store: Path | None,
    record: Callable[[TrainingCost], None] = lambda cost: None,
    base: StoredBase | None = None,
) -> NodeClassifier:
    """Return the model whose state is in `path`; fit and save it if the file has no such model.

    Args:
        path: The model file.
        setting: Setting of the model.
        graph: Graph with the split of the setting.
        store: PPR store for models that train on rows.
        record: Called with the cost of the training, if there is one.
        base: The network of a post-hoc method, which is then not trained again; the cost is that
            of both steps.
    """
    model = setting.new()
    if path.exists():
        tensors, facts = load_tensors(path)
        if facts.get("fingerprint") == setting.fingerprint:
            model.load_state(graph, tensors, path)
            return model
    rows = store if setting.needs_rows else None
    if base is not None:
        assert isinstance(model, AbstractPostHoc)
        model.use_base(graph, base.tensors, base.path)
    cost = measured_cost(lambda: model.fit(graph, store=rows))
    record(cost if base is None else cost.after(base.cost))
    facts = {
        "model": setting.kind,
        "fingerprint": setting.fingerprint,
        "config": setting.config.to_dict(),
    }
    make_folder(path.parent)
    save_tensors(path, model.state(), facts)
    return model

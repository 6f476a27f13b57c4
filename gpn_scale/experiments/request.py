"""`MatrixRequest`: the graphs, models, experiments and seeds of a matrix of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.shifts import check_fraction
from gpn_scale.data.splits import CLASS_SETS
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS, check_experiment
from gpn_scale.experiments.cells import Cell, cells_of
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.studies import STUDY_EXPERIMENTS, studied_models
from gpn_scale.experiments.trained import FRACTIONS
from gpn_scale.field_types import parse_assignments
from gpn_scale.files import file_name
from gpn_scale.models.plugins import load_installed_models, load_plugins
from gpn_scale.models.registry import ABLATION, parse_model, setting_of
from gpn_scale.models.setting import ModelSetting
from gpn_scale.recipes import left_out_count, recipe_for

ABLATION_EXPERIMENTS = ("clean", "left-out-classes", "isolated")
"""Experiments of the paper's ablation."""
STUDY_GROUP = "hyper-parameters"
"""Name of the group of experiments that stands for the hyper-parameter studies."""


@dataclass(frozen=True, kw_only=True)
class MatrixRequest:
    """A matrix of runs: every model on every dataset with every pair of seeds.

    Raises:
        ConfigError: a name is unknown, a fraction is out of range, or a list is empty.
    """

    out: Path
    """Directory of cells, stores and tables."""
    datasets: tuple[str, ...]
    """Names of datasets, as in `gpn_scale.data.datasets.load_graph`."""
    models: tuple[str, ...]
    """Names of models, each perhaps with changes: `NAME[section.field=value;...]`."""
    experiments: tuple[str, ...] = tuple(EXPERIMENTS)
    """Names of experiments."""
    splits: int = 10
    """Number of split seeds."""
    inits: int = 10
    """Number of seeds of initial values for each split."""
    fractions: tuple[float, ...] = FRACTIONS
    """Fractions of nodes or edges that the shifts change."""
    left_out_classes: str = "paper"
    """Number of classes that left-out-classes leaves out, or `paper` for the paper's number."""
    class_sets: tuple[int, ...] = (0,)
    """Sets of left-out classes, with one training each; 0 for the last classes, as in the paper."""
    own_seeds: bool = False
    """Whether every cell has its own seed of initial values; all models have the same ones."""
    changes: tuple[str, ...] = ()
    """Changes `section.field=value` of the recipes."""
    data_dir: Path = Path("data")
    """Directory of the datasets."""
    plugins: tuple[Path, ...] = ()
    """Files that register further models; they are run, here and in other processes."""

    def __post_init__(self) -> None:
        self.load_plugins()
        for name in ("datasets", "models", "experiments", "class_sets"):
            if not getattr(self, name):
                raise ConfigError(f"{name} is empty, expected at least one", arguments=(name,))
        for experiment in self.experiments:
            check_experiment(experiment)
        for model in self.models:
            parse_model(model)
        for fraction in self.fractions:
            check_fraction(fraction)
        if len(set(self.class_sets)) < len(self.class_sets) or not all(
            0 <= class_set < CLASS_SETS for class_set in self.class_sets
        ):
            raise ConfigError(
                f"class_sets is {self.class_sets}, expected different numbers from 0 to "
                f"{CLASS_SETS - 1}",
                arguments=("class_sets",),
            )

    def load_plugins(self) -> None:
        """Register the models of installed packages and of the plug-ins in this process.

        Raises:
            ConfigError: a plug-in cannot be used.
        """
        load_installed_models()
        load_plugins(self.plugins)

    @property
    def directory(self) -> MatrixDirectory:
        """The files of the matrix."""
        return MatrixDirectory(self.out)

    @property
    def cells(self) -> list[Cell]:
        """All cells.

        Raises:
            ConfigError: the number of splits or initialisations is below 1.
        """
        return cells_of(
            *(self.datasets, self.models, self.experiments),
            *(self.splits, self.inits, self.class_sets),
        )

    def graph(self, dataset: str) -> Graph:
        """Return the graph of a dataset, loaded once per process."""
        return _loaded_graph(dataset, self.data_dir)

    def setting(self, cell: Cell) -> ModelSetting:
        """Return the setting of a cell's model, with the cell's seeds.

        Raises:
            ConfigError: a field does not exist, or its value is not allowed.
        """
        graph = self.graph(cell.dataset)
        seed = cell.own_seed if self.own_seeds else cell.init
        pairs = [("split.rng_seed", str(cell.split)), ("train.rng_seed", str(seed))]
        if cell.left_out:
            count = left_out_count(cell.dataset, self.left_out_classes)
            pairs.append(("data.left_out_classes", str(count)))
            pairs.append(("data.left_out_set", str(cell.class_set)))
        changes = [*pairs, *parse_assignments(self.changes)]
        return setting_of(cell.model, recipe_for(cell.dataset, graph), changes, graph)

    def store_path(self, dataset: str, setting: ModelSetting) -> Path | None:
        """Return the path of the PPR store that a model uses; None for a model without rows."""
        diffusion = setting.row_diffusion
        if diffusion is None:
            return None
        facts = "_".join(str(value) for value in diffusion.store_parameters.values())
        return self.out / "stores" / f"{file_name(dataset.replace(':', '_'))}_{facts}"


@cache
def _loaded_graph(dataset: str, data_dir: Path) -> Graph:
    return load_graph(dataset, data_dir)


def expand_groups(
    names: Sequence[str], models: Sequence[str], studies: str = "all"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Expand the groups `all`, `ablation` and `hyper-parameters` to experiments and models.

    Args:
        names: Names of experiments and groups.
        models: Names of models; those of the ablation and of the studies are added.
        studies: Names of hyper-parameter studies separated by commas, or `all`.

    Raises:
        ConfigError: a study does not exist, or a studied model has changes in brackets.
    """
    experiments, all_models = list[str](), list(models)
    for name in names:
        if name == "ablation":
            experiments += ABLATION_EXPERIMENTS
            all_models += ABLATION
        elif name == STUDY_GROUP:
            experiments += STUDY_EXPERIMENTS
            all_models += studied_models(models, studies)
        elif name == "all":
            experiments += EXPERIMENTS
        else:
            experiments.append(name)
    return tuple(dict.fromkeys(experiments)), tuple(dict.fromkeys(all_models))

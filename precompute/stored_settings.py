"""Settings of a build, read back from the parameters in its store."""

from collections.abc import Mapping
from typing import Any

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.errors import StoreError
from gpn_scale.field_types import shown
from gpn_scale.ppr.manifest import Build
from gpn_scale.ppr.sealed import REBUILD, REBUILD_ARGUMENTS
from precompute.row_engine import Method

FOLDED = "folded"
"""Parameter of a generation that `compact` wrote: its rows were computed on several graphs."""


def settings_of(build: Build, **others: Any) -> tuple[PPRConfig, Method]:
    """Return the configuration with which rows were computed, and the method.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import PPRStore, build_graph
    >>> from precompute.build import build_store
    >>> with TemporaryDirectory() as folder:
    ...     config = PPRConfig(k=2, clusters=0, method="push", push_tolerance=1e-4)
    ...     plan = build_store(build_graph([0, 1], [1, 2]), config, folder)
    ...     settings_of(Build.of(PPRStore.open(folder).manifest)) == (config, "push")
    True

    Args:
        build: The record of a build.
        others: Settings that the store does not contain, because they did not affect its rows.

    Raises:
        StoreError: a setting is missing or has a value that no build allows.
    """
    try:
        return _settings_of(build, others)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise StoreError(
            f"the store records settings that no build can have ({reason}), so its manifest is "
            f"damaged or made up: {REBUILD}",
            arguments=REBUILD_ARGUMENTS,
        ) from error


def _settings_of(build: Build, others: Mapping[str, Any]) -> tuple[PPRConfig, Method]:
    stored = build.parameters
    if not isinstance(stored["self_loops"], bool):
        raise TypeError(f"self_loops is {shown(stored['self_loops'])}, expected true or false")
    diffusion = DiffusionConfig(
        teleport=stored["teleport"],
        normalisation=stored["normalisation"],
        steps="inf" if stored["steps"] == "inf" else int(stored["steps"]),
        self_loops=stored["self_loops"],
    )
    names = ("method", "keep", "sweeps", "sweep_tolerance", "push_tolerance")
    settings = {**others} | {name: stored[name] for name in names if name in stored}
    config = PPRConfig(diffusion=diffusion, k=build.k, clusters=build.num_clusters, **settings)
    return config, "push" if stored["method"] == "push" else "sweep"

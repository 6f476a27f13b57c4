"""Checks that stored rows match a model's graph and diffusion, and that evidence can be summed."""

from pathlib import Path
from typing import Any

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.ppr.store import PPRStore

StoreLike = PPRStore | Path | str
"""An opened PPR store, or its path."""


def open_rows(store: StoreLike, graph: Graph, diffusion: DiffusionConfig) -> PPRStore:
    """Open a store, check that its rows match this graph and this diffusion, and return it.

    A store that is already open keeps the rows that it has opened, even if the store on disk has
    been updated since.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from precompute.build import build_store
    >>> path, config = build_graph([0, 1], [1, 2]), PPRConfig(k=2, clusters=0)
    >>> with TemporaryDirectory() as folder:
    ...     plan = build_store(path, config, folder)
    ...     open_rows(folder, path, config.diffusion).num_roots
    3

    Raises:
        StoreError: the store belongs to another graph or diffusion, or cannot be read.
    """
    wanted = graph.structure_fingerprint()
    if isinstance(store, PPRStore) and store.graph_fingerprint == wanted:
        opened = store
    else:  # the store on disk may have been updated to this graph
        path = store.path if isinstance(store, PPRStore) else store
        opened = PPRStore.open(path, graph_fingerprint=wanted)
    for name, value in diffusion.store_parameters.items():
        stored = opened.parameters.get(name)
        if stored != value:
            raise StoreError(
                f"{opened.path} has rows with {name}={stored}, the model diffuses with "
                f"{name}={value}: build the store with {name}={value}, or train with "
                f"diffusion.{name}={stored}",
                arguments=(f"rows_{name}={_flag_value(value)}", f"diffusion.{name}={stored}"),
            )
    return opened


def _flag_value(value: Any) -> str:
    """Return a parameter of rows as options write it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def require_evidence_diffusion(diffusion: DiffusionConfig, what: str) -> None:
    """Refuse a diffusion of logarithms, whose rows do not sum evidence.

    >>> logs = DiffusionConfig(of="log_evidence")
    >>> require_evidence_diffusion(logs, "minibatch training")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gpn_scale.errors.ConfigError: minibatch training adds up evidence, got ...

    Args:
        diffusion: The diffusion.
        what: What needs sums, as the subject of the message.

    Raises:
        ConfigError: the diffusion is of logarithms.
    """
    if diffusion.of != "evidence":
        raise ConfigError(
            f"{what} adds up evidence, got diffusion.of={diffusion.of}: train and predict all "
            "nodes with mode='exact', or use diffusion.of=evidence",
            arguments=("diffusion.of",),
        )

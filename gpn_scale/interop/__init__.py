"""Graphs, rows, predictions and runs for other libraries: PyG, networkx, pandas and MLflow.

The names below are imported when they are first used, so that no library is loaded in vain.
docs/interoperation.md shows both directions; `gpn_scale.data` has the converters to a `Graph`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpn_scale.interop.frames import GraphFrames, to_frames
    from gpn_scale.interop.networkx_graph import to_networkx
    from gpn_scale.interop.pyg import AddTopKPPR, to_pyg
    from gpn_scale.interop.tracking import log_run

__all__ = ["AddTopKPPR", "GraphFrames", "log_run", "to_frames", "to_networkx", "to_pyg"]

_MODULE_OF = {
    "AddTopKPPR": "gpn_scale.interop.pyg",
    "GraphFrames": "gpn_scale.interop.frames",
    "log_run": "gpn_scale.interop.tracking",
    "to_frames": "gpn_scale.interop.frames",
    "to_networkx": "gpn_scale.interop.networkx_graph",
    "to_pyg": "gpn_scale.interop.pyg",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

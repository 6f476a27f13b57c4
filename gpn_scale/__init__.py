"""Graph Posterior Networks for graphs of any size: per node, a class and how certain it is.

The names below are imported on first use, so that `import gpn_scale` is fast and a program that
only reads stores or graphs never loads torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpn_scale import recipes
    from gpn_scale.data.building import build_graph
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.graph import Graph
    from gpn_scale.data.networkx_graph import graph_from_networkx
    from gpn_scale.data.pyg import graph_from_pyg
    from gpn_scale.data.scipy_graph import graph_from_scipy
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.prediction import Prediction
    from gpn_scale.ppr.store import PPRStore

__version__ = "0.2.0"

__all__ = [
    "GPNClassifier",
    "Graph",
    "PPRStore",
    "Prediction",
    "__version__",
    "build_graph",
    "graph_from_networkx",
    "graph_from_pyg",
    "graph_from_scipy",
    "load_graph",
    "recipes",
]

_MODULE_OF = {
    "GPNClassifier": "gpn_scale.estimator",
    "Graph": "gpn_scale.data.graph",
    "PPRStore": "gpn_scale.ppr.store",
    "Prediction": "gpn_scale.evaluation.prediction",
    "build_graph": "gpn_scale.data.building",
    "graph_from_networkx": "gpn_scale.data.networkx_graph",
    "graph_from_pyg": "gpn_scale.data.pyg",
    "graph_from_scipy": "gpn_scale.data.scipy_graph",
    "load_graph": "gpn_scale.data.datasets",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name == "recipes":
        return import_module("gpn_scale.recipes")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

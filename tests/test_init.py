"""The names that `import gpn_scale` offers, and what importing them loads."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpn_scale
from gpn_scale.data.graph import Graph

REPOSITORY = Path(__file__).parents[1]


def loaded_by(code):
    """Top-level modules in a fresh interpreter after running `code`."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=REPOSITORY, capture_output=True, text=True
    )
    return set(done.stdout.split())


def test_importing_the_library_loads_nothing_large():
    loaded = loaded_by("import gpn_scale; dir(gpn_scale); gpn_scale.__version__")
    assert not {"torch", "numpy", "scipy", "pyarrow"} & loaded


@pytest.mark.parametrize("package", ["data", "ppr"])
def test_graphs_and_stores_load_no_torch(package):
    folder = REPOSITORY / "gpn_scale" / package
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    assert names
    code = "".join(f"import gpn_scale.{package}.{name}\n" for name in names)
    assert not {"torch", "numba", "mpi4py"} & loaded_by(code)


def test_public_names_of_graphs_and_stores_load_no_torch():
    code = "from gpn_scale import Graph, PPRStore, build_graph, load_graph, recipes"
    assert "torch" not in loaded_by(code)


@pytest.mark.parametrize("name", gpn_scale.__all__)
def test_every_public_name_is_there(name):
    assert name in dir(gpn_scale)
    value = getattr(gpn_scale, name)
    if name == "recipes":
        assert value is importlib.import_module("gpn_scale.recipes")
    elif name != "__version__":
        assert value.__name__ == name
        assert value.__doc__


def test_public_names_are_those_of_their_modules():
    assert gpn_scale.Graph is Graph
    assert gpn_scale._MODULE_OF.keys() == set(gpn_scale.__all__) - {"recipes", "__version__"}


def test_other_names_are_refused_as_usual():
    with pytest.raises(AttributeError, match="module 'gpn_scale' has no attribute 'Grpah'"):
        gpn_scale.Grpah  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Grpah'"):
        exec("from gpn_scale import Grpah")

"""The rules of docs/architecture.md that a machine can check."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
LAYERS = [
    {"csr", "errors", "files", "flags", "memory", "progress", "rank_part", "__init__"},
    {"config", "device", "distributed", "scratch"},
    {"data", "nn"},
    {"diffusion", "recipes"},
    {"ppr"},
    {"evaluation"},
    {"inference"},
    {"train"},
    {"baselines", "estimator"},
    {"models"},
    {"experiments"},
    {"page"},
    {"cli"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
FORBIDDEN = {"numba", "mpi4py", "precompute", "launch"}
SOLE_USERS = {
    "torch_geometric": {"gpn_scale/data/datasets.py"},
    "gpytorch": {"gpn_scale/baselines/gpytorch_process.py"},
    "torch_sparse": {"gpn_scale/nn/sparse.py"},
    "tqdm": {"gpn_scale/progress.py"},
    "mpi4py": {"precompute/mpi.py"},
    "pymetis": {"gpn_scale/data/metis.py"},
    "sklearn": {"gpn_scale/evaluation/metrics.py", "gpn_scale/page/projection.py"},
    "threadpoolctl": {"gpn_scale/page/projection.py"},
}


def sources(folder):
    return sorted((REPOSITORY / folder).rglob("*.py"))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


@pytest.mark.parametrize("path", sources("gpn_scale"), ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_imports_point_down(path):
    own = path.relative_to(REPOSITORY / "gpn_scale").parts[0].removesuffix(".py")
    for module in imported(path):
        assert module.split(".")[0] not in FORBIDDEN, f"{path} imports {module}"
        if module.startswith("gpn_scale."):
            used = module.split(".")[1]
            assert used == own or DEPTH[used] < DEPTH[own], f"{path} imports {module}"


@pytest.mark.parametrize("package", SOLE_USERS)
def test_a_package_has_its_users_alone(package):
    users = {
        str(path.relative_to(REPOSITORY))
        for folder in ("gpn_scale", "precompute", "launch")
        for path in sources(folder)
        if any(module.split(".")[0] == package for module in imported(path))
    }
    assert users == SOLE_USERS[package]


def test_the_data_layer_loads_no_torch():
    code = (
        "import sys, gpn_scale.data.datasets, gpn_scale.config; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


def test_the_store_loads_neither_torch_nor_numba_nor_mpi():
    code = (
        "import sys, gpn_scale.ppr.store, gpn_scale.ppr.writer; "
        "assert not {'torch', 'numba', 'mpi4py', 'scipy'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


@pytest.mark.parametrize("folder", ["gpn_scale", "precompute", "launch", "tests", "benchmarks"])
def test_no_file_is_too_long(folder):
    long = {path: n for path in sources(folder) if (n := len(path.read_text().splitlines())) > 400}
    assert not long

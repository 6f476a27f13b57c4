"""The rules of docs/architecture.md and docs/glossary.md that a machine can check."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
LAYERS = [
    {
        "child_process",
        "csr",
        "disk",
        "errors",
        "mapped_files",
        "memory",
        "messages",
        "rank_part",
        "table_text",
    },
    {"explained", "extras", "field_types", "files", "flags", "progress", "reading"},
    {
        "block_checksums",
        "command_line",
        "config_sections",
        "growing_file",
        "json_shapes",
        "locks",
        "training_sections",
    },
    {"checked_json", "config", "device", "distributed", "scratch"},
    {"data", "nn"},
    {"diffusion", "recipes"},
    {"keywords", "ppr"},
    {"evaluation"},
    {"drift", "inference"},
    {"triage"},
    {"train"},
    {"predictor"},
    {"classifier"},
    {"baselines", "estimator"},
    {"interop", "models", "sklearn"},
    {"experiments"},
    {"page"},
    {"serve"},
    {"cli"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
FORBIDDEN = {"numba", "mpi4py", "launch"}
"""Packages that nothing in gpn_scale imports."""
PRECOMPUTE_USES = {"command_line", "config", "csr", "data", "diffusion", "errors", "field_types"}
PRECOMPUTE_USES |= {"files", "flags", "memory", "messages", "ppr", "progress", "rank_part"}
PRECOMPUTE_USES |= {"explained", "locks", "reading", "recipes"}
"""Packages of gpn_scale that precompute imports; none of them loads torch."""
SOLE_USERS = {
    "torch_geometric": {"gpn_scale/data/benchmark_files.py", "gpn_scale/interop/pyg.py"},
    "mlflow": {"gpn_scale/interop/tracking.py"},
    "networkx": {"gpn_scale/interop/networkx_graph.py"},
    "gpytorch": {"gpn_scale/baselines/gpytorch_process.py"},
    "torch_sparse": {"gpn_scale/nn/sparse.py"},
    "xxhash": {"gpn_scale/block_checksums.py"},
    "tensorboard": {"gpn_scale/train/event_file.py"},
    "tqdm": {"gpn_scale/progress.py"},
    "mpi4py": {"precompute/mpi.py"},
    "pymetis": {"gpn_scale/data/metis.py"},
    "sklearn": {
        "gpn_scale/data/hashed_text.py",
        "gpn_scale/evaluation/metrics.py",
        "gpn_scale/page/projection.py",
        "gpn_scale/sklearn.py",
    },
    "threadpoolctl": {"gpn_scale/page/projection.py"},
    "vl_convert": {"gpn_scale/page/chart.py"},
    "jinja2": {"gpn_scale/page/templates.py"},
    "fastapi": {"gpn_scale/serve/web.py"},
    "starlette": {"gpn_scale/serve/web.py"},
    "pydantic": {"gpn_scale/serve/web.py"},
    "uvicorn": {"gpn_scale/serve/server.py"},
    "prometheus_client": {"gpn_scale/serve/metrics.py"},
}
CALLS_UP = {
    "gpn_scale/estimator.py": {"gpn_scale.page.classifier_report"},
    "gpn_scale/interop/pyg.py": {"precompute.topk"},
    "gpn_scale/ppr/store.py": {"precompute.update"},
}
"""Imports of a higher layer, each inside of one method that its user asks for by name."""
UNTESTED = {
    "__init__.py": "holds a docstring, or names that tests of the modules import from it",
    "__main__.py": "calls the command line, which has its own tests",
}
"""Names of source files without a test file, and why."""
BANNED = {"found", "words", "way", "told", "spend", "settle", "as_it_is", "lacking", "Progress"}
"""Identifiers that say nothing about what they hold (docs/glossary.md has the words to use)."""
FLAG = re.compile(r"(?<![\w-])--[a-z]")
PATH_IN_TEXT = re.compile(r"\b(?:gpn_scale|precompute|launch|tests|benchmarks|docs)/[\w/]+\.\w+")
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")


def sources(*folders):
    return sorted(path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))


def name_of(path):
    return str(path.relative_to(REPOSITORY))


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module in {"gpn_scale", "precompute"}:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def run_python(code):
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


@pytest.mark.parametrize("path", sources("gpn_scale"), ids=name_of)
def test_imports_point_down(path):
    own = path.relative_to(REPOSITORY / "gpn_scale").parts[0].removesuffix(".py")
    if own == "__init__":  # exports names of all layers, on first use
        return
    for module in set(imported(path)) - CALLS_UP.get(name_of(path), set()):
        assert module.split(".")[0] not in FORBIDDEN, f"{path} imports {module}"
        assert own == "cli" or module.split(".")[0] != "precompute", f"{path} imports {module}"
        if module.startswith("gpn_scale.") and module != "gpn_scale.__version__":
            used = module.split(".")[1]
            assert used in DEPTH, f"{path} imports {module}, expected the module that defines it"
            assert used == own or DEPTH[used] < DEPTH[own], f"{path} imports {module}"


@pytest.mark.parametrize("name", CALLS_UP)
def test_calls_of_a_higher_layer_are_made_inside_of_functions(name):
    tree = tree_of(REPOSITORY / name)
    at_import = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not CALLS_UP[name] & at_import
    assert CALLS_UP[name] <= set(imported(REPOSITORY / name))


@pytest.mark.parametrize("path", sources("precompute"), ids=name_of)
def test_precompute_uses_packages_without_torch(path):
    for module in imported(path):
        assert module.split(".")[0] not in {"torch", "launch"}, f"{path} imports {module}"
        if module.startswith("gpn_scale."):
            assert module.split(".")[1] in PRECOMPUTE_USES, f"{path} imports {module}"


@pytest.mark.parametrize("package", SOLE_USERS)
def test_a_package_is_imported_by_its_users_alone(package):
    users = {
        name_of(path)
        for path in sources("gpn_scale", "precompute", "launch")
        if any(module.split(".")[0] == package for module in imported(path))
    }
    assert users == SOLE_USERS[package]


def test_lazy_import():
    run_python(
        "import sys, gpn_scale; assert not {'torch', 'numpy'} & sys.modules.keys(); "
        "[getattr(gpn_scale, name) for name in gpn_scale.__all__]; "
        "assert set(gpn_scale.__all__) <= set(dir(gpn_scale))"
    )


def test_the_data_layer_loads_no_torch():
    run_python(
        "import sys, gpn_scale.data.datasets, gpn_scale.config; assert 'torch' not in sys.modules"
    )


def test_precompute_loads_no_torch():
    run_python("import sys, precompute.cli; assert 'torch' not in sys.modules")


def test_the_store_loads_neither_torch_nor_numba_nor_mpi():
    run_python(
        "import sys, gpn_scale.ppr.store, gpn_scale.ppr.writer; "
        "assert not {'torch', 'numba', 'mpi4py', 'scipy'} & sys.modules.keys()"
    )


@pytest.mark.parametrize("folder", ["gpn_scale", "precompute", "launch", "tests", "benchmarks"])
def test_no_file_is_too_long(folder):
    long = {path: n for path in sources(folder) if (n := len(path.read_text().splitlines())) > 400}
    assert not long


def test_every_source_file_has_its_tests():
    missing = []
    for path in sources("gpn_scale", "precompute"):
        if path.name not in UNTESTED:
            inside = path.relative_to(REPOSITORY)
            if inside.parts[0] == "gpn_scale":
                inside = inside.relative_to("gpn_scale")
            mirror = REPOSITORY / "tests" / inside.with_name(f"test_{path.name}")
            if not mirror.exists():
                missing.append(name_of(mirror))
    assert not missing


BARE_READS = {"json.load", "json.loads", "gzip.open", "torch.load", "pickle.load", "pickle.loads"}
"""Functions that read, or parse what was read, without any bounds."""
OTHER_READERS = {"np.load", "np.loadtxt", "np.memmap", "np.fromfile", "safe_open", "load_file"}
OTHER_READERS |= {"parquet.ParquetFile", "parquet.read_table", "parquet.read_metadata"}
OTHER_READERS |= {"parquet.read_schema", "pa.input_stream", "pa.memory_map"}
OTHER_READERS |= {f"{name}.{read}" for name in ("csv", "arrow_csv") for read in ("open_csv",)}
OTHER_READERS |= {f"{name}.read_csv" for name in ("csv", "arrow_csv")}
"""Readers of other packages; their users check files by the gate first."""
READS_WITHOUT_THE_GATE = {
    "gpn_scale/cli/code_fingerprint.py": "reads the program's own source",
    "gpn_scale/cli/run_choice.py": "parses what another rank of the run has sent",
    "gpn_scale/cli/torchrun.py": "reads /proc",
    "gpn_scale/mapped_files.py": "reads /proc",
    "gpn_scale/memory.py": "reads /proc",
    "gpn_scale/page/templates.py": "reads files of the package",
    "gpn_scale/reading.py": "is the gate",
    "gpn_scale/serve/about_routes.py": "reads files of the package",
    "gpn_scale/serve/documentation.py": "reads files of the package",
    "gpn_scale/scratch.py": "maps a file that it has just made",
    "precompute/mpi.py": "reads /proc",
}
"""Files that read without `gpn_scale.reading`, and why."""


def bare_reads(path):
    """Calls that read a file, or parse a document, without the bounds of `gpn_scale.reading`."""
    uses_gate = "gpn_scale.reading" in set(imported(path))
    for node in ast.walk(tree_of(path)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        modes = [mode for mode in modes if isinstance(mode, str) and set(mode) <= set("rwaxbt+")]
        opens = name == "open" or (
            name.endswith(".open") and name not in ("os.open", "PPRStore.open", "disk.system.open")
        )
        reads = opens and not any(set(mode) & set("wax") for mode in modes)
        reads = reads and not name.startswith("archive.")  # a member of an open archive
        reads = reads or name.endswith((".read_text", ".read_bytes")) or name in BARE_READS
        if reads or (name in OTHER_READERS and not uses_gate):
            yield f"line {node.lineno}: {name}"


@pytest.mark.parametrize("path", sources("gpn_scale", "precompute"), ids=name_of)
def test_files_are_read_through_the_gate(path):
    if name_of(path) not in READS_WITHOUT_THE_GATE:
        assert not list(bare_reads(path))


@pytest.mark.parametrize("path", sources("gpn_scale", "precompute"), ids=name_of)
def test_csv_is_written_in_one_place(path):
    """The writers for tables of arrays and of texts keep formulas out of spreadsheets."""
    if name_of(path) not in ("gpn_scale/table_text.py", "gpn_scale/evaluation/table_writers.py"):
        calls = {ast.unparse(n.func) for n in ast.walk(tree_of(path)) if isinstance(n, ast.Call)}
        assert not {name for name in calls if name.endswith(("csv.writer", "CSVWriter"))}


def assigned_names(tree):
    """Identifiers that a module defines: variables, attributes, arguments, functions, classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def stem(name):
    """The name without leading underscores and without the dimensions of a tensor."""
    return re.sub(r"_[A-Z0-9]+$", "", name.lstrip("_"))


@pytest.mark.parametrize("path", sources("gpn_scale", "precompute"), ids=name_of)
def test_names_say_what_they_hold(path):
    bad = [f"line {line}: {name}" for line, name in assigned_names(tree_of(path))]
    bad = [each for each in bad if stem(each.split(": ")[1]) in BANNED]
    assert not bad


def error_messages(tree):
    """Texts within raise statements and within calls of exceptions."""
    for node in ast.walk(tree):
        is_error = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error")
        if isinstance(node, ast.Raise) or is_error:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def is_command(path):
    inside = path.relative_to(REPOSITORY).parts
    commands = {("gpn_scale", "cli"), ("gpn_scale", "flags.py")}
    commands |= {("precompute", "arguments.py"), ("precompute", "cli.py")}
    return inside[:2] in commands


LIBRARY = [path for path in sources("gpn_scale", "precompute") if not is_command(path)]


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_library_messages_name_arguments_not_flags(path):
    bad = {f"line {line}: {text}" for line, text in error_messages(tree_of(path))}
    assert not {text for text in bad if FLAG.search(text)}


def test_tests_read_only_the_repository():
    bad = []
    for path in sources("tests"):
        if path == Path(__file__):
            continue
        for node in ast.walk(tree_of(path)):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            outside = is_text and ("../shared" in node.value or node.value.startswith("/work"))
            joined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            joined = joined and getattr(node.right, "value", "") in {"shared", ".."}
            if outside or joined:
                bad.append(f"{name_of(path)}, line {node.lineno}")
    assert not bad


PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def anchors(page):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_paths_of_the_documentation_exist(page):
    text = page.read_text(encoding="utf-8")
    missing = {path for path in PATH_IN_TEXT.findall(text) if not (REPOSITORY / path).exists()}
    for target, anchor in LINK.findall(text):
        if target.startswith("http"):
            continue
        other = page.parent / target if target else page
        if not other.exists() or (anchor and anchor[1:] not in anchors(other)):
            missing.add(target + anchor)
    assert not missing


def test_the_architecture_names_every_package_and_layer():
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = [path.parent for path in (REPOSITORY / "gpn_scale").glob("*/__init__.py")]
    unnamed = {name_of(package) for package in packages if f"`{name_of(package)}`" not in text}
    assert not unnamed
    for depth, names in enumerate(LAYERS, start=1):
        assert f"| {depth} | {', '.join(sorted(names))} |" in text


def test_the_glossary_defines_every_word_once():
    text = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    words = [row.split("|")[1].strip() for row in rows]
    words = [word for word in words if word not in ("word", "symbol")]
    assert len(words) > 100
    assert sorted(words) == sorted(set(words))

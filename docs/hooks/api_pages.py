"""Pages of the public packages, one each, whose contents mkdocstrings takes from docstrings."""

import ast
from pathlib import Path

PACKAGES = (
    "gpn_scale",
    "gpn_scale/data",
    "gpn_scale/diffusion",
    "gpn_scale/drift",
    "gpn_scale/evaluation",
    "gpn_scale/inference",
    "gpn_scale/models",
    "gpn_scale/nn",
    "gpn_scale/ppr",
    "gpn_scale/triage",
    "precompute",
)
"""The public packages, each without its subpackages."""
FIRST = ("estimator", "sklearn", "classifier", "predictor", "config", "recipes", "errors")
"""Modules that stand first on the page of their package."""


def api_pages(repository: Path) -> dict[str, str]:
    """Return the pages by their places on the site, the list of all packages first."""
    pages = {f"api/{_name(package)}.md": _package_page(repository, package) for package in PACKAGES}
    return {"api/index.md": _list_of_packages(repository)} | pages


def public_modules(repository: Path, package: str) -> list[str]:
    """Return the dotted names of the modules with public classes and functions."""
    paths = [path for path in (repository / package).glob("*.py") if _has_public_names(path)]
    paths.sort(key=lambda path: (path.stem not in FIRST, _place(path.stem), path.stem))
    return [f"{_name(package)}.{path.stem}" for path in paths if not path.stem.startswith("_")]


def _place(stem: str) -> int:
    return FIRST.index(stem) if stem in FIRST else len(FIRST)


def _name(package: str) -> str:
    return package.replace("/", ".")


def _has_public_names(path: Path) -> bool:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = ast.ClassDef | ast.FunctionDef
    return any(isinstance(node, kinds) and not node.name.startswith("_") for node in body)


def _summary(path: Path) -> str:
    """Return the first paragraph of the docstring of a package or module, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _package_page(repository: Path, package: str) -> str:
    parts = [f"# {_name(package)}", _summary(repository / package / "__init__.py")]
    parts += [f"::: {module}" for module in public_modules(repository, package)]
    return "\n\n".join(parts) + "\n"


def _list_of_packages(repository: Path) -> str:
    lines = [
        "# Python API",
        "",
        "Most programs need the names that `gpn_scale` itself offers:",
        "",
        "| name | defined in |",
        "|---|---|",
        *(f"| `{name}` | {_link(module, name)} |" for name, module in _offered(repository)),
        "",
        "All public packages, with every class and function and an example for each:",
        "",
        "| package | contents |",
        "|---|---|",
        *(
            f"| [`{_name(package)}`]({_name(package)}.md) | "
            f"{_summary(repository / package / '__init__.py')} |"
            for package in PACKAGES
        ),
        "",
        "Packages that are not listed are internal and may change without notice.",
    ]
    return "\n".join(lines) + "\n"


def _offered(repository: Path) -> list[tuple[str, str]]:
    """Return the names that `from gpn_scale import ...` offers, with their modules."""
    tree = ast.parse((repository / "gpn_scale" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULE_OF":
            return sorted(ast.literal_eval(node.value).items())
    raise AssertionError("gpn_scale/__init__.py has no _MODULE_OF")


def _link(module: str, name: str) -> str:
    return f"[`{module}`]({module.rpartition('.')[0]}.md#{module}.{name})"

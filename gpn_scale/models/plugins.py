"""Models from a user's own files and from installed packages.

A plug-in is Python code that runs with all permissions of the user: load only files and packages
that you trust.
"""

import importlib.util
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from gpn_scale.errors import ConfigError
from gpn_scale.files import file_name
from gpn_scale.models import registry
from gpn_scale.models.registry import MODELS, register
from gpn_scale.models.spec import ModelSpec

ENTRY_POINTS = "gpn_scale.models"
"""Group of entry points; each names a function that takes a mapping and adds models to it."""

_names_of_file: dict[Path, tuple[str, ...]] = {}
"""Models of each file that this process has loaded."""


def load_plugins(paths: Sequence[Path | str]) -> tuple[str, ...]:
    """Run files that register models, and return the names of these models.

    A file registers models when it is run, with `gpn_scale.models.registry.register`; or it defines
    a function `register(models)`, which is called with a mapping of all models and adds to it. A
    file that this process has already loaded is not run again.

    >>> from tempfile import TemporaryDirectory
    >>> text = "def register(models): models['My-APPNP'] = models['APPNP']"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "my_model.py"
    ...     _ = path.write_text(text)
    ...     load_plugins([path])
    ('My-APPNP',)
    >>> del MODELS["My-APPNP"]

    Raises:
        ConfigError: a file is missing, fails, registers nothing, or a name that exists already.
    """
    names: list[str] = []
    for path in map(Path, paths):
        key = path.resolve()
        earlier = _names_of_file.get(key, ())
        if not earlier or not all(name in MODELS for name in earlier):
            _names_of_file[key] = _load_file(path)
        names += _names_of_file[key]
    return tuple(names)


@cache
def load_installed_models() -> tuple[str, ...]:
    """Register the models of installed packages, once per process, and return their names.

    Packages offer models in the entry-point group `gpn_scale.models`. A package that fails only
    causes a warning, since nobody has requested its models.

    >>> load_installed_models()  # no such package is installed here
    ()
    """
    names: list[str] = []
    for point in entry_points(group=ENTRY_POINTS):
        what = f"the entry point {point.name!r} of {point.value}, in the group {ENTRY_POINTS!r},"
        try:
            with _faults_of(what):
                before = set(MODELS)
                point.load()(_Models())
                names += [name for name in MODELS if name not in before]
        except ConfigError as error:
            warnings.warn(f"{error}; its models are left out", RuntimeWarning, stacklevel=2)
    return tuple(names)


def _load_file(path: Path) -> tuple[str, ...]:
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(
            f"the plug-in {path} is not a Python file, expected an existing file whose name ends "
            "in .py",
            arguments=("plugins",),
        )
    before = dict(MODELS)
    try:
        with _faults_of(f"the plug-in {path}", path):
            module = _run(path)
            function = getattr(module, "register", None)
            if function is not None and function is not registry.register:
                function(_Models())
        return _new_names(path, before)
    except ConfigError:
        MODELS.clear()
        MODELS.update(before)
        raise


def _new_names(path: Path, before: Mapping[str, ModelSpec]) -> tuple[str, ...]:
    """Return the names that a file has registered, after checking that it has changed no others."""
    changed = [name for name, spec in before.items() if MODELS.get(name) is not spec]
    if changed:
        raise ConfigError(
            f"the plug-in {path} replaces the model {changed[0]!r}, expected new names only",
            arguments=("plugins",),
        )
    names = tuple(name for name in MODELS if name not in before)
    if not names:
        raise ConfigError(
            f"the plug-in {path} does not register a model, expected a function register(models) "
            "or calls of gpn_scale.models.registry.register",
            arguments=("plugins",),
        )
    return names


def _run(path: Path) -> ModuleType:
    name = f"gpn_scale_plugin_{file_name(path.stem)}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that classes of the file can be found by name
    spec.loader.exec_module(module)
    return module


class _Models(MutableMapping[str, ModelSpec]):
    """The registry as plug-ins see it: new entries are checked, and none can be removed."""

    def __getitem__(self, name: str) -> ModelSpec:
        return MODELS[name]

    def __setitem__(self, name: str, spec: ModelSpec) -> None:
        register(name, spec)

    def __delitem__(self, name: str) -> None:
        raise ConfigError(f"a plug-in removes the model {name!r}, expected it to add models only")

    def __iter__(self) -> Iterator[str]:
        return iter(MODELS)

    def __len__(self) -> int:
        return len(MODELS)


@contextmanager
def _faults_of(what: str, path: Path | None = None) -> Iterator[None]:
    """Turn every exception of third-party code into one sentence; `what` is its subject.

    Raises:
        ConfigError: the block raised an exception, or asked to end the process.
    """
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{what} failed: {error}", arguments=("plugins",)) from error
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        line = _line(error, path)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        where = "" if line is None else f" in line {line}"
        raise ConfigError(f"{what} failed{where} ({reason})", arguments=("plugins",)) from error


def _line(error: BaseException, path: Path | None) -> int | None:
    """Return the last line of the file that was running when the error occurred."""
    if path is None:
        return None
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return lines[-1] if lines else None

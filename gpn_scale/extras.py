"""Optional packages that only some commands need, by the extra that installs them."""

import warnings
from collections.abc import Mapping
from importlib import import_module

from gpn_scale.errors import MissingExtraError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "charts": ("jinja2", "vl_convert"),
    "gp": ("gpytorch",),
    "mlflow": ("mlflow",),
    "serve": ("fastapi", "jinja2", "prometheus_client", "uvicorn"),
    "tensorboard": ("tensorboard",),
}
"""Import names of the packages of each extra."""


def check_extra(extra: str, purpose: str) -> None:
    """Check that the packages of an extra can be imported.

    >>> check_extra("charts", "a page")

    Args:
        extra: One of `EXTRAS`.
        purpose: What needs the packages, as the subject of a sentence.

    Raises:
        MissingExtraError: a package is missing or cannot be imported.
    """
    for package in EXTRAS[extra]:
        try:
            with warnings.catch_warnings():  # packages warn about their own requirements
                warnings.simplefilter("ignore")
                import_module(package)
        except ImportError as error:
            raise MissingExtraError(
                f"{purpose} needs the package {package}, which cannot be imported ({error}): run "
                f"pip install 'gpn-scale[{extra}]'"
            ) from error

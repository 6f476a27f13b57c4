"""The packages of the extra [serve], which only the service needs."""

from importlib.util import find_spec

from gpn_scale.errors import RunError

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")


def check_extra() -> None:
    """Check that the packages of the service are installed.

    Raises:
        RunError: one is missing.
    """
    for package in PACKAGES:
        if find_spec(package) is None:
            raise RunError(
                f"the service needs the package {package}, which is not installed: install "
                "gpn-scale with the extra [serve], as in pip install 'gpn-scale[serve]'"
            )

"""The web framework is imported by the service alone."""

import subprocess
import sys

from gpn_scale.serve import web


def test_every_name_is_there():
    assert all(hasattr(web, name) for name in web.__all__)


def test_the_command_can_be_imported_without_the_extra():
    code = (
        "import sys\n"
        "for name in ('fastapi', 'starlette', 'pydantic', 'uvicorn', 'prometheus_client'):\n"
        "    sys.modules[name] = None\n"
        "import gpn_scale.cli.serve\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

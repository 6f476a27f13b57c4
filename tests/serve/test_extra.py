"""A missing package of the extra is one clear sentence."""

import pytest

from gpn_scale.errors import RunError
from gpn_scale.serve import extra


def test_a_missing_package_names_the_extra(monkeypatch):
    extra.check_extra()
    monkeypatch.setattr(extra, "PACKAGES", ("fastapi", "no_such_package"))
    with pytest.raises(RunError, match=r"needs the package no_such_package.*gpn-scale\[serve\]"):
        extra.check_extra()

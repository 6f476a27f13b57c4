"""What requests share: ids become positions, and the model is swapped at once."""

from dataclasses import replace

import pytest

from gpn_scale.serve.failures import RequestFailure
from gpn_scale.serve.service import class_or_failure, position_of, positions_of


def test_ids_become_positions(model):
    assert position_of(model, "..") == 2
    assert positions_of(model, ["acc-011", ".."]) == [11, 2]
    with pytest.raises(RequestFailure, match="there is no node '7'"):
        position_of(model, 7)
    with pytest.raises(RequestFailure, match="2 ids are not nodes"):
        positions_of(model, ["..", "a", "b"])


def test_classes_are_known(model):
    assert class_or_failure(model, "bad") == "bad"
    with pytest.raises(RequestFailure, match="one of the classes bad, good"):
        class_or_failure(model, "Bad")


def test_another_model_is_named_in_the_figures(service, model):
    other = replace(model, fingerprint="another")
    service.use(other)
    assert service.model is other
    assert b'model="another"' in service.metrics.text()
    service.work.close()

import pytest
import torch

from gpn_scale import device
from gpn_scale.device import pick_device
from gpn_scale.errors import ConfigError


def test_auto_is_a_device_that_is_there(monkeypatch):
    monkeypatch.setattr(device.torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["abacus", "cuda:99", "meta", "hpu", "", "cpu:-1"])
def test_devices_that_are_not_there_are_refused(name):
    with pytest.raises(ConfigError, match=f"device {name!r} cannot be used .*, expected auto") as e:
        pick_device(name)
    assert "\n" not in str(e.value)
    assert e.value.arguments == ("device",)

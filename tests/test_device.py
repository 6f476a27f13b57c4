import pytest
import torch

from gpn_scale import device
from gpn_scale.device import (
    CPU_RULE,
    GPU_RULE,
    device_rule,
    forced_rule,
    pick_device,
    scratch_bytes,
)
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


def test_the_rule_follows_the_device_unless_it_is_forced():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert (device_rule(cpu), device_rule(gpu)) == (CPU_RULE, GPU_RULE)
    with forced_rule(GPU_RULE):
        assert device_rule(cpu) == GPU_RULE
        with forced_rule(CPU_RULE):
            assert device_rule(gpu) == CPU_RULE
        with pytest.raises(KeyError), forced_rule(CPU_RULE):
            raise KeyError
        assert device_rule(cpu) == GPU_RULE
    assert device_rule(cpu) == CPU_RULE


def test_scratch_is_a_quarter_of_a_gpus_memory(monkeypatch):
    class Properties:
        total_memory = 80 << 30

    monkeypatch.setattr(device.torch.cuda, "get_device_properties", lambda each: Properties)
    assert scratch_bytes(torch.device("cuda", 1)) == 20 << 30
    monkeypatch.setattr(device, "physical_bytes", lambda: 8 << 30)
    assert scratch_bytes(torch.device("cpu")) == 2 << 30

import math

import pytest
import torch
from torch import nn
from torch.optim import Adam

from gpn_scale.distributed import World
from gpn_scale.train import step_totals
from gpn_scale.train.step_totals import StepTotals


def totals_of(loss, number=0):
    return StepTotals.summed(torch.tensor(loss), number, "step 1", [], World())


def test_alone_a_process_reads_its_own_loss_and_signal():
    assert totals_of(2.5, 15).read() == (2.5, 15)
    assert totals_of(2.5).read() == (2.5, 0)
    assert math.isnan(totals_of(math.nan).read()[0])


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_guarded_step_moves_nothing_if_the_loss_is_not_finite(loss, dtype):
    weight = nn.Parameter(torch.ones(2, dtype=dtype))
    optimiser = Adam([weight], lr=0.1, fused=True)
    for value in (1.0, loss):
        before = weight.detach().clone()
        weight.grad = torch.full_like(weight, value)
        totals_of(value).guard(optimiser)
        optimiser.step()
    assert torch.equal(weight, before) == (not math.isfinite(loss))
    assert optimiser.state[weight]["step"] == (2 if math.isfinite(loss) else 1)


def test_on_a_gpu_numbers_are_copied_to_pinned_memory_and_awaited(monkeypatch):
    """A stand-in for a CUDA tensor, since no machine of the tests has a GPU."""
    events = []

    class Event:
        def record(self):
            events.append("recorded")

        def synchronize(self):
            events.append("awaited")

    class OnDevice:
        device = torch.device("cuda")

        def detach(self):
            return self

        def unsqueeze(self, dimension):
            return self

    class OnHost:
        def copy_(self, source, *, non_blocking):
            assert isinstance(source, OnDevice)
            events.append("queued" if non_blocking else "copied")

        def tolist(self):
            return [4.0]

    def empty_like(tensor, *, device, pin_memory):
        assert (device, pin_memory) == ("cpu", True)
        return OnHost()

    monkeypatch.setattr(step_totals.torch, "empty_like", empty_like)
    monkeypatch.setattr(step_totals.torch.cuda, "Event", Event)
    totals = StepTotals.summed(OnDevice(), 0, "step 1", [], World())
    assert events == ["queued", "recorded"]
    assert totals.read() == (4.0, 0)
    assert events == ["queued", "recorded", "awaited"]

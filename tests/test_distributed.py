"""Sums over ranks, refusals of all together, ranks that differ or are lost."""

import os
import signal
import socket

import numpy as np
import pytest
import torch

from gpn_scale import distributed
from gpn_scale.config import RunConfig
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.distributed import World, connected
from gpn_scale.errors import ConfigError, ElsewhereError, MachineError, RunError, StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.ppr.store import PPRStore
from tests.distributed.ranks import free_port, run_ranks


def test_alone_everything_is_a_no_op():
    world, tensor, array = World(), torch.ones(3), np.arange(4.0)
    assert world.total(tensor) is tensor
    assert world.shared(tensor) is tensor
    assert world.sum_gradients([], tensor) is tensor
    assert world.totals([1.0, 2.0]) == [1.0, 2.0]
    world.total_into(array)
    assert array.tolist() == [0.0, 1.0, 2.0, 3.0]
    world.require_same(anything="at all")
    assert world.from_first("a text") == "a text"
    with pytest.raises(StoreError, match="as it was"), world.all_or_none():
        raise StoreError("as it was")


def everything(world, folder):
    results = {}
    results["total"] = world.total(torch.tensor([world.rank, 1.0])).tolist()
    own = torch.full((2,), world.rank + 1.0, requires_grad=True)
    shared = world.shared(own)
    results["shared"] = shared.tolist()
    (gradient,) = torch.autograd.grad((shared * torch.tensor([2.0, 5.0])).sum(), own)
    results["gradient"] = gradient.tolist()
    results["gradients"] = _summed_gradients(world)
    model = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, world.rank + 4.0)
    world.share_state(model)
    results["weight"] = model.weight.item()
    results["totals"] = world.totals([world.rank, 1.0])
    array = np.full((3, 2), world.rank, np.float32)
    world.total_into(array)
    results["array"] = array.tolist()
    texts = ("", "runs/Ä\udcff", "x" * 5000)
    results["texts"] = [world.from_first(text if world.rank == 0 else "other") for text in texts]
    for name, run in {
        "differs": lambda: world.require_same(code="same", configuration=f"{world.rank > 0}"),
        "absent": lambda: _open(world, folder),
        "exact": lambda: GPNClassifier(RunConfig(model="GPN"), world=world).trainer(_graph()),
    }.items():
        try:
            run()
        except Exception as error:
            results[name] = (type(error), str(error))
    return results


def _summed_gradients(world):
    """Gradients of which each rank has a part, one has none, and a number beside them."""
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in ((1, 2), (1,))]
    parameters[0].grad = torch.full((1, 2), float(world.rank))
    parameters[1].grad = torch.full((1,), 3.0) if world.rank else None
    totals = world.sum_gradients(parameters, torch.tensor([3.0 + world.rank]).double())
    return (*(parameter.grad.tolist() for parameter in parameters), totals.tolist())


def _open(world, folder):
    """A store that only rank 0 sees."""
    with world.all_or_none():
        if world.rank == 1:
            PPRStore.open(folder / "nowhere")


def _graph():
    return synthetic_graph(SyntheticConfig(nodes=100, classes=2))


@pytest.mark.ddp
def test_two_ranks_add_up_and_refuse_together(tmp_path):
    first, second = run_ranks(2, everything, tmp_path)
    assert first["total"] == second["total"] == [1.0, 2.0]
    assert first["shared"] == second["shared"] == [3.0, 3.0]
    assert first["gradient"] == second["gradient"] == [2.0, 5.0]
    assert first["gradients"] == second["gradients"] == ([[1.0, 1.0]], [3.0], [7.0])
    assert first["weight"] == second["weight"] == 4.0
    assert first["totals"] == second["totals"] == [1.0, 2.0]
    assert first["array"] == second["array"] == [[1.0, 1.0]] * 3
    for results in (first, second):
        assert results["texts"] == ["", "runs/Ä\udcff", "x" * 5000]
        kind, message = results["differs"]
        assert kind is (RunError if results is first else ElsewhereError)
        assert "rank 1 has a different configuration from rank 0" in message
        kind, message = results["exact"]
        assert kind is ConfigError
        assert "trains in one process, got 2 ranks" in message
    assert second["absent"][0] is StoreError
    kind, message = first["absent"]
    assert kind is ElsewhereError
    assert message.startswith("rank 1 of 2 stopped: ")
    assert "is not a PPR store" in message


def lost(world):
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return [
        caught(lambda: world.totals([1.0])),
        caught(lambda: world.share_state(torch.nn.Linear(1, 1))),
    ]


def caught(call):
    """The message of the MachineError that a call raises."""
    try:
        call()
    except MachineError as error:
        return str(error)
    return None


@pytest.mark.ddp
def test_a_rank_that_is_killed_is_noticed_without_a_time_out():
    (messages,) = run_ranks(2, lost, expected=1)
    for message in messages:
        assert message.startswith("another rank has ended or does not answer (")
        assert "onnection" in message
        assert "imed out" not in message


def test_a_rank_that_does_not_answer_is_named_as_the_reason():
    class Unanswered:
        def is_completed(self):
            return True

        def wait(self):
            raise RuntimeError("[buffer.cc:78] Timed out waiting 20000ms for recv\nmore lines")

    with pytest.raises(MachineError, match=r"does not answer \(.*20000ms for recv\): see its mess"):
        World()._wait(Unanswered())


def test_a_port_in_use_is_said_so(monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        facts = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 2}
        facts |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": listener.getsockname()[1]}
        for name, value in facts.items():
            monkeypatch.setenv(name, str(value))
        with (
            pytest.raises(
                ConfigError, match=r"cannot meet at 127\.0\.0\.1:\d+ .*another master port"
            ),
            connected(torch.device("cpu"), timeout_seconds=5.0),
        ):
            pass


def test_a_backend_that_is_not_there_is_said_so(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    monkeypatch.setattr(distributed.dist, "is_backend_available", lambda name: False)
    with (
        pytest.raises(ConfigError, match="this build of torch has no gloo"),
        connected(torch.device("cpu"), timeout_seconds=5.0),
    ):
        pass

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.post_hoc_base import AbstractPostHoc
from gpn_scale.errors import RunError
from tests.baselines.graphs import CONFIG, small_graph


class Shifted(AbstractPostHoc):
    """Logits plus a number that is saved with the network."""

    name, Base, adjusted = "VGCN+shift", VGCN, 0

    def adjust(self, view):
        self.adjusted += 1
        self.shift = torch.tensor([1.0, 2.0, 3.0])

    def own_state(self):
        return {"shift": self.shift}

    def restore_own(self, graph, tensors, source):
        self.shift = tensors["shift"]

    def predict_view(self, view):
        return self.prediction((self.base_logits(view) + self.shift).softmax(1))


def test_a_method_is_saved_and_restored_with_its_network(tmp_path):
    graph = small_graph()
    model = Shifted(CONFIG).fit(graph)
    state = model.state()
    network = VGCN(CONFIG).fit(graph).state()
    assert set(state) == {*network, "method.shift"}
    assert all(torch.equal(state[name], value) for name, value in network.items())
    again = Shifted(CONFIG)
    again.load_state(graph, state, tmp_path)
    assert (model.adjusted, again.adjusted) == (1, 0)
    np.testing.assert_array_equal(
        again.predict(graph).probabilities, model.predict(graph).probabilities
    )


def test_a_given_network_is_used_once(tmp_path):
    graph = small_graph()
    network = VGCN(CONFIG).fit(graph).state()
    changed = {name: value + 1.0 for name, value in network.items()}
    model = Shifted(CONFIG)
    model.use_base(graph, changed, tmp_path)
    model.fit(graph)
    assert all(torch.equal(model.base.state()[name], value) for name, value in changed.items())
    model.fit(graph)  # trains
    assert all(torch.equal(model.base.state()[name], value) for name, value in network.items())


def test_there_is_no_network_before_training():
    with pytest.raises(RunError, match=r"this VGCN\+shift has not been trained yet: call fit"):
        _ = Shifted(CONFIG).base

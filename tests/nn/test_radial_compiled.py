"""The function that is compiled, against the plain path; compiling it takes a minute or more."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.device import GPU_RULE, forced_rule
from gpn_scale.nn import flow as flow_module
from gpn_scale.nn import radial_compiled
from gpn_scale.nn.radial_compiled import compiled_layers, has_compiler, layer_by_layer
from tests.nn.test_radial import assert_fused_is_plain, random_flow


@pytest.fixture(autouse=True, scope="module")
def not_compiled():
    """Let the function run as it is, with a compiler that does nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_module, "compiled_layers", lambda device: layer_by_layer)
        patch.setattr(flow_module, "has_compiler", lambda: True)
        yield


@given(
    rows=st.integers(0, 9),
    classes=st.integers(1, 3),
    latent=st.integers(3, 6),
    layers=st.integers(1, 5),
    part=st.integers(1, 9),
    on_gpu=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    rng_seed=st.integers(0, 1000),
)
def test_it_is_the_plain_path(rows, classes, latent, layers, part, on_gpu, dtype, rng_seed):
    generator = torch.Generator().manual_seed(rng_seed)
    shape = {"num_classes": classes, "latent": latent, "radial_layers": layers}
    model = random_flow(generator, dtype=dtype, spread=0.5, compiled=True, **shape)
    model.fused_rows = lambda dtype: part
    model.whole_rows = lambda device, dtype: part
    z_ND = torch.randn(rows, latent, generator=generator).to(dtype)
    if on_gpu:
        with forced_rule(GPU_RULE):
            assert_fused_is_plain(model, z_ND)
    else:
        assert_fused_is_plain(model, z_ND)


@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e-8, 1e-4])
def test_no_distance_breaks_values_or_gradients(generator, distance):
    model = random_flow(generator, dtype=torch.float32, compiled=True, latent=16)
    z_ND = torch.cat([layer.centre_CD.detach() for layer in model.layers]) + distance
    z_ND.requires_grad_()
    (gradient,) = torch.autograd.grad(model(z_ND).sum(), z_ND)
    assert gradient.isfinite().all()


def test_only_training_is_compiled(generator, monkeypatch):
    """Compiling takes a minute, and a file decides whether a loaded model wants it."""
    model = random_flow(generator, compiled=True).eval()
    z_ND = torch.randn(5, model.latent, generator=generator).double()
    with monkeypatch.context() as patch:
        patch.setattr(flow_module, "compiled_log_density", None)
        evaluated_NC = model(z_ND)
        with pytest.raises(TypeError):
            model.train()(z_ND)
    torch.testing.assert_close(evaluated_NC, model(z_ND))


def test_without_a_compiler_the_plain_path_is_taken_with_one_sentence(generator, monkeypatch):
    monkeypatch.setattr(flow_module, "has_compiler", lambda: False)
    with pytest.warns(RuntimeWarning, match=r"there is no C\+\+ compiler: .*; install g\+\+"):
        model = random_flow(generator, compiled=True)
    monkeypatch.setattr(flow_module, "compiled_log_density", None)
    assert_fused_is_plain(model, torch.randn(5, 4, generator=generator).double())


def test_a_compiler_is_looked_for_by_its_names(monkeypatch):
    present = {"my-c++"}
    monkeypatch.setattr(radial_compiled.shutil, "which", lambda name: name in present or None)
    monkeypatch.delenv("CXX", raising=False)
    assert not has_compiler()
    monkeypatch.setenv("CXX", "my-c++")
    assert has_compiler()
    monkeypatch.delenv("CXX")
    present.add("clang++")
    assert has_compiler()


@pytest.mark.parametrize(("device", "dynamic"), [("cpu", False), ("cuda", True)])
def test_sizes_are_fixed_on_a_cpu_alone(device, dynamic, monkeypatch):
    compiled = lambda function, *, dynamic: (function, dynamic)  # noqa: E731
    monkeypatch.setattr(radial_compiled.torch, "compile", compiled)
    assert compiled_layers(torch.device(device)) == (layer_by_layer, dynamic)

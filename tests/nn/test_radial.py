"""The fused path against the plain one, which test_flow.py holds against the Jacobian."""

import copy
import threading
import time
from contextlib import contextmanager, nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.nn import radial
from gpn_scale.nn.flow import RadialFlow
from gpn_scale.nn.radial_limits import chunk_rows, scratch_bytes_per_row

TOLERANCE = {torch.float32: (1e-4, 1e-3), torch.float64: (1e-10, 1e-9)}
"""Relative errors of values and of gradients; measured: 1e-6 and 1e-15."""


def random_flow(generator, *, dtype=torch.float64, spread=1.0, **options):
    """A flow far from the identity: its raw parameters are normal with this deviation."""
    settings = {"num_classes": 3, "latent": 4, "radial_layers": 5, "memory_mib": 64}
    model = RadialFlow(**(settings | options), generator=generator).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(spread * torch.randn(parameter.shape, generator=generator))
    return model


def value_and_gradients(model, density, z_ND):
    """Log-densities, then the gradients of a random-looking function of them."""
    z_ND = z_ND.detach().clone().requires_grad_()
    value_NC = density(z_ND)
    weight_NC = torch.cos(torch.arange(value_NC.numel()) + 1.0).view_as(value_NC).to(value_NC)
    inputs = [z_ND, *model.parameters()]
    gradients = torch.autograd.grad((value_NC * weight_NC).sum(), inputs)
    return value_NC.detach(), gradients


def assert_fused_is_plain(model, z_ND):
    """Values by node and class; gradients relative to the largest entry, parameters by kind."""
    value_tolerance, gradient_tolerance = TOLERANCE[z_ND.dtype]
    exact = copy.deepcopy(model).double()
    value, gradients = value_and_gradients(model, model, z_ND)
    true_value, true_gradients = value_and_gradients(exact, exact.log_density, z_ND.double())
    assert value.dtype == z_ND.dtype
    torch.testing.assert_close(value.double(), true_value, rtol=value_tolerance, atol=1e-5)
    kinds = [slice(0, 1), *(slice(1 + kind, None, 3) for kind in range(3))]
    for kind in kinds[: len(gradients)]:  # without layers there are latents only
        got = torch.cat([gradient.flatten() for gradient in gradients[kind]]).double()
        true = torch.cat([gradient.flatten() for gradient in true_gradients[kind]])
        largest = max([0.0, *true.abs().tolist()])
        limit = gradient_tolerance * largest + 1e-12
        torch.testing.assert_close(got, true, rtol=0.0, atol=limit)


@given(
    rows=st.integers(0, 9),
    classes=st.integers(1, 4),
    latent=st.integers(1, 6),
    layers=st.integers(0, 6),
    chunk=st.integers(1, 9),
    spread=st.floats(0.01, 2.0),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    rng_seed=st.integers(0, 1000),
)
def test_fused_is_plain_for_all_shapes(
    rows, classes, latent, layers, chunk, spread, dtype, rng_seed
):
    generator = torch.Generator().manual_seed(rng_seed)
    shape = {"num_classes": classes, "latent": latent, "radial_layers": layers}
    model = random_flow(generator, dtype=dtype, spread=spread, **shape)
    row = scratch_bytes_per_row(classes, latent, layers, dtype.itemsize)
    model.memory_bytes = chunk * row
    assert model.fused_rows(dtype) == chunk
    assert_fused_is_plain(model, torch.randn(rows, latent, generator=generator).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_is_plain_over_many_chunks(generator, dtype):
    model = random_flow(generator, dtype=dtype, spread=0.5, latent=16, radial_layers=10)
    z_ND = torch.randn(2 * chunk_rows(3) + 5, 16, generator=generator).to(dtype)
    assert_fused_is_plain(model, z_ND)


@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("away", [0.0, 30.0], ids=["at the origin", "far from it"])
@pytest.mark.parametrize("spread", [0.25, 1.0])
def test_float32_holds_close_to_centres(generator, gap, away, spread):
    model = random_flow(generator, dtype=torch.float32, spread=spread, latent=16, radial_layers=10)
    direction_D = torch.nn.functional.normalize(torch.randn(16, generator=generator), dim=0)
    with torch.no_grad():
        for layer in model.layers:
            layer.centre_CD.add_(away * direction_D)
        centre_KD = torch.cat([layer.centre_CD for layer in model.layers])
    offset_KD = torch.randn(centre_KD.shape, generator=generator)
    z_ND = centre_KD + gap * torch.nn.functional.normalize(offset_KD)
    assert_fused_is_plain(model, z_ND)


def test_float32_holds_for_a_cluster_far_from_all_centres(generator):
    model = random_flow(generator, dtype=torch.float32, latent=16, radial_layers=10)
    z_ND = 30.0 / 4 + torch.randn(50, 16, generator=generator)
    assert_fused_is_plain(model, z_ND)


def test_gradients_are_those_of_finite_differences(generator):
    model = random_flow(generator)
    model.memory_bytes = 3 * scratch_bytes_per_row(3, 4, 5, 8)
    names, parameters = zip(*model.named_parameters(), strict=True)
    z_ND = torch.randn(7, 4, generator=generator).double().requires_grad_()

    def density(z_ND, *values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (z_ND,))

    assert torch.autograd.gradcheck(density, (z_ND, *parameters))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("distance", [0.0, 1e-30, 1e-8, 1e-4, 1e6])
@pytest.mark.parametrize("shared", [True, False], ids=["one centre for all", "own centres"])
def test_no_distance_breaks_values_or_gradients(generator, dtype, distance, shared):
    model = random_flow(generator, dtype=dtype, latent=16, radial_layers=10)
    with torch.no_grad():
        if shared:
            for layer in model.layers:
                layer.centre_CD.copy_(model.layers[0].centre_CD[:1].expand(3, -1))
        centre_KD = torch.cat([layer.centre_CD for layer in model.layers])
    value, gradients = value_and_gradients(model, model, centre_KD + distance)
    assert value.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)
    # A radius of mere round-off must not stretch its direction: plain gradients bound these.
    plain = value_and_gradients(model, model.log_density, centre_KD + distance)[1]
    for got, true in zip(gradients, plain, strict=True):
        assert got.abs().max() <= 2.0 * true.abs().max() + 1.0


@pytest.mark.parametrize("raw_strength", [-60.0, -20.0, 60.0])
def test_extreme_parameters_take_the_plain_path(generator, raw_strength, monkeypatch):
    model = random_flow(generator, dtype=torch.float32)
    monkeypatch.setattr(radial.RadialLogDensity, "apply", None)
    with torch.no_grad():
        for layer in model.layers:
            layer.raw_strength_C[1] = raw_strength
            layer.raw_scale_C[1] = 5.0 if raw_strength < 0 else -20.0
    z_ND = torch.randn(5, 4, generator=generator)
    assert_fused_is_plain(model, z_ND)


@pytest.mark.parametrize("raw_strength", [-12.0, -4.0, 8.0])
def test_strong_parameters_do_not(generator, raw_strength, monkeypatch):
    model = random_flow(generator, radial_layers=10)
    monkeypatch.setattr(model, "chunked_log_density", None)
    with torch.no_grad():
        for layer in model.layers:
            layer.raw_strength_C.fill_(raw_strength)
    assert_fused_is_plain(model, torch.randn(20, 4, generator=generator).double())


def test_warm_up_needs_no_gradient_of_latents_and_latents_none_of_flows(generator):
    model = random_flow(generator)
    z_ND = torch.randn(6, 4, generator=generator).double().requires_grad_()
    parameters = list(model.parameters())
    both = torch.autograd.grad(model(z_ND).sum(), [z_ND, *parameters])
    flows_only = torch.autograd.grad(model(z_ND.detach()).sum(), parameters)
    torch.testing.assert_close(flows_only, both[1:], rtol=0, atol=0)
    model.requires_grad_(False)
    latents_only = torch.autograd.grad(model(z_ND).sum(), [z_ND])
    torch.testing.assert_close(latents_only, both[:1], rtol=0, atol=0)
    model.layers[2].raw_scale_C.requires_grad_(True)
    (single,) = torch.autograd.grad(model(z_ND).sum(), [model.layers[2].raw_scale_C])
    torch.testing.assert_close(single, both[1 + 3 * 2 + 1], rtol=0, atol=0)


def test_without_gradients_the_values_are_the_same(generator):
    model = random_flow(generator)
    z_ND = torch.randn(6, 4, generator=generator).double()
    with torch.no_grad():
        plain = model(z_ND)
    with torch.inference_mode():
        inferred = model(z_ND)
    assert not plain.requires_grad
    assert torch.equal(plain, model(z_ND))
    assert torch.equal(plain, inferred)


@pytest.mark.parametrize("error", [False, True])
def test_the_number_of_threads_is_as_before(generator, error, monkeypatch):
    model, inside = random_flow(generator), []
    forward = radial._Chunk.forward

    def spy(chunk, z_MD):
        inside.append(torch.get_num_threads())
        assert not error
        return forward(chunk, z_MD)

    monkeypatch.setattr(radial._Chunk, "forward", spy)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(AssertionError) if error else nullcontext():
            model(torch.zeros(2, 4).double())
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert inside == [1]


def test_the_graph_keeps_only_inputs(generator):
    model = random_flow(generator)
    z_ND = torch.randn(50, 4, generator=generator).double().requires_grad_()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        model(z_ND)
    with_nodes = [tensor for tensor in saved if 50 in tensor.shape]
    assert len(with_nodes) == 1
    assert torch.equal(with_nodes[0], z_ND)


def test_a_second_derivative_is_refused_rather_than_wrong(generator):
    model = random_flow(generator)
    z_ND = torch.randn(5, 4, generator=generator).double().requires_grad_()
    with pytest.raises(NotImplementedError, match=r"use RadialFlow\.log_density"):
        torch.autograd.grad(model(z_ND).sum(), z_ND, create_graph=True)
    assert torch.autograd.gradgradcheck(model.log_density, z_ND)


@pytest.mark.parametrize(
    ("latents", "parameters", "result"),
    [
        (torch.float32, torch.float64, torch.float64),
        (torch.float64, torch.float32, torch.float64),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.bfloat16, torch.bfloat16, torch.bfloat16),
    ],
)
def test_types_promote_as_in_the_plain_path(generator, latents, parameters, result):
    model = random_flow(generator, dtype=parameters, spread=0.3)
    z_ND = torch.randn(5, 4, generator=generator).to(latents)
    value, gradients = value_and_gradients(model, model, z_ND)
    assert value.dtype == model.log_density(z_ND).dtype == result
    tensors = [z_ND, *model.parameters()]
    assert [gradient.dtype for gradient in gradients] == [tensor.dtype for tensor in tensors]
    torch.testing.assert_close(value, model.log_density(z_ND), rtol=0.05, atol=0.05)


def test_latents_and_gradients_may_be_strided(generator):
    model = random_flow(generator)
    z_DN = torch.randn(4, 6, generator=generator).double()
    torch.testing.assert_close(model(z_DN.T), model(z_DN.T.contiguous()))
    z_ND = z_DN.T.requires_grad_()
    (expanded,) = torch.autograd.grad(model(z_ND).sum(), z_ND)
    (full,) = torch.autograd.grad(model(z_ND), z_ND, torch.ones(6, 3).double())
    torch.testing.assert_close(expanded, full)


def test_names_and_initial_values_stay(generator):
    """Models saved before the fused path load, and the same seed draws the same flows."""
    model = RadialFlow(num_classes=2, latent=4, radial_layers=2, memory_mib=1, generator=generator)
    names = ["centre_CD", "raw_scale_C", "raw_strength_C"]
    expected = [f"layers.{layer}.{name}" for layer in range(2) for name in names]
    assert list(model.state_dict()) == expected
    again = torch.Generator().manual_seed(7)
    for parameter in model.parameters():
        draws = torch.empty(parameter.shape).uniform_(-0.5, 0.5, generator=again)
        assert torch.equal(parameter, draws)


@contextmanager
def torch_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def chunk_threads(monkeypatch):
    """Threads that compute chunks, as they come; each chunk waits a little, so that all do."""
    seen, forward = [], radial._Chunk.forward

    def spy(chunk, z_MD):
        modes = torch.get_num_threads(), torch.is_grad_enabled()
        seen.append((threading.get_ident(), *modes))
        time.sleep(0.01)
        return forward(chunk, z_MD)

    monkeypatch.setattr(radial._Chunk, "forward", spy)
    return seen


def in_small_chunks(generator, dtype, rows, *, workers=8):
    """A flow that takes `rows` nodes at once, with memory for that many threads."""
    model = random_flow(generator, dtype=dtype, spread=0.5, latent=16, radial_layers=10)
    model.fused_rows = lambda _: rows
    model.memory_bytes = workers * rows * model._fused_row_bytes(dtype)
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_do_not_change_a_bit(generator, dtype, chunk_threads):
    model = in_small_chunks(generator, dtype, 64)
    z_ND = torch.randn(7 * 64 + 5, 16, generator=generator).to(dtype)
    results = []
    for threads in (1, 2, 3):
        chunk_threads.clear()
        with torch_threads(threads):
            value, gradients = value_and_gradients(model, model, z_ND)
            with torch.inference_mode():
                inferred = model(z_ND)
            assert torch.get_num_threads() == threads
        results.append([value, inferred, *gradients])
        idents, inside, recording = zip(*chunk_threads, strict=True)
        assert len(idents) == 3 * 8  # forward, again in the backward pass, without gradients
        assert set(inside) == {1}
        assert set(recording) == {False}
        if threads == 1:
            assert set(idents) == {threading.get_ident()}
        else:
            assert len(set(idents)) >= threads
            assert threading.get_ident() not in idents
    for result in results[1:]:
        assert all(torch.equal(got, one) for got, one in zip(result, results[0], strict=True))
    assert torch.equal(results[0][0], results[0][1])


def test_parts_of_the_gradients_do_not_depend_on_threads(generator):
    model = in_small_chunks(generator, torch.float64, 8)
    z_ND = torch.randn(30, 16, generator=generator).double().requires_grad_()
    parameters = list(model.parameters())
    both = torch.autograd.grad(model(z_ND).sum(), [z_ND, *parameters])
    with torch_threads(3):
        flows_only = torch.autograd.grad(model(z_ND.detach()).sum(), parameters)
        model.requires_grad_(False)
        latents_only = torch.autograd.grad(model(z_ND).sum(), [z_ND])
    torch.testing.assert_close((*latents_only, *flows_only), both, rtol=0, atol=0)


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_an_error_in_a_thread_surfaces_and_leaves_none_behind(generator, phase, monkeypatch):
    model = in_small_chunks(generator, torch.float64, 8)
    z_ND = torch.randn(8 * 50, 16, generator=generator).double().requires_grad_()
    calls, lock, method = [], threading.Lock(), getattr(radial._Chunk, phase)

    def fail(chunk, tensor):
        with lock:
            calls.append(None)
        if len(calls) == 3:
            raise FloatingPointError("third chunk")
        time.sleep(0.01)
        return method(chunk, tensor)

    monkeypatch.setattr(radial._Chunk, phase, fail)
    before = threading.active_count()
    with torch_threads(2):
        with pytest.raises(FloatingPointError, match="third chunk"):
            model(z_ND).sum().backward()
        assert torch.get_num_threads() == 2
    assert threading.active_count() == before
    assert len(calls) < 50


@pytest.mark.parametrize("workers", [1, 2])
def test_memory_bounds_the_threads(generator, workers, chunk_threads):
    model = in_small_chunks(generator, torch.float32, 8, workers=workers)
    assert model.fused_workers(torch.float32) == workers
    with torch_threads(3):
        model(torch.randn(8 * 9, 16, generator=generator))
    assert len({ident for ident, *_ in chunk_threads}) == workers

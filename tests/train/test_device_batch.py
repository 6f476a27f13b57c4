"""Batches as tensors against the arrays they come from, and copies by a device that is a list."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from gpn_scale.config import DiffusionConfig, MinibatchConfig, RunConfig
from gpn_scale.data.splits import class_prior
from gpn_scale.distributed import World
from gpn_scale.nn.aggregation import weighted_means
from gpn_scale.nn.model import GPN
from gpn_scale.nn.noise import NOISE_ROWS
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.ppr.batches import BatchLoader, BatchSource
from gpn_scale.ppr.tails import make_tail
from gpn_scale.rank_part import RankPart
from gpn_scale.train.device_batch import (
    CudaCopies,
    DeviceBatch,
    SparseArrays,
    copied_ahead,
    copies_to,
)
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig(teleport=0.2, steps=3)


def test_a_matrix_and_its_transpose(generator):
    dense = torch.randn(5, 7, generator=generator).double()
    dense[torch.rand(5, 7, generator=generator) < 0.6] = 0.0
    csr = csr_matrix(dense.numpy())
    arrays = [csr.indptr, csr.indices, csr.data]
    matrix = SparseArrays.of(*arrays, 7).matrix()
    alone = SparseMatrix(*(torch.from_numpy(each) for each in arrays), 7)
    for other in (torch.eye(7), torch.randn(7, 3, generator=generator)):
        torch.testing.assert_close(matrix.multiply(other.double()), dense @ other.double())
    known, computed = matrix.transposed(), alone.transposed()
    assert known.shape == computed.shape == (7, 5)
    for name in ("indptr", "indices", "values"):
        assert torch.equal(getattr(known, name), getattr(computed, name))
    assert SparseArrays.of(np.zeros(1, int), np.zeros(0, int), np.zeros(0), 4).matrix().shape == (
        0,
        4,
    )


@pytest.fixture(scope="module")
def store(small_graph, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("store"))
    return write_store(folder, small_graph, DIFFUSION, k=6, clusters=4)


def batches(graph, store, *, tail="clustered", part=None, **options):
    config = MinibatchConfig(batch_size=7, tail=tail, tail_nodes=3, **options)
    source = BatchSource(
        store=store,
        tail=make_tail(config, store, graph, DIFFUSION),
        features=graph.features,
        part=part or RankPart(),
        block=NOISE_ROWS,
    )
    return BatchLoader(graph.split.train, source, config, rng_seed=1)


def model_of(graph, clusters):
    return GPN(
        RunConfig(),
        num_features=graph.num_features,
        class_prior_C=torch.from_numpy(class_prior(graph)),
        generator=torch.Generator().manual_seed(1),
        num_clusters=clusters,
    ).double()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("tail", "clusters"), [("clustered", 4), ("truncated", 0)])
def test_parts_of_a_batch_add_up_to_its_aggregation(small_graph, store, tail, clusters, size):
    """Sums of all ranks against rows and cluster means of the whole batch, one by one."""
    whole = next(batches(small_graph, store, tail=tail).epoch(1))
    evidence_NC = torch.rand(len(whole.support_global), 3).double()
    rows = SparseMatrix(
        torch.from_numpy(whole.rows.row_ptr),
        torch.from_numpy(whole.rows.ids),
        torch.from_numpy(whole.rows.weights).double(),
        len(evidence_NC),
    )
    expected = rows.multiply(evidence_NC)
    if clusters:
        means_PC, present_P = weighted_means(
            evidence_NC,
            torch.from_numpy(whole.cluster),
            torch.from_numpy(whole.weight_in_cluster).double(),
            clusters,
        )
        assert present_P.all()
        expected += torch.from_numpy(whole.cluster_weight).double() @ means_PC
    parts = []
    for rank in range(size):
        loader = batches(small_graph, store, tail=tail, part=RankPart(rank, size))
        batch = next(loader.epoch(1))
        on_host = DeviceBatch.on_host(batch, small_graph.labels, torch.float64)
        assert on_host.first_row == batch.encoded.start
        assert on_host.label_B.tolist() == small_graph.labels[whole.root_global].tolist()
        assert torch.equal(on_host.inputs(torch.float64), torch.from_numpy(batch.features).double())
        parts.append((on_host, on_host.sums.matrix().multiply(evidence_NC[batch.encoded])))

    class Others(World):
        """A world in which the other ranks have done their part already."""

        def shared(self, own):
            assert torch.equal(own, parts[0][1])
            return sum(part for _, part in parts)

    model = model_of(small_graph, clusters)
    tracked = model.clusters.track if clusters else None
    aggregate = parts[0][0].aggregation(tracked, Others())
    own = evidence_NC[next(batches(small_graph, store, part=RankPart(0, size)).epoch(1)).encoded]
    torch.testing.assert_close(aggregate(own), expected, rtol=1e-6, atol=1e-9)
    if clusters:
        torch.testing.assert_close(model.clusters.mean_PC, means_PC, rtol=1e-6, atol=1e-9)


def test_a_cluster_without_nodes_keeps_its_mean(small_graph, store):
    loader = batches(small_graph, store)
    batch = DeviceBatch.on_host(next(loader.epoch(1)), small_graph.labels, torch.float64)
    present_P = torch.tensor([True, False, True, True])
    absent = replace(batch, present_P=present_P)
    model = model_of(small_graph, 4)
    model.clusters.mean_PC.fill_(7.0)
    aggregate = absent.aggregation(model.clusters.track, World())
    aggregate(torch.ones(batch.sums.num_columns, 3).double())
    assert model.clusters.mean_PC[1].tolist() == [7.0] * 3
    torch.testing.assert_close(model.clusters.mean_PC[0], torch.ones(3).double())


class FakeCopies:
    """A device whose work is a list of words; copies are negative, to be told from originals."""

    def __init__(self):
        self.log, self.inside = [], False

    def pinned(self, tensor):
        return tensor

    @contextmanager
    def stream(self):
        self.inside = True
        yield
        self.inside = False

    def to_device(self, tensor):
        assert self.inside
        self.log.append("copy")
        return -tensor

    def join(self, tensors):
        self.log.append(f"join {len(tensors)}")


def labels_batch(number):
    empty = SparseArrays.of(np.zeros(2, int), np.zeros(0, int), np.zeros(0), 1)
    return DeviceBatch(
        features=torch.zeros(1, 1),
        sums=empty,
        cluster_weight_BP=torch.zeros(1, 0),
        present_P=None,
        label_B=torch.tensor([number]),
        first_row=0,
    )


def test_the_next_batch_is_copied_before_one_is_used():
    copies = FakeCopies()
    tensors = len(labels_batch(0).tensors())
    made = (labels_batch(number) for number in (1, 2, 3))
    results = []
    for batch in copied_ahead(made, copies):
        copies.log.append(f"use {-int(batch.label_B)}")
        results.append(int(batch.label_B))
    copy, join = ["copy"] * tensors, f"join {tensors}"
    expected = [*copy, *copy, join, "use 1", *copy, join, "use 2", join, "use 3"]
    assert copies.log == expected
    assert results == [-1, -2, -3]


def test_without_copies_batches_stay_as_they_are():
    made = [labels_batch(1), labels_batch(2)]
    assert list(copied_ahead(iter(made), None)) == made
    assert copies_to(torch.device("cpu")) is None


def test_on_cuda_copies_have_their_own_stream(monkeypatch):
    """The calls of CUDA, by stand-ins: no machine of the tests has a GPU."""
    log = []

    class Stream:
        def __init__(self, name):
            self.name = name

        def wait_stream(self, other):
            log.append(f"{self.name} waits for {other.name}")

    class OnHost:
        def pin_memory(self):
            return "pinned"

        def to(self, device, *, non_blocking):
            assert non_blocking
            return OnDevice()

    class OnDevice:
        def record_stream(self, stream):
            log.append(f"used by {stream.name}")

    @contextmanager
    def entered(stream):
        log.append(f"in {stream.name}")
        yield

    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream("side"))
    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("main"))
    copies = copies_to(torch.device("cuda"))
    assert isinstance(copies, CudaCopies)
    assert copies.pinned(OnHost()) == "pinned"
    with copies.stream():
        copied = copies.to_device(OnHost())
    copies.join([copied])
    assert log == ["in side", "main waits for side", "used by main"]

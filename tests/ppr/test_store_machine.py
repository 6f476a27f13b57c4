"""A store under builds, parts, kills, damage, repairs, readers and a second writer, and a model.

Whatever happens, a reader gets the rows of its own build or a `StoreError`, `verify_store` knows of
every damage, and resuming ends with the bytes of an undisturbed build. The number of runs is set by
STORE_MACHINE_RUNS; `make machine` runs many.
"""

import os
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpn_scale.errors import StoreError
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from gpn_scale.ppr.writer import StoreWriter
from precompute.parts import Part, PartProgress, finish_store
from tests.ppr.cases import PARAMETERS, content, example, flip

FIRST = example()
CASES = [
    FIRST,
    replace(FIRST, parameters={**PARAMETERS, "teleport": 0.5}, rows=FIRST.rows[::-1]),
    example(roots=None, rows=[[(i, 0.25)] for i in range(7)], num_clusters=0),
]
"""Builds of different rows; two have clusters and chosen roots."""
PARTS = [Part(index, count) for count in (1, 2, 3) for index in range(1, count + 1)]
RUNS = int(os.environ.get("STORE_MACHINE_RUNS", "40"))


@cache
def undisturbed(number):
    """The files of an undisturbed build."""
    folder = Path(mkdtemp())
    try:
        CASES[number].build(folder)
        return content(folder)
    finally:
        shutil.rmtree(folder)


def expected_rows(case):
    """Kept entries, missing masses and cut masses of all rows, as lists."""
    cut = [case.cut_by_cluster(position) for position in range(len(case.rows))]
    return case.rows, case.missing, cut


def read_rows(store, case):
    rows = store.rows(case.root_list)
    entries = list(zip(rows.ids.tolist(), rows.weights.tolist(), strict=True))
    parts = [
        entries[start:stop] for start, stop in zip(rows.row_ptr, rows.row_ptr[1:], strict=False)
    ]
    return parts, rows.missing_mass.tolist(), rows.cut_mass.tolist()


class StoreMachine(RuleBasedStateMachine):
    """The model: which build the directory belongs to, and whether it was ever begun."""

    def __init__(self):
        super().__init__()
        self.patch = mock.patch("os.fsync")
        self.patch.start()
        self.path = Path(mkdtemp())
        self.number = None
        self.reader = None

    def teardown(self):
        self.patch.stop()
        shutil.rmtree(self.path)

    @property
    def case(self):
        return CASES[self.number]

    @property
    def is_whole(self):
        """Whether every file is what an undisturbed build leaves."""
        present = {name: data for name, data in content(self.path).items() if name[0] != "."}
        return self.number is not None and present == undisturbed(self.number)

    @property
    def can_resume(self):
        """Whether one of the files that say what is built is left."""
        wanted = undisturbed(self.number)
        return any(
            (self.path / name).exists() and (self.path / name).read_bytes() == wanted[name]
            for name in ("build.json", MANIFEST)
        )

    @property
    def has_build(self):
        """Whether the file is left that says what further parts must be of."""
        path = self.path / "build.json"
        return path.exists() and path.read_bytes() == undisturbed(self.number)["build.json"]

    @precondition(lambda self: self.number is None)
    @rule(number=st.sampled_from(range(len(CASES))))
    def build(self, number):
        self.number = number
        self.case.build(self.path)
        assert self.is_whole

    @precondition(lambda self: self.number is None)
    @rule(
        number=st.sampled_from(range(len(CASES))),
        shards=st.integers(0, 3),
        left_over=st.binary(max_size=4),
    )
    def build_and_kill(self, number, shards, left_over):
        """A build that ends before its manifest, and in the middle of a file."""
        self.number = number
        writer = self.case.begin(self.path)
        if self.case.num_clusters:
            writer.write_clusters(self.case.clusters)
        for index in range(min(shards, writer.num_shards)):
            self.case.write(writer, index)
        (self.path / ".shard-00001.ppr.123.tmp").write_bytes(left_over)
        assert not writer.is_complete

    @precondition(lambda self: self.number is not None and self.can_resume)
    @rule()
    def resume(self):
        before = {
            name
            for name, data in content(self.path).items()
            if undisturbed(self.number).get(name) == data
        }
        todo = self.case.build(self.path, "resume")
        assert self.is_whole
        assert not [path for path in self.path.iterdir() if path.suffix == ".tmp"]
        if "clusters.npy" in before or not self.case.num_clusters:
            whole = {int(name[6:11]) for name in before if name.startswith("shard")}
            assert not whole & set(todo)  # only what was damaged is computed again

    @precondition(lambda self: self.number is not None and self.files())
    @rule(other=st.sampled_from(range(len(CASES))))
    def resume_as_another_build(self, other):
        if other == self.number:
            return
        before = content(self.path)
        with pytest.raises(StoreError, match=r"belongs to another build|cannot be resumed|not a"):
            CASES[other].build(self.path, "resume")
        assert content(self.path) == before

    @precondition(lambda self: self.number is not None)
    @rule(number=st.sampled_from(range(len(CASES))))
    def overwrite(self, number):
        try:
            CASES[number].build(self.path, "overwrite")
        except StoreError as error:
            is_foreign = "not a PPR store" in str(error)
            assert is_foreign  # neither JSON file says what this directory is
            return
        self.number = number
        assert self.is_whole

    @precondition(lambda self: self.number is not None and self.can_resume)
    @rule(order=st.permutations(range(4)), first=st.integers(0, 4))
    def two_writers(self, order, first):
        """Two processes resume the same build; each writes some of the shards, both finish."""
        one, two = self.case.begin(self.path, "resume"), self.case.begin(self.path, "resume")
        for writer in (one, two):
            if self.case.num_clusters:
                writer.write_clusters(self.case.clusters)
        joined = StoreWriter.join(self.path)
        for place, index in enumerate(order):
            if index < one.num_shards:
                self.case.write(one if place < first else two, index)
                assert joined.is_done(index)
        one.finish(self.case.total_mass)
        two.finish(self.case.total_mass)
        assert self.is_whole

    @precondition(lambda self: self.number is not None and self.has_build)
    @rule(parts=st.lists(st.sampled_from(PARTS), max_size=4))
    def compute_parts(self, parts):
        for part in parts:
            progress = PartProgress(self.case.begin(self.path, "share"), part)
            if not progress.is_over:
                progress.share_arrays(lambda: self.case.clusters, lambda: self.case.total_mass)
                for index in progress.todo:
                    self.case.write(progress.writer, index, shared=True)
                assert not progress.todo

    @precondition(lambda self: self.number is not None)
    @rule()
    def finish(self):
        try:
            finish_store(self.path)
        except StoreError:
            assert not self.is_whole
        else:
            assert self.is_whole

    @precondition(lambda self: self.number is not None and self.files())
    @rule(data=st.data())
    def flip_a_bit(self, data):
        path = data.draw(st.sampled_from(self.files()))
        self.reader = None  # the file changes under its map; only blocks not read yet are checked
        if size := path.stat().st_size:
            flip(path, data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7)))

    @precondition(lambda self: self.number is not None and self.files())
    @rule(data=st.data())
    def cut_short(self, data):
        """Readers of a mapped file notice it as well."""
        path = data.draw(st.sampled_from(self.files()))
        os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))

    @precondition(lambda self: self.number is not None and self.files())
    @rule(data=st.data())
    def remove(self, data):
        data.draw(st.sampled_from(self.files())).unlink()

    @precondition(lambda self: self.number is not None)
    @rule()
    def open_reader(self):
        try:
            self.reader = (self.number, PPRStore.open(self.path))
        except StoreError:
            assert not self.is_whole

    @precondition(lambda self: self.reader is not None)
    @rule()
    def read(self):
        number, store = self.reader
        try:
            rows = read_rows(store, CASES[number])
        except StoreError:
            assert not (self.is_whole and number == self.number)
            self.reader = None
        else:
            assert rows == expected_rows(CASES[number])

    @precondition(lambda self: self.reader is not None and CASES[self.reader[0]].num_clusters)
    @rule()
    def read_clusters(self):
        number, store = self.reader
        try:
            clusters, cut = store.cluster_of_node, store.cut_mass_of_node
        except StoreError:
            assert not (self.is_whole and number == self.number)
        else:
            np.testing.assert_array_equal(clusters, CASES[number].clusters)
            np.testing.assert_array_equal(cut, CASES[number].cut_mass_of_node)

    @precondition(lambda self: self.number is not None)
    @rule()
    def verify(self):
        assert (verify_store(self.path) == []) == self.is_whole

    @invariant()
    def a_new_reader_gets_the_rows_or_an_error(self):
        if self.number is None:
            return
        try:
            rows = read_rows(PPRStore.open(self.path), self.case)
        except StoreError:
            assert not self.is_whole
        else:
            assert rows == expected_rows(self.case)

    def files(self):
        return sorted(path for path in self.path.iterdir() if path.name[0] != ".")


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=RUNS, stateful_step_count=25, deadline=None)

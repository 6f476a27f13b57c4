"""A service whose graph and store change: it goes on with the old pair until both fit again."""

import asyncio
import csv
import shutil
from functools import partial

import httpx
import pytest

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.serve import _load_graph
from gpn_scale.config import PPRConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.formats import graph_files
from gpn_scale.evaluation.known_calibration import LATER_CONDITION
from gpn_scale.inference import explanation
from gpn_scale.page.run_record import read_run
from gpn_scale.serve.application import application
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.reloading import Reloader
from gpn_scale.serve.served_model import ModelSource
from gpn_scale.serve.service import Service
from gpn_scale.serve.settings import ServeSettings
from gpn_scale.train.run_directory import RunDirectory
from precompute.build import build_store
from precompute.compact import compact_store
from precompute.resources import Resources
from precompute.update import update_store
from tests.serve.conftest import ADDRESS, Client, write_tables

ONE_THREAD = Resources(threads=1, memory_bytes=1 << 30)
ASKED = ("/nodes/acc-011", "/contributors?id=acc-011", "/features?id=acc-011", "/health")


class Changing:
    """A served run whose graph and store are the test's own; both have a later version."""

    def __init__(self, served_run, folder):
        self.graphs, self.store = folder / "graphs", folder / "store"
        self.run = shutil.copytree(served_run, folder / "run")
        shutil.copytree(served_run.parent / "graphs", self.graphs)
        diffusion = read_run(RunDirectory(self.run)).config.diffusion
        rows = PPRConfig(diffusion=diffusion, k=6, clusters=3)
        build_store(self.graph(), rows, self.store, resources=ONE_THREAD)
        write_tables(folder)
        with (folder / "nodes.csv").open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(["acc-new", "good", "2.5", "DE"])
        with (folder / "edges.csv").open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["acc-new", "acc-011"], ["acc-020", "acc-030"]])
        self.tables = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
        self.folder = folder

    def graph(self):
        return load_graph("bank", self.graphs)

    def source(self):
        return ModelSource(
            run=self.run,
            load_graph=partial(_load_graph, self.run, self.graphs),
            graph_files=tuple(graph_files("bank", self.graphs)),
            store=self.store,
            folder=self.folder / "served",
        )

    def service(self):
        """A service and its reloader; nothing else refers to the model."""
        source = self.source()
        stamp, log = source.stamp(), DecisionLog(self.folder / "d.jsonl", "run", "bank")
        opened = source.opened(source.load_graph())
        service = Service(opened, log, ServeSettings(poll_seconds=0.02))
        return service, Reloader(service, source, stamp)

    def change_graph(self):
        options = ["--id", "ref", "--label", "verdict", "--out", str(self.graphs / "bank")]
        assert import_graph([*self.tables, *options, "--overwrite"]) == 0

    def update_store(self):
        update_store(self.store, self.graph(), resources=ONE_THREAD)


@pytest.fixture
def changing(served_run, tmp_path, monkeypatch):
    monkeypatch.setattr(explanation, "MAX_EXACT_NODES", 10)  # contributors come from the store
    return Changing(served_run, tmp_path)


def assert_answered(client, model=None):
    for address in ASKED:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
    assert model is None or answer.json()["model"] == model


def test_the_old_pair_answers_until_the_store_fits_the_graph(changing, capsys):
    service, reloader = changing.service()
    client = Client(application(service))
    before = client.get("/nodes/acc-011").json()
    changing.change_graph()
    assert not reloader.look()
    assert "is not the requested store: graph fingerprint" in service.reload_error
    assert "the old model keeps answering" in capsys.readouterr().err
    assert_answered(client)
    assert client.get("/nodes/acc-new").status_code == 404
    changing.update_store()
    assert_answered(client)  # from the rows that it has opened
    assert compact_store(changing.store) == ["."]
    assert_answered(client)
    assert (changing.store / "build.json").exists()
    assert reloader.look()
    assert service.reload_error is None
    assert_answered(client)
    assert compact_store(changing.store) == []
    assert not (changing.store / "build.json").exists()
    assert_answered(client)
    assert client.get("/nodes/acc-new").json()["split"] == "test"
    after = client.get("/nodes/acc-011").json()
    assert after["split"] == before["split"]
    assert after["alpha_0"] != before["alpha_0"]
    assert client.get("/graph").json()["condition"] == LATER_CONDITION
    client.close()
    service.work.close()


def test_a_later_start_takes_the_later_graph_as_it_is(changing):
    """The calibration on the later graph is kept with the table, and found again."""
    changing.change_graph()
    changing.update_store()
    first, _ = changing.service()
    table = first.model.table.column("p_known").copy()
    files = {path.name: path.stat().st_mtime_ns for path in (changing.folder / "served").iterdir()}
    assert any(name.endswith("_model.safetensors") for name in files)
    second, _ = changing.service()
    again = {path.name: path.stat().st_mtime_ns for path in (changing.folder / "served").iterdir()}
    assert again == files
    assert (second.model.table.column("p_known") == table).all()
    calibrations = [each.model.classifier.trained.calibration for each in (first, second)]
    assert calibrations[0].tempering == calibrations[1].tempering
    own = second.model.classifier.predict(second.model.graph).p.known
    assert (own == table).all()
    for each in (first, second):
        each.work.close()


def test_no_request_fails_while_graph_and_store_change(changing):
    service, reloader = changing.service()
    app = application(service, reloader)
    statuses, joined = [], []

    async def ask(client, stop):
        while not stop.is_set():
            answers = [await client.get(address) for address in ASKED]
            statuses.extend(answer.status_code for answer in answers)
            joined.append((await client.get("/nodes/acc-new")).status_code == 200)
            await asyncio.sleep(0.002)

    async def until(condition):
        for _ in range(6000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the service has not noticed the change")

    async def main():
        transport, stop = httpx.ASGITransport(app, raise_app_exceptions=False), asyncio.Event()
        async with (
            reloader.watching(),
            httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client,
        ):
            task = asyncio.create_task(ask(client, stop))
            await until(lambda: statuses)
            await asyncio.to_thread(changing.change_graph)
            await until(lambda: service.reload_error)
            await asyncio.to_thread(changing.update_store)
            await until(lambda: joined and joined[-1])
            stop.set()
            await task

    asyncio.run(main())
    assert set(statuses) == {200}
    first = joined.index(True)
    assert not any(joined[:first])
    assert all(joined[first:])
    assert service.reload_error is None
    service.work.close()

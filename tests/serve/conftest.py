"""A small trained run whose ids are hostile, and services that answer from it."""

import asyncio
import csv
import shutil
from functools import partial

import httpx
import numpy as np
import pytest
import torch

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.serve import _load_graph
from gpn_scale.cli.train import main as train
from gpn_scale.serve.application import application
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.served_model import ModelSource
from gpn_scale.serve.service import Service
from gpn_scale.serve.settings import ServeSettings
from tests.serve.browsing import ExploredService, Explorer, launched_browser
from tests.serve.running import running

HOSTILE = (
    "<script>alert(1)</script>",
    "a/b/../c",
    "..",
    "quote\"'`",
    "\u202eright to left\u200f",
    "100%25 & ?x=#1",
    "/leading",
    "{id}",
    "naïve 日本",
)
COUNT = 240
ADDRESS = "http://127.0.0.1"


def names():
    return [*HOSTILE, *(f"acc-{node:03d}" for node in range(len(HOSTILE), COUNT))]


def write_tables(folder):
    """A table of accounts of two classes, and one of payments mostly within a class."""
    source, ids = np.random.default_rng(5), names()
    label = source.integers(0, 2, COUNT)
    with (folder / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["ref", "verdict", "size", "country"])
        for node in range(COUNT):
            known = ("good", "bad")[label[node]] if node % 4 else ""
            size = f"{3 * label[node] + source.normal():.3f}" if node % 50 else ""
            rows.writerow([ids[node], known, size, "DEFR"[2 * label[node] :][:2]])
    with (folder / "edges.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        for node in range(COUNT - 1):  # the last node is isolated
            same = np.flatnonzero(label[:-1] == label[node])
            rows.writerows([ids[node], ids[other]] for other in source.choice(same, 3))


@pytest.fixture(scope="session")
def served_run(tmp_path_factory):
    """A finished run on imported tables; its graph is in the folder `graphs` beside it."""
    folder = tmp_path_factory.mktemp("served")
    write_tables(folder)
    tables = ["--nodes", str(folder / "nodes.csv"), "--edges", str(folder / "edges.csv")]
    columns = ["--id", "ref", "--label", "verdict"]
    graphs = folder / "graphs"
    assert import_graph([*tables, *columns, "--out", str(graphs / "bank")]) == 0
    options = ["--dataset", "bank", "--data-dir", str(graphs), "--epochs", "12", "--threads", "1"]
    assert train([*options, "--out", str(folder / "run")]) == 0
    torch.set_num_threads(1)
    return folder / "run"


@pytest.fixture(scope="session")
def running_service(served_run, tmp_path_factory):
    """A process that serves the run, and its address; decisions go to a file of their own."""
    decisions = tmp_path_factory.mktemp("running") / "decisions.jsonl"
    options = ["--decisions", str(decisions), "--request-seconds", "60"]
    with running(served_run, *options) as (process, address):
        yield process, address


@pytest.fixture
def own_run(served_run, tmp_path):
    """A copy of the run that a test may change."""
    return shutil.copytree(served_run, tmp_path / "run")


def source_of(run, folder, **more):
    return ModelSource(run=run, load_graph=partial(_load_graph, run, None), folder=folder, **more)


@pytest.fixture(scope="session")
def served_source(served_run, tmp_path_factory):
    return source_of(served_run, tmp_path_factory.mktemp("folder") / "served")


@pytest.fixture(scope="session")
def model(served_source):
    """The opened model of the run."""
    return served_source.opened(served_source.load_graph())


@pytest.fixture
def service(model, tmp_path):
    """A service with its own file of decisions."""
    return Service(model, DecisionLog(tmp_path / "decisions.jsonl", "run", "bank"), ServeSettings())


class Client:
    """Asks an application in this process, one request after the other."""

    def __init__(self, app):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(transport=transport, base_url=ADDRESS)

    def request(self, method, path, **more):
        return self._loop.run_until_complete(self._client.request(method, path, **more))

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, **({} if body is None else {"json": body}), **more)

    def together(self, *calls):
        """Ask several things at a time; each call has a method, a path and keywords."""

        async def main():
            asked = [self._client.request(method, path, **more) for method, path, more in calls]
            return await asyncio.gather(*asked)

        return self._loop.run_until_complete(main())

    def close(self):
        self._loop.run_until_complete(self._client.aclose())
        self._loop.close()


@pytest.fixture
def client(service):
    """A client of the whole application."""
    client = Client(application(service))
    yield client
    client.close()
    service.work.close()


@pytest.fixture
def client_with(model, tmp_path):
    """Returns clients of services with given settings."""
    services, clients = [], []

    def client(**settings):
        decisions = DecisionLog(tmp_path / f"{len(clients)}.jsonl", "run", "bank")
        services.append(Service(model, decisions, ServeSettings(**settings)))
        clients.append(Client(application(services[-1])))
        return clients[-1]

    yield client
    for each in clients:
        each.close()
    for each in services:
        each.work.close()


@pytest.fixture(scope="session")
def explored_service(served_run, tmp_path_factory):
    """A service in a process of its own, with decisions of its own."""
    decisions = tmp_path_factory.mktemp("explored") / "decisions.jsonl"
    with running(served_run, "--decisions", str(decisions)) as (_, address):
        yield ExploredService(address, decisions)


@pytest.fixture(scope="module")
def browser():
    with launched_browser() as opened:
        yield opened


@pytest.fixture
def explorer(browser, explored_service):
    """The explorer in a page of its own; the browser must not complain of anything."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    made = Explorer(context.new_page(), explored_service)
    yield made
    made.settle()
    context.close()
    assert not made.complaints  # neither errors nor violations of the content security policy

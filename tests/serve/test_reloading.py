"""A swapped model answers without a failed request; a broken one is reported and not used."""

import asyncio
import os
import shutil

import httpx
import pytest

from gpn_scale.estimator import GPNClassifier
from gpn_scale.serve.application import application
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.reloading import Reloader
from gpn_scale.serve.service import Service
from gpn_scale.serve.settings import ServeSettings
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import write_promise
from tests.serve.conftest import ADDRESS, source_of


@pytest.fixture
def watched(own_run, served_source, model, tmp_path):
    """A service of a run that a test may change, and its reloader."""
    del model  # it has filled the folder
    folder = shutil.copytree(served_source.folder, tmp_path / "served")
    source = source_of(own_run, folder)
    stamp, opened = source.stamp(), source.opened(source.load_graph())
    log = DecisionLog(tmp_path / "d.jsonl", "run", "bank")
    service = Service(opened, log, ServeSettings(poll_seconds=0.02))
    yield service, Reloader(service, source, stamp)
    service.work.close()


def replace_model(run, write):
    """Put another model in place by renaming, as a careful user would."""
    path = RunDirectory(run).model
    new = path.with_suffix(".new")
    write(new)
    os.replace(new, path)


def retrained(service):
    classifier = GPNClassifier(service.model.classifier.config)
    return classifier.set_params(random_state=9, epochs=1).fit(service.model.graph)


def test_nothing_is_loaded_without_a_change(watched):
    service, reloader = watched
    model = service.model
    assert not reloader.look()
    assert service.model is model


def test_another_model_takes_over_as_a_whole(watched, own_run, capsys):
    service, reloader = watched
    old = service.model
    replace_model(own_run, retrained(service).save)
    assert reloader.look()
    assert service.model.fingerprint != old.fingerprint
    assert (service.model.table.column("alpha_0") != old.table.column("alpha_0")).any()
    assert f"now answering from model {service.model.fingerprint}" in capsys.readouterr().err
    assert not reloader.look()
    assert old.table.column("alpha_0")[0] > 0  # requests that began with it can end


def test_a_new_promise_is_used(watched, own_run):
    service, reloader = watched
    directory = RunDirectory(own_run)
    counts = {"held_out_nodes": 200, "answered_nodes": 150, "answered_errors": 3}
    promise = Promise(error=0.05, confidence=0.9, threshold=0.4, **counts)
    write_promise(directory.promise, promise, directory.model)
    assert reloader.look()
    assert service.model.promise == promise


def test_a_broken_model_is_reported_and_the_old_one_answers(watched, own_run, capsys):
    service, reloader = watched
    old = service.model
    good = RunDirectory(own_run).model.read_bytes()
    replace_model(own_run, lambda path: path.write_bytes(b"broken"))
    assert not reloader.look()
    assert service.model is old
    assert "model.safetensors" in service.reload_error
    assert "the old model keeps answering" in capsys.readouterr().err
    assert b'gpn_reloads_total{result="failed"} 1.0' in service.metrics.text()
    assert not reloader.look()  # not tried again
    assert capsys.readouterr().err == ""
    replace_model(own_run, lambda path: path.write_bytes(good))
    assert reloader.look()
    assert service.reload_error is None


def test_a_model_that_disappears_is_reported(watched, own_run):
    service, reloader = watched
    RunDirectory(own_run).model.unlink()
    assert not reloader.look()
    assert service.reload_error


def test_no_request_fails_while_a_model_is_swapped(watched, own_run):
    service, reloader = watched
    old = service.model.fingerprint
    new = retrained(service)
    app = application(service, reloader)

    async def main():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        statuses, models = [], set()
        async with (
            reloader.watching(),
            httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client,
        ):
            for number in range(2000):
                if number == 5:
                    replace_model(own_run, new.save)
                answer = await client.get("/nodes/acc-011")
                health = await client.get("/health")
                statuses += [answer.status_code, health.status_code]
                models.add(health.json()["model"])
                if len(models) == 2 and number > 10:
                    break
                await asyncio.sleep(0.002)
        return statuses, models

    statuses, models = asyncio.run(main())
    assert set(statuses) == {200}
    assert len(models) == 2
    assert old in models

"""Starting and stopping a service as a process: sockets, signals, processes, memory."""

import json
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from gpn_scale.errors import RunError
from gpn_scale.serve.server import bind
from tests.serve.conftest import HOSTILE
from tests.serve.running import running


def test_a_port_in_use_is_refused():
    with bind("127.0.0.1", 0) as free:
        free.listen()
        port = free.getsockname()[1]
        with pytest.raises(RunError, match=f"port {port} of 127.0.0.1 cannot be used") as error:
            bind("127.0.0.1", port)
    assert error.value.arguments == ("port", "host")
    bind("127.0.0.1", port).close()


def test_two_services_that_are_loading_do_not_share_a_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with bind("127.0.0.1", port), pytest.raises(RunError, match="in use"):
        bind("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(RunError, match=r"192\.0\.2\.1 cannot be used"):
        bind("192.0.2.1", 0)


def test_a_signal_lets_running_requests_finish(own_run, tmp_path):
    with (tmp_path / "log").open("w") as log:
        options = ["--log-format", "json"]
        with running(own_run, *options, stderr=log) as (process, address):
            place = urlsplit(address)
            with socket.create_connection((place.hostname, place.port), 30) as client:
                body = json.dumps({"ids": [".."]}).encode()
                head = f"POST /predict HTTP/1.1\r\nhost: {place.netloc}\r\n"
                head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                client.sendall(head.encode() + body[:4])
                assert httpx.get(f"{address}/health").status_code == 200  # so the head has arrived
                process.send_signal(signal.SIGTERM)
                client.sendall(body[4:])
                answer = b""
                while piece := client.recv(1 << 16):
                    answer += piece
            assert answer.startswith(b"HTTP/1.1 200")
            assert b'"predictions"' in answer
            assert process.wait(60) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    requests = [line for line in lines if line["event"] == "request"]
    assert {line["route"] for line in requests} == {"/health", "/predict"}
    assert lines[-1]["event"] == "stopped"
    assert sorted(path.suffix for path in (own_run / "served").iterdir()) == sorted(
        [".arrow", ".json", ".lock", ".npy", ".npy", ".npy"]
    )


def resident_pages(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])


def ask_everything(client, number):
    node_id = HOSTILE[number % len(HOSTILE)] if number % 2 else f"acc-{10 + number % 200:03d}"
    query = {"params": {"id": node_id}}
    new = {"id": f"new{number}", "columns": {"size": number, "country": "DE"}}
    edge = {"source": f"new{number}", "target": node_id}
    answers = [
        client.get("/health"),
        client.get("/nodes", params={"search": "acc", "sort": "degree", "offset": number}),
        client.get("/nodes/nobody"),
        client.get("/neighbourhood", **query),
        client.get("/contributors", **query),
        client.get("/similar", **query),
        client.get("/features", **query),
        client.get("/triage", params={"offset": number % 100}),
        client.post("/predict", json={"ids": [node_id]}),
        client.post("/predict_new", json={"nodes": [new], "edges": [edge]}),
        client.post("/what_if", json={"id": node_id, "columns": {"size": number}}),
        client.get("/metrics"),
    ]
    return [answer.status_code for answer in answers]


def test_memory_does_not_grow_with_requests(running_service):
    process, address = running_service
    with httpx.Client(base_url=address, timeout=60) as client:
        for number in range(10):  # warm-up: caches are filled, libraries loaded
            ask_everything(client, number)
        before = resident_pages(process)
        for number in range(25):
            statuses = ask_everything(client, number)
            assert sorted(set(statuses)) == [200, 404]
        assert resident_pages(process) <= 1.05 * before


@pytest.mark.slow
def test_several_processes_share_a_port(own_run):
    with running(own_run, "--workers", "2") as (process, address):
        with httpx.Client(base_url=address, timeout=60) as client:
            for _ in range(20):
                assert client.get("/nodes/acc-011").status_code == 200
            line = 'gpn_requests_total{method="GET",route="/nodes/{id}",status="200"} 20.0'
            assert line in client.get("/metrics").text
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

"""How many requests does the service answer per second, and how long does one take?

    python benchmarks/bench_serve.py --run RUN [--data-dir DIR] [--seconds 10] [--connections 8]
    python benchmarks/bench_serve.py --run RUN --soak 3600 --rate 500
    python benchmarks/bench_serve.py --dataset synthetic:nodes=20000 --work WORK

Starts `gpn-serve` as a process and asks it over connections that stay open: known nodes as fast as
it answers, then single new nodes with five neighbours, one after the other. With `--soak`, known
and new nodes are asked at a fixed rate, and the growth of the memory of the service is reported;
its memory is measured after the first tenth of the time. Without `--run`, a model is trained on
`--dataset` for a few epochs. Prints a table, then one JSON line; `--write FILE` writes the table.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
RNG_SEED = 1
NEIGHBOURS = 5
SOAK_NEW = 0.02
"""Fraction of the requests of a soak that are new nodes."""
WARM_UP = 50


class Service(NamedTuple):
    """A process that answers, and its address."""

    process: subprocess.Popen[str]
    host: str
    port: int


@contextmanager
def started(run: Path, options: argparse.Namespace) -> Iterator[Service]:
    """Start the service, wait until it answers, and end it after the block."""
    command = [sys.executable, "-c", "from gpn_scale.cli.serve import start; start()"]
    command += ["--run", str(run), "--port", "0", "--workers", str(options.workers)]
    command += ["--data-dir", str(options.data_dir)] if options.data_dir else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile("w") as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://[^\s\"]+", line)
        if address is None:
            raise SystemExit("the service did not start; run gpn-serve to see why")
        place = urlsplit(address[0])
        try:
            yield Service(process, str(place.hostname), int(place.port or 80))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


class Connection:
    """One connection that stays open."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._host = f"{service.host}:{service.port}"

    async def __aenter__(self) -> "Connection":
        place = self._service.host, self._service.port
        self._reader, self._writer = await asyncio.open_connection(*place)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def ask(self, request: bytes) -> bytes:
        """Return the body of the answer to a request; any status but 200 ends the measurement."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"unexpected answer: {head.decode()}")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        return await self._reader.readexactly(int(length[1]))

    def get(self, path: str) -> bytes:
        """Return the bytes of a GET request."""
        return f"GET {path} HTTP/1.1\r\nhost: {self._host}\r\n\r\n".encode()

    def post(self, path: str, value: Any) -> bytes:
        """Return the bytes of a POST request with a JSON body."""
        body = json.dumps(value).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: {self._host}\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


Request = Callable[[Connection], bytes]
"""Makes the bytes of the next request."""


class Requests:
    """Random requests about the nodes of a graph, from a fixed seed."""

    def __init__(self, ids: list[str], columns: dict[str, Any]) -> None:
        self._ids, self._columns = ids, columns
        self._source = random.Random(RNG_SEED)
        self._paths = [f"/nodes/{quote(node_id, safe='')}" for node_id in ids]

    def known(self, connection: Connection) -> bytes:
        """Ask for a known node."""
        return connection.get(self._source.choice(self._paths))

    def new(self, connection: Connection) -> bytes:
        """Ask for a new node with five neighbours, whose columns are those of a known node."""
        ends = self._source.sample(self._ids, min(NEIGHBOURS, len(self._ids)))
        edges = [{"source": "a new node", "target": end} for end in ends]
        nodes = [{"id": "a new node", "columns": self._columns}]
        return connection.post("/predict_new", {"nodes": nodes, "edges": edges})

    def mixed(self, connection: Connection) -> bytes:
        """Ask for a known node or, now and then, for a new one."""
        is_new = self._source.random() < SOAK_NEW
        return self.new(connection) if is_new else self.known(connection)


async def requests_of(service: Service) -> Requests:
    """Return requests about the nodes of the service's graph."""
    ids: list[str] = []
    async with Connection(service) as connection:
        for offset in range(0, 5000, 500):
            asked = connection.get(f"/nodes?limit=500&offset={offset}")
            page = json.loads(await connection.ask(asked))
            ids += [each["id"] for each in page["nodes"]]
        path = f"/features?id={quote(ids[0], safe='')}"
        features = json.loads(await connection.ask(connection.get(path)))
    columns = {each["name"]: each["value"] for each in features["columns"]}
    return Requests(ids, columns)


async def fastest(
    service: Service, request: Request, *, connections: int, seconds: float
) -> dict[str, float]:
    """Ask as fast as the service answers, and return rates and times in milliseconds."""
    times: list[float] = []

    async def warm_up() -> None:
        async with Connection(service) as connection:
            for _ in range(WARM_UP):
                await connection.ask(request(connection))

    async def ask(end: float) -> None:
        async with Connection(service) as connection:
            while (began := time.perf_counter()) < end:
                await connection.ask(request(connection))
                times.append(time.perf_counter() - began)

    await asyncio.gather(*(warm_up() for _ in range(connections)))
    began = time.perf_counter()
    await asyncio.gather(*(ask(began + seconds) for _ in range(connections)))
    return summary(times, time.perf_counter() - began)


async def soaked(
    service: Service, request: Request, *, connections: int, seconds: float, rate: float
) -> dict[str, float]:
    """Ask at a fixed rate, and return times, and the growth of memory after the first tenth."""
    times: list[float] = []
    memory: list[int] = []
    began = time.perf_counter()

    async def ask(place: int) -> None:
        due = began + place / rate
        async with Connection(service) as connection:
            while due < began + seconds:
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                await connection.ask(request(connection))
                times.append(time.perf_counter() - due)  # waiting for a late answer counts
                due += connections / rate

    async def watch() -> None:
        await asyncio.sleep(seconds / 10)
        memory.append(resident_bytes(service.process.pid))
        await asyncio.sleep(seconds * 0.88)
        memory.append(resident_bytes(service.process.pid))

    await asyncio.gather(watch(), *(ask(place) for place in range(connections)))
    figures = summary(times, time.perf_counter() - began)
    growth = 100 * (memory[1] / memory[0] - 1)
    return {**figures, "memory_mib": memory[0] / 2**20, "memory_growth_percent": growth}


def summary(times: list[float], seconds: float) -> dict[str, float]:
    """Return rate, and median and tail of the times in milliseconds."""
    ordered = sorted(times)

    def at(fraction: float) -> float:
        return 1000 * ordered[min(int(fraction * len(ordered)), len(ordered) - 1)]

    return {
        "requests": len(ordered),
        "per_second": len(ordered) / seconds,
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "slowest_ms": at(1.0),
    }


def resident_bytes(pid: int) -> int:
    """Return the memory of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident_bytes(int(each)) for each in children)


def table(results: dict[str, dict[str, float]]) -> str:
    """Return the figures as a Markdown table."""
    names = list(dict.fromkeys(name for figures in results.values() for name in figures))
    lines = [f"| requests | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for kind, figures in results.items():
        cells = [f"{figures[name]:,.4g}" if name in figures else "" for name in names]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def trained_run(options: argparse.Namespace) -> Path:
    """Return the run to serve; train a small one if none is given."""
    if options.run is not None:
        return Path(options.run)
    from gpn_scale.cli.train import main as train

    work = Path(options.work or tempfile.mkdtemp())
    run = work / "run"
    arguments = ["--dataset", options.dataset, "--epochs", "5", "--threads", "1", "--overwrite"]
    folder = ["--data-dir", str(options.data_dir)] if options.data_dir else []
    if train([*arguments, *folder, "--out", str(run)]):
        raise SystemExit("the model could not be trained")
    return run


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--run", type=Path, help="run to serve (default: train one)")
    parser.add_argument("--dataset", default="synthetic:nodes=20000", help="graph to train on")
    parser.add_argument("--data-dir", type=Path, help="folder with the graph")
    parser.add_argument("--work", type=Path, help="folder for a trained run")
    parser.add_argument("--seconds", type=float, default=10.0, help="time per measurement")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    parser.add_argument("--soak", type=float, help="seconds of requests at a fixed rate")
    parser.add_argument("--rate", type=float, default=500.0, help="requests per second of a soak")
    parser.add_argument("--write", type=Path, help="file for the table")
    options = parser.parse_args()
    run = trained_run(options)
    with started(run, options) as service:
        results = asyncio.run(measured(service, options))
    text = table(results)
    print(text)
    if options.write is not None:
        command = " ".join(sys.argv[1:])
        options.write.write_text(f"`bench_serve.py {command}`\n\n{text}\n", encoding="utf-8")
    print(json.dumps(results))


async def measured(service: Service, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the figures of each kind of request."""
    requests = await requests_of(service)
    connections, seconds = options.connections, options.seconds
    if options.soak is not None:
        limits = {"connections": connections, "seconds": options.soak, "rate": options.rate}
        return {"soak": await soaked(service, requests.mixed, **limits)}
    return {
        "known": await fastest(service, requests.known, connections=connections, seconds=seconds),
        "new": await fastest(service, requests.new, connections=1, seconds=seconds),
    }


if __name__ == "__main__":
    main()

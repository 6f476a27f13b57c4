"""Several ranks on this machine, as torchrun starts them, for tests of what they do together."""

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

import torch

from gpn_scale.distributed import connected

TIMEOUT = 120.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run_ranks(
    size: int, function: Callable[..., Any], *arguments: Any, expected: int | None = None
) -> list[Any]:
    """`function(world, *arguments)` in every rank; what each returned, or the error it died of.

    Of ranks that end without a word there is nothing; `expected` says how many do not.
    """
    context = multiprocessing.get_context("spawn")
    queue, port = context.Queue(), free_port()
    processes = [
        context.Process(target=_one, args=(rank, size, port, queue, function, arguments))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    results = dict(queue.get(timeout=TIMEOUT) for _ in range(expected or size))
    for process in processes:
        process.join(TIMEOUT)
    return [results[rank] for rank in sorted(results)]


def _one(rank, size, port, queue, function, arguments) -> None:
    torch.set_num_threads(1)
    facts = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in facts.items()})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    try:
        with connected(torch.device("cpu"), timeout_seconds=TIMEOUT) as world:
            result = function(world, *arguments)
    except Exception as error:  # whatever it is, the test wants to see it
        result = (
            error if isinstance(error, ValueError | ArithmeticError) else traceback.format_exc()
        )
    queue.put((rank, result))

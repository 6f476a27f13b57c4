"""Counts the operators of a training step, and the places where it would wait for a GPU.

The steps run on the CPU under the rules for GPUs. What launches a kernel on a GPU is an operator
here; views, allocations and constructors of sparse tensors launch none and are counted apart.
"""

import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PACKAGE = str(Path(__file__).parents[1] / "gpn_scale")
NO_KERNEL = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
NO_KERNEL |= {"lift_fresh", "promote_types", "sparse_compressed_tensor", "sparse_csr_tensor"}
NO_KERNEL |= {"_sparse_compressed_tensor_unsafe", "_record_function_enter_new"}
NO_KERNEL |= {"_record_function_exit"}
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "unique_dim", "bincount", "equal"}
WAITING |= {"_unique2", "unique_consecutive", "unique_dim_consecutive", "is_nonzero", "histc"}
"""Operators whose result, or its size, the host waits for."""
READING = ("tolist", "numpy", "item", "cpu", "__bool__", "__float__", "__int__", "__array__")
"""Methods of tensors that bring numbers to the host."""


def place():
    """File and function of the package that the current operation was called from."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            name = Path(frame.f_code.co_filename).name
            return f"{name}: {frame.f_code.co_name}"
        frame = frame.f_back
    return "elsewhere"


class OperatorCount(TorchDispatchMode):
    """What the calling thread does within the block: operators, views, and waits by their place."""

    def __init__(self):
        super().__init__()
        self.operators, self.views, self.waits = Counter(), Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[-1]
        if func.is_view or name in NO_KERNEL:
            self.views[name] += 1
        else:
            self.operators[name] += 1
        sized_by_data = name == "repeat_interleave" and len(args) < 3
        if name in WAITING or sized_by_data or _is_masked(name, args):
            self.waits[place()] += 1
        return func(*args, **(kwargs or {}))

    def take(self):
        """What was counted since the last call: operators, views, waits."""
        counts = sum(self.operators.values()), sum(self.views.values()), set(self.waits)
        for counter in (self.operators, self.views, self.waits):
            counter.clear()
        return counts

    @contextmanager
    def counting(self):
        """Count within the block, also numbers that are read without an operator."""
        with ExitStack() as stack:
            for name in READING:
                stack.enter_context(patch.object(torch.Tensor, name, self._noted(name)))
            stack.enter_context(self)
            yield self

    def _noted(self, name):
        method = getattr(torch.Tensor, name)

        def noted(tensor, *arguments, **options):
            self.waits[place()] += 1
            return method(tensor, *arguments, **options)

        return noted


def _is_masked(name, args):
    """Whether a mask selects entries, so that their number depends on data."""
    if name not in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return False
    indices = [each for each in args[1] if each is not None]
    return any(each.dtype in (torch.bool, torch.uint8) for each in indices)


def counts_of_steps(trainer, steps):
    """`OperatorCount.take` for each of the first steps of a trainer."""

    class EnoughError(Exception):
        pass

    count, results = OperatorCount(), []

    def observe_step(epoch, step, total):
        results.append(count.take())
        if len(results) == steps:
            raise EnoughError

    trainer.observe_step = observe_step
    try:
        with count.counting():
            for _ in trainer.records():
                count.take()  # validation is no step
    except EnoughError:
        pass
    return results

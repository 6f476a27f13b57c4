"""Is a flow that torch.compile has fused faster on this CPU than the fused one without it?

    python benchmarks/bench_compile.py [--nodes 8192] [--classes 30] [--repeats 9]

Both take turns, one thread each, forward and backward pass; times are seconds of the processor, so
that other work on the machine counts less. Prints one JSON line: the ratio of each turn (above 1,
the compiled flow is faster), their median, and the seconds that compiling took.
"""

import argparse
import copy
import json
import statistics
import time

import torch
from torch import Tensor

from gpn_scale.nn.flow import RadialFlow


def seconds_of(flow: RadialFlow, z_ND: Tensor) -> float:
    """Return the processor's seconds of a forward and a backward pass."""
    z_ND = z_ND.detach().requires_grad_()
    began = time.process_time()
    torch.autograd.grad(flow(z_ND).sum(), [z_ND, *flow.parameters()])
    return time.process_time() - began


def main() -> None:
    """Measure and print one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=8192)
    parser.add_argument("--classes", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    plain = RadialFlow(
        num_classes=options.classes,
        latent=16,
        radial_layers=10,
        memory_mib=512,
        generator=torch.Generator().manual_seed(1),
    )
    compiled = copy.deepcopy(plain)
    compiled.compiled = True
    z_ND = torch.randn(options.nodes, 16, generator=torch.Generator().manual_seed(2))
    began = time.monotonic()
    seconds_of(compiled, z_ND)
    compiling = time.monotonic() - began
    seconds_of(plain, z_ND)
    ratios = [seconds_of(plain, z_ND) / seconds_of(compiled, z_ND) for _ in range(options.repeats)]
    result = {"median_ratio": statistics.median(ratios), "ratios": sorted(ratios)}
    print(json.dumps(vars(options) | result | {"compile_seconds": compiling}))


if __name__ == "__main__":
    main()

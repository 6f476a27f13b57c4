"""The most memory that tensors of a computation take, as torch's own allocator counts it."""

from torch.profiler import ProfilerActivity, profile


def peak_bytes(compute):
    """Most bytes that `compute` has allocated at a time, beyond those allocated before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        compute()
    events = profiler.profiler.kineto_results.events()
    steps = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    now = most = 0
    for _, size in steps:
        now += size
        most = max(most, now)
    return most

"""The simulation follows CUDA's and NCCL's rules where the tool's figures would not tell: computed by hand."""

import dataclasses

from generator.operations import Collective, Host, Kernel, StepMark, Synchronize
from generator.simulate import Machine, simulate

# Everything takes as long as it says, and issuing takes nothing that matters.
EXACT = Machine(jitter=0.0, launch_ns=1, latency_ns=1000, within=1.0, ranks_per_host=8)
LAUNCH = 1


def gather(count=1000, stream="comm"):
    """An all-gather that takes latency + (n-1)/n of its bytes at 1 byte/ns."""
    return Collective("ncclAllGather", "world", count, "uint8", stream)


def run(programs, machine=EXACT):
    return simulate(programs, {"world": list(programs)}, machine)


def test_ranks_that_call_different_operations_wait_for_ever():
    traces = run({0: [gather(), Synchronize("comm"), StepMark(1)], 1: [gather(count=7)]})
    assert not traces[0].finished and not traces[1].finished
    assert traces[0].steps == [] and traces[0].calls[0].device_end is None


def test_a_kernel_that_finds_its_stream_idle_takes_the_host_longer():
    machine = dataclasses.replace(EXACT, wake_ns=500)
    trace = run({0: [Kernel(10_000), Kernel(10_000), Host(50_000), Kernel(10_000)]}, machine=machine)[0]
    first = LAUNCH + 500
    last = first + LAUNCH + 50_000 + LAUNCH + 500
    assert trace.busy == [(first, first + 10_000), (first + 10_000, first + 20_000), (last, last + 10_000)]


def test_a_host_waits_for_no_rank_to_see_whether_its_stream_is_idle():
    machine = dataclasses.replace(EXACT, wake_ns=500)
    traces = run({0: [gather(stream="a"), Kernel(10, "a")], 1: [Host(70_000), gather(stream="a")]}, machine=machine)
    assert traces[0].end == 2 * LAUNCH

"""The simulation follows CUDA's and NCCL's rules: times of small programs, computed by hand."""

import dataclasses

import pytest
from generator.operations import Collective, Copy, Host, Kernel, Record, StepMark, Synchronize, Wait
from generator.simulate import Machine, simulate

# Everything takes as long as it says, and issuing takes nothing that matters.
EXACT = Machine(jitter=0.0, launch_ns=1, latency_ns=1000, within=1.0, ranks_per_host=8)
LAUNCH = 1


def gather(count=1000, stream="comm", comm="world"):
    """An all-gather that takes latency + (n-1)/n of its bytes at 1 byte/ns."""
    return Collective("ncclAllGather", comm, count, "uint8", stream)


def transfer_ns(count, n):
    return 1000 + count * n * (n - 1) // n


def run(programs, comms=None, machine=EXACT):
    comms = comms or {"world": list(programs)}
    return simulate(programs, comms, machine)


def test_a_collective_ends_everywhere_when_the_last_rank_has_come_and_the_transfer_is_over():
    traces = run({0: [gather()], 1: [Host(70_000), gather()], 2: [Host(20_000), gather()]})
    last = 70_000 + LAUNCH
    for rank, began in ((0, LAUNCH), (1, last), (2, 20_000 + LAUNCH)):
        (call,) = traces[rank].calls
        assert (call.device_begin, call.device_end) == (began, last + transfer_ns(1000, 3))
        assert call.host_end - call.host_begin == LAUNCH  # the host does not wait


def test_operations_of_a_communicator_run_one_after_the_other_also_on_two_streams():
    program = [gather(stream="a"), gather(stream="b")]
    (first, second) = run({0: program, 1: program})[0].calls
    assert second.device_begin == first.device_end


def test_two_communicators_run_at_once():
    program = [gather(stream="a"), gather(stream="b", comm="other")]
    traces = run({0: program, 1: program}, {"world": [0, 1], "other": [0, 1]})
    (first, second) = traces[0].calls
    assert second.device_begin < first.device_end


def test_only_what_no_kernel_covers_is_exposed():
    # The kernel runs from 1 to 1,001 ns, the gather from 2 on.
    program = [Kernel(1000), gather()]
    (call,) = run({0: program, 1: program})[0].calls
    assert call.exposed_ns == call.device_end - 1001


def test_a_wait_holds_back_the_stream_and_not_the_host():
    program = [gather(), Record("comm", "gathered"), Wait("compute", "gathered"), Kernel(500)]
    trace = run({0: program, 1: program})[0]
    (call,) = trace.calls
    assert trace.busy == [(call.device_end, call.device_end + 500)]
    assert trace.end < call.device_end


def test_a_wait_is_for_the_latest_record_before_it():
    again = [gather(), Record("comm", "gathered"), Wait("compute", "gathered"), Kernel(500)]
    trace = run({0: again * 2, 1: again * 2})[0]
    second = trace.calls[1]
    assert trace.busy[1] == (second.device_end, second.device_end + 500)


def test_synchronising_holds_back_the_host():
    trace = run({0: [Kernel(90_000), Synchronize(), StepMark(1)]})[0]
    assert trace.steps[0].begin == LAUNCH + 90_000


def test_a_pageable_copy_waits_for_the_stream_and_holds_back_the_host():
    trace = run({0: [Kernel(90_000), Copy("D2H", 6_000, "compute", "pageable"), StepMark(1)]})[0]
    (call,) = trace.calls
    assert call.host_end >= LAUNCH + 90_000 + 6_000 / EXACT.pageable
    assert trace.steps[0].begin == call.host_end


def test_a_slow_link_slows_what_passes_hosts_and_nothing_else():
    program = [gather(), gather(comm="near")]
    comms = {"world": [0, 1, 2, 3], "near": [0, 1]}
    far = Machine(
        jitter=0.0, launch_ns=1, latency_ns=0, within=1.0, between=0.5, ranks_per_host=2,
        link_factor={1: 0.25},
    )  # fmt: skip
    programs = {0: program, 1: program, 2: program[:1], 3: program[:1]}
    (world, near) = run(programs, comms, far)[0].calls
    assert world.device_end - world.device_begin == pytest.approx(3 * 1000 / 0.5 / 0.25, abs=3)
    assert near.device_end - near.device_begin == pytest.approx(1000, abs=3)


def test_ranks_that_call_different_operations_wait_for_ever():
    traces = run({0: [gather(), Synchronize("comm"), StepMark(1)], 1: [gather(count=7)]})
    assert not traces[0].finished and not traces[1].finished
    assert traces[0].steps == [] and traces[0].calls[0].device_end is None


def test_a_send_meets_its_receive_and_nobody_else():
    def message(function, peer):
        return Collective(function, "world", 1000, "uint8", "p2p", peer=peer)

    programs = {0: [message("ncclSend", 2)], 1: [Host(10**9)], 2: [message("ncclRecv", 0)]}
    traces = run(programs)
    assert traces[0].calls[0].device_end == LAUNCH + 1000 + 1000
    assert traces[0].finished and traces[2].finished


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

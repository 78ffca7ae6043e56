"""Exposed communication: how long computation stood still for calls, against the stand-in's own
record of what ran on its streams and when."""

import collections
import json

import pytest
from lib.build import BUILD
from lib.launch import start
from lib.tool import tprof

CLIENT = BUILD / "waits"
ROUNDS = 10
LATENCY_US = 20_000
KERNEL_US = 5_000


def play(folder, situation, kernels, **settings):
    schedule = folder / "schedule"
    schedule.mkdir(parents=True)
    run = start(
        [CLIENT, situation, ROUNDS, kernels], folder, TPROF_TIMING="events",
        STANDIN_LATENCY_US=str(LATENCY_US), STANDIN_KERNEL_US=str(KERNEL_US),
        STANDIN_SCHEDULE=str(schedule), **settings,
    )
    assert run.code == 0, run.stderr
    (file,) = run.ranks()
    (path,) = schedule.iterdir()
    ran = [line.split() for line in path.read_text().splitlines()]
    ran = [(int(stream), what, int(a), int(b), int(c)) for stream, what, a, b, c, *_ in ran]
    (row,) = [row for row in file.ledger_rows() if row["name"] == "ncclAllGather"]
    return run, row, sorted(ran, key=lambda op: op[2])


def waits_and_gathers(ran):
    """-> from when to when the stream with most kernels waited, and all-gathers ran."""
    kernels = collections.Counter(stream for stream, what, *_ in ran if what == "kernel")
    computes = kernels.most_common(1)[0][0]
    waits = [(a, c) for stream, what, a, b, c in ran if stream == computes and what == "marker"]
    gathers = [(b, c) for stream, what, a, b, c in ran if what == "ncclAllGather"]
    assert len(gathers) >= ROUNDS
    return waits, gathers


def stood_still(ran):
    """-> of each all-gather how long that stream stood still while it ran, in ns."""
    waits, gathers = waits_and_gathers(ran)
    return [sum(max(0, min(end, c) - max(start, a)) for a, c in waits) for start, end in gathers]


def stood_until_woken(ran):
    """The same and what came behind it: on a busy machine a stream is woken late."""
    waits, gathers = waits_and_gathers(ran)
    return [sum(c - max(start, a) for a, c in waits if a < end and c > start) for start, end in gathers]


def close(found_ns, truth_ns, at_most_ns=None):
    # A few events each.
    return truth_ns * 0.92 - 8e6 <= found_ns <= max(truth_ns, at_most_ns or 0) * 1.08 + 8e6


@pytest.mark.parametrize("kernels", [0, 2, 8])
@pytest.mark.parametrize(
    "situation", ["direct", "relay", "two_relays", "side_work", "recorded_again", "behind_compute"]
)
def test_what_was_exposed_is_how_long_the_computing_stream_stood_still(tmp_path, situation, kernels):
    _, row, ran = play(tmp_path, situation, kernels)
    truth = stood_still(ran)
    assert row["waited"] == row["device_timed"] == row["calls"] == len(truth)
    assert row["waited_ns"] == row["device_ns"]
    woken = stood_until_woken(ran)
    assert close(row["exposed_ns"], sum(truth), sum(woken)), (row, truth, woken)
    assert row["exposed_ns"] <= row["waited_ns"]
    assert close(row["exposed_ns_max"], max(truth), max(woken)), (row, truth, woken)
    assert row["late"] >= sum(1 for ns in truth if ns > 5e6)


@pytest.mark.parametrize("situation", ["stream_synchronize", "event_synchronize", "device_synchronize"])
def test_a_thread_that_waits_stands_still_for_what_is_left_of_the_call(tmp_path, situation):
    """The host enqueues in no time: all of the call is left."""
    _, row, ran = play(tmp_path, situation, 1)
    truth = sum(c - b for _, what, _, b, c in ran if what == "ncclAllGather")
    assert row["waited"] == row["calls"] == ROUNDS
    assert close(row["exposed_ns"], truth)


@pytest.mark.parametrize("situation", ["nobody", "unknown_event"])
def test_of_a_call_that_nobody_is_seen_to_wait_for_nothing_is_said(tmp_path, situation):
    run, row, _ = play(tmp_path, situation, 1)
    assert row["device_timed"] == row["calls"] == ROUNDS
    assert "exposed_ns" not in row and "waited" not in row
    (op,) = json.loads(tprof("summary", run.traces, "--json").stdout)["ops"]
    assert op["exposed_ns"] is None


def test_waits_within_a_capture_are_left_alone(tmp_path):
    run = start([CLIENT, "in_a_capture", ROUNDS, 1], tmp_path, TPROF_TIMING="events")
    assert run.code == 0, run.stderr
    (file,) = run.ranks()
    assert {row["mode"] for row in file.ledger_rows()} == {"captured", "replayed"}

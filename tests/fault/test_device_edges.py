"""TPROF_TIMING=events where threads meet at a stream, and where contexts go, on a driver that knows what must not be
done."""

import pytest
from lib import runs
from lib.build import BUILD

BEGINS = [
    "cudaStreamBeginCapture", "cudaStreamBeginCaptureToGraph", "cudaStreamWaitEvent",
    "cuStreamBeginCapture", "cuStreamBeginCaptureToGraph", "cuStreamWaitEvent",
]  # fmt: skip
OTHERS = [
    "cudaStreamDestroy", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaEventRecord",
    "cudaDeviceReset",
]  # fmt: skip


GONE = "tprof: calls are not timed any more: the program has destroyed a context of CUDA\n"


def run(tmp_path, *arguments: str):
    traced = runs.run(tmp_path, [str(BUILD / "device_edges"), *arguments], TPROF_TIMING="events")
    goes = "reset" in arguments or "cudaDeviceReset" in arguments
    assert (traced.code, traced.stderr) == (0, GONE if goes else "")
    return traced, dict(line.split() for line in traced.stdout.splitlines())


@pytest.mark.parametrize("call", BEGINS + OTHERS)
def test_no_call_spins_where_another_threads_mark_stands_in_the_driver(call, tmp_path):
    _, said = run(tmp_path, "held", call)
    assert float(said["cpu"]) < 0.05


@pytest.mark.parametrize("who", ["start", "end", "mark", "scope"])
@pytest.mark.parametrize("how", BEGINS)
def test_no_event_of_ours_becomes_part_of_a_capture_that_begins_meanwhile(how, who, tmp_path):
    _, said = run(tmp_path, "capture", how, who)
    assert said == {"captured": "0", "misused": "0"}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("when", ["at once", "idle", "captures", "scope"])
@pytest.mark.parametrize(
    "how", ["cudaDeviceReset", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxRelease", "cuCtxDestroy"]
)
def test_where_contexts_go_calls_are_not_timed_any_more_and_no_event_is_used_that_went(how, when, tmp_path):
    """Another thread makes calls on another device all the while."""
    traced, said = run(tmp_path, "reset", how, when)
    assert said == {"misused": "0"}
    lines = traced.only_rank_file()
    rows = [row for row in runs.named(lines, "tprof_ledger")[-1]["rows"] if row["name"] == "cudaMemcpyAsync"]
    calls, timed = (sum(row.get(key, 0) for row in rows) for key in ("calls", "device_timed"))
    lost = runs.footer(lines).get("timing_lost", {})
    # Times that were not read when a context went by its last release are lost.
    assert calls > 40 * 15 and timed >= 15 * (how != "cuDevicePrimaryCtxRelease")
    assert lost.keys() <= {"unread", "no_context", "device"} and timed + sum(lost.values()) < calls

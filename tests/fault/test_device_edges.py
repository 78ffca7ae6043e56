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
]  # fmt: skip


def run(tmp_path, *arguments: str):
    traced = runs.run(tmp_path, [str(BUILD / "device_edges"), *arguments], TPROF_TIMING="events")
    assert (traced.code, traced.stderr) == (0, "")
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

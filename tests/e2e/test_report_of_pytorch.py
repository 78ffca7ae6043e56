"""`tprof report` names the rank of an unmodified PyTorch job that holds up the others, and why."""

import pytest
from lib import launch
from lib.build import LIBTPROF
from lib.tool import told

CLOCKS = {"STANDIN_BLOCK_US": "0", "STANDIN_KERNEL_US": "300", "STANDIN_LATENCY_US": "200", "STANDIN_GBPS": "10"}


@pytest.mark.parametrize(
    ("kind", "args", "env"),
    [
        ("slow_gpu", (), {"STANDIN_SLOW_RANK": "1:3"}),
        ("slow_input", ("--rank", "1", "--ms", "80"), {}),
        ("slow_cpu", ("--rank", "1", "--ms", "80", "--where", "middle"), {}),
    ],
)
def test_the_rank_that_holds_up_the_others(kind, args, env, torch, tmp_path):
    run = launch.start(
        launch.torchrun("late.py", 2, args), tmp_path, TPROF_TIMING="events",
        NVTX_INJECTION64_PATH=str(LIBTPROF), **CLOCKS, **env,
    )  # fmt: skip
    assert run.code == 0, run.stderr
    found = told("report", run.traces)[1]
    blaming = [(f["kind"], f["ranks"]) for f in found["findings"] if f["kind"].startswith("slow_")]
    assert blaming[0] == (kind, "1")  # on a busy machine another may be late at times, too
    assert found["verdict"]["finding"] == found["findings"].index(
        next(f for f in found["findings"] if f["kind"] == kind)
    )
    if args:  # each step is as much longer as the rank sleeps
        [cost] = [f["cost"]["ns_per_step"] for f in found["findings"] if f["kind"] == kind]
        assert cost == pytest.approx(80e6, rel=0.35)

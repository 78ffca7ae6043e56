"""The library runs beside unmodified PyTorch's own profiler (Kineto), a client of CUPTI."""

import collections
import json

import pytest
from lib import launch
from lib.rankfile import parsed, untimed
from lib.tool import tprof

STEPS, BLOCKS = 4, 2
# FSDP2 gathers each unit once forward, and all but the root again backward; it reduces each unit once.
GATHERS, SCATTERS = STEPS * (2 * BLOCKS + 1), STEPS * (BLOCKS + 1)


def kernels(path):
    events = json.loads(path.read_text())["traceEvents"]
    return collections.Counter(e["name"].split("_")[1] for e in events if e.get("cat") == "kernel" and "nccl" in e["name"])


def merged_beside(traces, folder):
    """Merges both traces, and returns for each rank how many of our all-gathers lie within c10d's own
    mark of one. They may lie outside of it by as much as the profiler's clock may be wrong."""
    kinetos = folder / "kineto-*.json"
    done = tprof("merge", traces, "-o", folder / "both.json", "--with", kinetos)
    assert done.returncode == 0, done.stderr
    lines = parsed(folder / "both.json")
    within = {}
    for rank in (0, 1):
        marks = [(e["ts"], e["ts"] + e["dur"]) for e in lines
                 if e["pid"] == rank and e.get("cat") == "OTHER,cpu_op" and e["name"] == "c10d::_allgather_base_"]
        ours = [e["ts"] for e in lines if e["pid"] == rank and e.get("cat") == "ALLGATHER"]
        within[rank] = sum(any(a - 1000 <= ts <= b + 1000 for a, b in marks) for ts in ours)
    return within


@pytest.mark.parametrize("timing", ["events", "cupti"])
def test_pytorchs_profiler_has_all_that_ran_and_ours_times_what_it_may(torch, timing, tmp_path):
    command = launch.without_agent("kineto.py", 2, ("--out", str(tmp_path), "--steps", str(STEPS)))
    settings = {"TPROF_SCHEDULE": "profiler"} if timing == "events" else {}
    done = launch.start(command, tmp_path, TPROF_TIMING=timing, **settings)
    assert done.code == 0, done.stderr
    for file in done.ranks():
        ran = kernels(tmp_path / f"kineto-{file.rank}.json")
        assert ran == {"AllGather": GATHERS, "ReduceScatter": SCATTERS}
        timed = collections.Counter()
        for row in file.ledger_rows():
            timed[row["name"]] += row["device_timed"]
        seen = timed["ncclAllGather"] + timed["ncclReduceScatter"]
        if timing == "events":
            # Calls are timed in the window that the program opens around the same steps.
            assert 0 <= GATHERS + SCATTERS - seen <= untimed(file)
        else:
            # Calls are timed until the profiler takes CUPTI: those of two steps before it, as far as they
            # were read.
            assert seen <= 2 * (GATHERS + SCATTERS) // STEPS
    beside = merged_beside(done.traces, tmp_path)
    if timing == "events":
        assert beside == {rank: GATHERS for rank in (0, 1)}
    made_way = "tprof: calls are not timed any more: the program uses CUPTI itself"
    assert done.words_of_ours() == ([made_way] * 2 if timing == "cupti" else [])

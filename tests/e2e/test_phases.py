"""Compares backward and the rest, from the ledger alone, with the numbers that follow from the model."""

import collections

import pytest
from lib import formulas, jobs
from lib.cases import STEPS
from lib.rankfile import RankFile
from lib.tool import told
from test_fsdp_formulas import FSDP
from test_steps import assert_adds_up


def rows_of(file: RankFile, thread: str | None, function: str, dtype: str) -> tuple[int, int]:
    """Returns the number of calls and the sum of their counts, for this kind of thread."""
    rows = [
        row
        for row in file.ledger_rows()
        if row.get("thread") == thread and row["name"] == function and row["dtype"] == dtype
    ]
    return sum(row["calls"] for row in rows), sum(row["count"] for row in rows)


@pytest.mark.parametrize("name", FSDP)
def test_ledger_has_the_formulas_forward_and_backward(name, pair_of):
    shard, model, ranks, reshard, dtype = FSDP[name]
    root, block = shard(model.root(), ranks), shard(model.block(), ranks)
    blocks = formulas.DEPTH * STEPS
    again = blocks if reshard else 0  # the root keeps its parameters until the backward pass ends
    for file in pair_of(name).traced.ranks():
        forward = blocks + STEPS, blocks * block + STEPS * root
        assert rows_of(file, None, "ncclAllGather", dtype) == forward
        assert rows_of(file, "autograd", "ncclAllGather", dtype) == (again, again * block)
        assert rows_of(file, "autograd", "ncclReduceScatter", "float32") == forward
        assert rows_of(file, None, "ncclReduceScatter", "float32") == (0, 0)


@pytest.mark.parametrize("name", ["fsdp2-2", "zero3-2"])
def test_phases_of_the_summary_are_those_of_the_threads_that_have_the_lines(name, pair_of):
    run = pair_of(name).traced
    expected = {"backward": collections.Counter(), "rest": collections.Counter()}
    for file in run.ranks():
        names = {x["tid"]: x["args"]["name"] for x in file.lines if x["name"] == "thread_name"}
        for event in file.events:
            if event["args"].get("result", 0) == 0 and event.get("cat") != "NVTX":
                backward = names[event["tid"]].startswith("pt_autograd_")
                expected["backward" if backward else "rest"][event["cat"]] += 1
    phases = told("summary", run.traces)[1]["phases"]
    assert not phases["unknown"]
    # DeepSpeed reduces its last bucket after the backward pass, on the thread that asked for it.
    reduced = expected["backward" if name == "fsdp2-2" else "rest"]["RESHARDING"]
    assert reduced > 0 and expected["backward"]["ALLGATHER"] > 0 and expected["rest"]["ALLGATHER"] > 0
    for phase, calls in expected.items():
        without_lines = ("D2D", "H2H", "MANAGED")
        found = {b: f["calls"] for b, f in phases[phase].items() if b not in without_lines}
        assert found == dict(calls)


@pytest.mark.parametrize("name", FSDP)
def test_what_comes_before_the_backward_pass_of_a_step_is_forward(name, pair_of):
    """Where steps are known, the order of calls tells the phase. Calls with and without one add up to the ledger."""
    run = pair_of(name).traced
    report = told("summary", run.traces, "--by", "phase")[1]
    assert_adds_up(report)
    ranks = len(report["ranks"])
    gathers = [row for row in report["rest"] if row["bucket"] == "ALLGATHER"]
    shard, model, shards, _, _ = FSDP[name]
    root, block = shard(model.root(), shards), shard(model.block(), shards)
    (forward,) = [row for row in gathers if row["phase"] == "forward"]
    assert forward["told_by"] == "order"
    # FSDP1's first step is longer than the others, so its calls may have no phase.
    passes, of_a_part = divmod(forward["calls"], ranks * (formulas.DEPTH + 1))
    assert of_a_part == 0 and passes in ((STEPS,) if name.startswith("fsdp2") else (STEPS - 1, STEPS))
    assert forward["count"] == ranks * passes * (formulas.DEPTH * block + root)
    assert not [row for row in report["rest"] if row["phase"] == "forward" and row["bucket"] == "D2H"]
    # Where parameters are kept on the host their copies can't be told from those of batches.
    loaded = sum(row["bytes"] for row in report["rest"] if row["phase"] == "load")
    batch = 16 * model.width * 4
    if "offload" in name:
        assert loaded == 0
    else:
        assert loaded == ranks * passes * batch or (loaded == 0 and name.startswith("fsdp1"))


def test_a_program_without_an_autograd_thread_has_no_known_phase(tmp_path):
    found = told("summary", jobs.healthy(2, 20, 3).write(tmp_path / "job"))[1]
    assert not found["phases"]["backward"] and not found["phases"]["rest"]
    calls = {b: f["calls"] for b, f in found["phases"]["unknown"].items()}
    assert sum(calls.values()) == found["buckets"]["ALL"]["calls"] > 0

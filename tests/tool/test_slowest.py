"""tprof summary --top: compares the calls that took longest with jobs whose times are known."""

import bisect
import dataclasses
import json

import pytest
from lib import jobs, loops
from lib.clocks import clock_job
from lib.rankfile import lines_of
from lib.tool import summary_of, tprof


def slowest(folder, most, *more):
    return summary_of(folder, "--top", most, *more)["slowest"]


def test_on_the_device_they_are_the_collectives_that_took_a_rank_longest(tmp_path):
    truth = clock_job(tmp_path / "run", 2, 2, 200, sleeps=[(3, 123, 10**9)])
    found = slowest(tmp_path / "run", 20)
    assert (found["from"], found["looked"]) == ("device", 800)
    took = [[left - came for came, left in zip(*both)] for both in zip(truth["came"], truth["left"])]
    expected = sorted(range(200), key=lambda n: -max(took[n]))[:20]
    assert [call["seq"] for call in found["calls"]] == expected
    assert expected[0] == 123
    for call in found["calls"]:
        of_ranks = took[call["seq"]]
        # The clock drifts, and is read in whole nanoseconds.
        assert call["ns"] == pytest.approx(max(of_ranks), rel=2e-5, abs=3)
        assert of_ranks[call["rank"]] == pytest.approx(max(of_ranks), rel=2e-5, abs=3)
        assert (call["function"], call["bytes"], call["calls"]) == ("ncclAllReduce", 4096, 1)
        # The formulas are nccl-tests', for 4 ranks.
        assert call["algbw_GBps"] == pytest.approx(4096 / call["ns"])
        assert call["busbw_GBps"] == pytest.approx(4096 / call["ns"] * 2 * 3 / 4)


def test_without_device_times_they_are_the_hosts_and_that_is_said(tmp_path):
    folder = jobs.healthy(3, 40, 5).write(tmp_path / "job")
    file = folder / "rank-00001.json"
    calls = [json.loads(line) for line in lines_of(file) if '"ph":"X"' in line]
    long = calls[17]
    assert long["dur"] == 5
    one = json.dumps(long, separators=(",", ":")).replace('"dur":5.0', '"dur":777.000')
    lines = [one if '"ph":"X"' in line and json.loads(line) == long else line for line in lines_of(file)]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    found = slowest(folder, 3)
    assert found["from"] == "host"
    first = found["calls"][0]
    assert (first["rank"], first["function"], first["ns"]) == (1, long["name"], 777_000)
    assert [call["ns"] for call in found["calls"][1:]] == [5000, 5000]
    assert first["algbw_GBps"] is None and first["busbw_GBps"] is None
    text = tprof("summary", folder, "--top", 3).stdout
    assert "host time" in text and "By host time, since no call has a device time" in text


def test_calls_of_a_group_share_a_time_and_are_one_row(tmp_path):
    """Three all-gathers of one group have one line of the device, as the contract says."""
    loop = loops.Loop([[0, 1]])
    for count in (1000, 2000, 3000, 16):
        loop.gather(count)
    for n, rank in enumerate(loop.job.ranks):
        rank.ops[2] = dataclasses.replace(rank.ops[2], device=(50_000, 300_000 + 1000 * n), timed_calls=3)
    folder = loop.job.write(tmp_path / "job")
    found = slowest(folder, 5)
    (call,) = found["calls"]
    assert (call["rank"], call["calls"], call["ns"]) == (1, 3, 301_000)
    assert call["bytes"] == 2 * 4 * (1000 + 2000 + 3000)
    assert found["looked"] == 6
    assert "6 of 8 calls have a line with that time" in tprof("summary", folder, "--top", 5).stdout


def test_each_is_said_to_be_in_its_step(tmp_path):
    loop = loops.fsdp(loops.Shape(steps=9, evaluate=2, clip=True))
    found = slowest(loop.job.write(tmp_path / "job"), 1000)
    assert len(found["calls"]) > 100
    for call in found["calls"]:
        at = round((call["realtime_ns"] - jobs.BASE_NS) / jobs.STEP_NS)
        # Calls before the first step are in none; an evaluation ends the last step before it.
        expected = bisect.bisect(loop.steps, at)
        assert call["step"] == (expected or None), call

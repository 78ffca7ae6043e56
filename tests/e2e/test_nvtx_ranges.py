"""NVTX ranges of PyTorch (torch.cuda.nvtx) around an FSDP2 step are in the rank files, and counted exactly."""

import collections
import json

import pytest
from lib import needs
from lib.build import LIBTPROF
from lib.launch import start, without_agent
from lib.tool import told
from test_steps import assert_adds_up

LANE = 1 << 22


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    needs.package("torch")
    return start(
        without_agent("nvtx_fsdp2.py", 2),
        tmp_path_factory.mktemp("nvtx") / "run",
        NVTX_INJECTION64_PATH=str(LIBTPROF),
    )


def ranges(file, phase):
    return [x for x in file.lines if x.get("cat") == "NVTX" and x["ph"] == phase]


def within(inner, outer):
    return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_every_range_of_the_program_has_its_line(run):
    assert run.code == 0, run.stderr
    made = [json.loads(line[line.index("{") :]) for line in run.lines() if "{" in line]
    files = run.ranks()
    assert len(files) == 2 and made
    for file in files:
        assert collections.Counter(x["name"] for x in ranges(file, "X")) == made[0]
        assert [x["name"] for x in ranges(file, "i")] == [f"end of step {i}" for i in range(3)]
        assert "domain" not in str(ranges(file, "X"))


def test_calls_lie_within_the_ranges_that_make_them(run):
    for file in run.ranks():
        everything = ranges(file, "X")
        steps = [x for x in everything if x["name"].startswith("step")]
        backward = [x for x in everything if x["name"] == "backward"]
        assert len({x["tid"] for x in everything}) == 1 and everything[0]["tid"] > LANE
        for part in everything:
            assert part in steps or sum(within(part, step) for step in steps) == 1
        scatters = [x for x in file.lines if x.get("cat") == "RESHARDING"]
        assert len(scatters) == 5 * 3
        assert all(sum(within(x, b) for b in backward) == 1 for x in scatters)


def test_summary_by_range_has_each_name_as_often_as_it_was_made(run):
    made = [json.loads(line[line.index("{") :]) for line in run.lines() if "{" in line]
    found = told("summary", run.traces, "--by", "range")[1]["ranges"]
    counts = {r["name"]: r["count"] for r in found if not r["mark"]}
    assert counts == {name: 2 * n for name, n in made[0].items()}
    assert {r["name"] for r in found if r["mark"]} == {f"end of step {i}" for i in range(3)}
    inside = {r["name"]: r["inside"] for r in found}
    # On each of 2 ranks and in each of 3 steps the root and 4 blocks are gathered in the forward
    # pass, by the thread that pushed the range; backward is on autograd's.
    assert inside["forward"]["ALLGATHER"]["calls"] == 2 * 3 * 5
    assert inside["step 1"]["ALLGATHER"]["calls"] == 2 * 5
    assert "ALLGATHER" not in inside["backward"] and "RESHARDING" not in inside["backward"]
    assert all(r["inside_exact"] and r["ranks"] == [0, 1] for r in found if not r["mark"])


def test_the_phase_of_a_call_is_that_of_the_range_around_it(run):
    """On autograd's threads the ledger tells the phase; elsewhere the ranges of the loop do."""
    report = told("summary", run.traces, "--by", "phase")[1]
    assert_adds_up(report)
    expected = collections.Counter()
    for file in run.ranks():
        names = {x["tid"]: x["args"]["name"] for x in file.lines if x["name"] == "thread_name"}
        for name in ("forward", "backward", "optimizer"):
            for outer in (x for x in ranges(file, "X") if x["name"] == name):
                for call in file.events:
                    own = call["tid"] + LANE == outer["tid"] and "autograd" not in names[call["tid"]]
                    if own and call.get("cat") != "NVTX" and within(call, outer):
                        expected[name, call["cat"]] += 1
    found = {(row["phase"], row["bucket"]): row["calls"] for row in report["rest"] if row["told_by"] == "range"}
    assert found == dict(expected)
    # (4 blocks and the root) x 3 steps x 2 ranks.
    assert expected["forward", "ALLGATHER"] == 5 * 3 * 2

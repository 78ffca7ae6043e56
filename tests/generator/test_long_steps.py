"""Long steps name the ranks that held them up, each its own: the fields of the job are the truth."""

import json
import random
import re

import pytest
from generator.habit_jobs import LONG
from generator.habits import run
from generator.loop import MS
from generator.rank_files import Settings, write
from lib.tool import told, tprof

STEPS = LONG.but(ranks=4, steps=40, checkpoint="first")  # of 37 ms


def long_steps(loop, folder):
    write(run(loop), folder, loop.seed, Settings())
    (found,) = [f for f in told("report", folder)[1]["findings"] if f["kind"] in ("long_steps", "periodic_steps")]
    assert max(map(len, tprof("report", folder).stdout.splitlines()[:-1])) <= 80
    return found


def held_up(found):
    """Returns who held up which steps, as the text says."""
    said = re.search(r", held up by (rank \d+.*), where the usual step", found["text"])
    return re.findall(r"rank (\d+)(?: in (steps? [\d,-]*\d|\d+ of them))?", said[1]) if said else []


def test_each_of_two_ranks_is_told_with_its_own_steps(tmp_path):
    """Rank 0 writes checkpoints, of 300 ms; the other loads for 400 ms. Nothing is left of their steps."""
    loop = STEPS.but(checkpoint_every=15, loader={1: 400 * MS}, loader_every=17)
    write(run(loop), tmp_path / "job", loop.seed, Settings())
    found = told("report", tmp_path / "job")[1]["findings"]
    assert [(f["ranks"], f["in_steps"]) for f in found] == [("1", "16,33"), ("0", "14,29")]


def test_three_ranks_come_by_the_time_that_they_held_up(tmp_path):
    loop = STEPS.but(checkpoint_every=35, loader={1: 200 * MS}, loader_every=30, stalls={2: 250 * MS}, stalls_every=25)
    found = long_steps(loop, tmp_path / "job")
    assert " in step 34, held up by " in found["text"]
    assert held_up(found) == [("0", "step 34"), ("2", "step 24"), ("1", "step 29")]


def test_the_place_and_the_advice_are_of_the_rank_that_is_told_first(tmp_path):
    found = long_steps(STEPS.but(checkpoint_every=25, loader={1: 200 * MS}, loader_every=30), tmp_path / "checkpoint")
    assert held_up(found) == [("0", "step 24"), ("1", "step 29")]
    assert found["evidence"][0].startswith("rank 0 stands idle after the last kernel of a step, before the next step begins")
    assert found["next"].startswith("look at the host of rank 0 there: ")
    found = long_steps(STEPS.but(checkpoint_every=25, stalls={1: 700 * MS}, stalls_every=30), tmp_path / "stall")
    assert held_up(found) == [("1", "step 29"), ("0", "step 24")]
    assert found["evidence"][0].startswith("in step 29 most of that time is between ")


def test_a_step_that_all_ranks_take_longer_for_is_given_to_none(tmp_path):
    """All evaluate, and one pauses in another step."""
    found = long_steps(STEPS.but(eval_every=15, stalls={2: 300 * MS}, stalls_every=25), tmp_path / "job")
    assert found["in_steps"] == "14,24,29"
    assert held_up(found) == [("2", "step 24")]


def test_a_rank_that_is_always_slower_does_not_hold_up_a_step_in_which_all_pause(tmp_path):
    pause = dict.fromkeys(range(4), 45 * MS)
    found = long_steps(STEPS.but(gpu={1: 1.8}, loader=pause, loader_every=15), tmp_path / "job")
    assert found["in_steps"] == "14,29" and held_up(found) == []


def test_one_rank_that_held_up_all_of_them_is_told_without_a_list(tmp_path):
    found = long_steps(STEPS.but(checkpoint_every=39), tmp_path / "job")
    assert held_up(found) == [("0", "")]


@pytest.mark.parametrize("seed", range(4))
def test_where_many_ranks_pause_three_are_told_at_most_with_what_is_theirs(seed, tmp_path):
    loop = LONG.but(ranks=16, steps=60, pauses_ns=900 * MS, pauses=0.006, seed=seed)
    told_of = held_up(long_steps(loop, tmp_path / "job"))
    assert 1 <= len(told_of) <= 3
    for rank, steps in told_of:
        numbers = [int(number) for number in re.findall(r"\d+", steps)]
        drawn = [random.Random(f"{seed} {rank} {step}").random() < loop.pauses for step in numbers]
        assert numbers and "-" not in steps and all(drawn), (rank, steps)


@pytest.mark.parametrize("compile_ms", [120, 3000])
def test_steps_in_which_all_ranks_compile_cost_something_where_they_are_most_of_the_time(compile_ms, tmp_path):
    """Eight of 40 steps of 37 ms compile, and one rank takes a bit longer for half of them."""
    loop = STEPS.but(compile_ns=compile_ms * MS, compile_steps=8, compile_more={0: compile_ms // 4 * MS})
    found = long_steps(loop, tmp_path / "job")
    assert (found["in_steps"], held_up(found)) == ("1-7", [])
    report = told("report", tmp_path / "job")[1]
    assert [f for f in report["findings"] if f["kind"].startswith("slow_")] == []
    if compile_ms == 120:
        assert found.get("cost") is None  # a longer run has no more of them
        return
    # Each takes 3 s more, and every second one 0.75 s beside that: 7 and 4 of 39.
    assert found["cost"]["ns_per_step"] == pytest.approx((7 * 3000 + 4 * 750) / 39 * MS, rel=0.1)
    assert report["verdict"]["finding"] == report["findings"].index(found)


def evaluates(path, pause_us, kernels):
    """Adds an evaluation to a rank file: kernels run before its batch is copied, each so long before it."""
    *lines, clock, ledger, footer, end = path.read_text().splitlines(keepends=True)
    last = json.loads(lines.pop().rstrip(",\n"))
    batch = last["ts"] + pause_us
    loaded = {"name": "cudaMemcpyAsync", "cat": "H2D", "ph": "X", "pid": last["pid"], "tid": 7, "ts": batch, "dur": 5.0,
              "args": {"bytes": 2_000_000, "device": 0, "host_memory": "pinned", "stream": 1}}  # fmt: skip
    ran = {key: last[key] for key in ("cat", "name", "ph", "pid", "tid")} | {"args": {"device": 0}}
    busy = [ran | {"ts": batch - before, "dur": dur} for before, dur in kernels] + [ran | {"ts": batch + 10, "dur": 8000.0}]
    over = last | {"ts": batch + 9000.0}
    lines += [json.dumps(line, separators=(",", ":")) + ",\n" for line in (*busy[:-1], loaded, busy[-1], over)]
    path.write_text("".join([*lines, clock, ledger, footer, end]))


@pytest.mark.parametrize(
    "kernels", [[], [(600.0, 600.0)], [(42_000.0, 200.0)], [(42_000.0, 200.0), (100.0, 100.0)]],
    ids=["none", "until the copy", "long before it", "both"],
)  # fmt: skip
def test_the_last_step_ends_before_the_pause_behind_it(kernels, tmp_path):
    """A loader starts, for 50 ms, and one rank launches a kernel before its first batch comes."""
    loop = LONG.but(ranks=2, steps=12)
    write(run(loop), tmp_path / "job", loop.seed, Settings(marks=False))
    evaluates(tmp_path / "job/rank-00000.json", 50_000, kernels)
    evaluates(tmp_path / "job/rank-00001.json", 49_000, [])
    report = told("report", tmp_path / "job")[1]
    assert [f for f in report["findings"] if f["kind"] == "long_steps"] == []
    assert report["step"]["counted"] == 11 and report["step"]["most_ns"] < 1.1 * report["step"]["median_ns"]

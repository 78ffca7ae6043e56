"""Runs the call sites of FSDP's and DeepSpeed's profilers, in those frameworks, with our classes in place
of theirs. Values are compared, and each time of ours lies between two of theirs (tests/clients/seeds.py)."""

import collections
import json

import pytest
from lib import launch
from lib.tool import summary_of

RANKS = 2


def run(what, folder, **settings):
    done = launch.start(launch.without_agent("seeds.py", RANKS, (what,)), folder, **settings)
    assert done.code == 0 and done.words_of_ours() == [], done.stderr
    return done


def told(done, what):
    return [json.loads(line.split(what + ": ", 1)[1]) for line in done.lines() if what + ": " in line]


def ranges(folder):
    return {r["name"]: r for r in summary_of(folder / "traces", "--by", "range")["ranges"]}


def test_fsdps_checkpoints_on_our_simple_profiler(tmp_path):
    done = run("fsdp", tmp_path)
    entered = told(done, "SimpleProfiler")[0]  # by the client's own count
    all_ranks = told(done, "seeds")
    assert len(all_ranks) == RANKS
    seconds = collections.Counter()
    for dumps in all_ranks:
        assert len(dumps) >= 3  # optimizer's saved, model's loaded, optimizer's loaded
        for dump in dumps:
            for name, (within, ours, around) in dump.items():
                assert 0 < within <= ours <= around, (name, dump)
                seconds[name] += ours
        assert {"H2D", "all"} <= {name for dump in dumps for name in dump}
    found = ranges(tmp_path)
    assert {name: found[name]["count"] for name in entered} == {name: RANKS * n for name, n in entered.items()}
    for name, total in seconds.items():
        assert found[name]["total_ns"] / 1e9 == pytest.approx(total, rel=1e-9)
    # One rank says it, and all forget it.
    logged = told(done, "logged")
    assert sorted(text == "" for text in logged) == [False] + [True] * (RANKS - 1)
    (text,) = filter(None, logged)
    lines = [line.split("profiling:  ", 1)[1] for line in text.splitlines()]
    ours = [{name: values[1] for name, values in dump.items()} for dump in all_ranks[logged.index(text)]]
    assert [json.loads(line) for line in lines] == [dump for dump in ours if dump]


def sums_of(all_ranks, name):
    """Returns how often DeepSpeed's own profiler counted that name."""
    return sum(step[name]["count"][1] for steps in all_ranks for step in steps if name in step)


def test_deepspeeds_coordinator_on_our_parameter_profiler(tmp_path):
    done = run("deepspeed", tmp_path, TPROF_TIMING="events")
    all_ranks = told(done, "seeds")
    assert len(all_ranks) == RANKS
    sums = collections.defaultdict(lambda: collections.Counter())
    for steps in all_ranks:
        for step in steps:
            for name, figures in step.items():
                for key in ("count", "elements"):
                    ours, theirs = figures[key]
                    assert ours == theirs, (name, step)
                    sums[name][key] += ours
                sums[name]["host_ns"] += figures["host_ns"]
                for key, ms in zip(("within", "around"), figures["device_ms"], strict=True):
                    sums[name][key] += ms * 1e6
    rows = summary_of(tmp_path / "traces", "--by", "range")["ranges"]
    found = {}
    for row in rows:
        of_name = found.setdefault(row["name"], collections.Counter())
        of_name.update({key: row[key] or 0 for key in ("count", "elements", "total_ns", "device_timed", "device_ns")})
    # A module waits once, for what it submitted right before or for what was prefetched.
    waits = {(row["name"], row["category"]): row for row in rows if row["name"].endswith("_fetch_wait")}
    for way in ("forward", "backward"):
        demanded, prefetched = (waits[f"{way}_fetch_wait", how] for how in ("demanded", "prefetched"))
        assert demanded["count"] == sums_of(all_ranks, f"{way}_fetch_submit")
        assert demanded["count"] + prefetched["count"] == sums_of(all_ranks, f"{way}_fetch_wait")
    assert {"forward_all_gather", "backward_all_gather", "forward_fetch_submit", "forward_fetch_wait"} <= set(sums)
    for name, of in sums.items():
        r = found[name]
        assert (r["count"], r["elements"], r["total_ns"]) == (of["count"], of["elements"], of["host_ns"]), name
        assert r["device_timed"] == r["count"]
        resolution = 1000 * r["count"]  # three pairs of events
        assert of["within"] - resolution <= r["device_ns"] <= of["around"] + resolution, name
    # Each log has the times of its own step.
    logged = [figures for steps in all_ranks for step in steps for figures in step.values() if figures["said"]]
    assert len(logged) > 20
    for figures in logged:
        within, around = figures["device_ms"]
        resolution = 0.001 * figures["count"][0] + 0.005  # as it is printed
        assert within - resolution <= float(figures["said"]) <= around + resolution, figures
    text = next(filter(None, told(done, "logged")))
    for name in ("forward_all_gather", "backward_fetch_wait"):
        assert f"{name}: count = " in text
    assert "\ntime (ms) | " in text

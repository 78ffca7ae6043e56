"""Runs the call sites of the profilers that we descend from, as they are, on the classes of tprof.py."""

import collections
import importlib.util
import json
import re
import statistics

import pytest
from lib.build import REPO
from lib.tool import summary_of
from test_user_python import speaks

PAGE = (REPO / "interpose/user/README.md").read_text()
spec = importlib.util.spec_from_file_location("tprof_py", REPO / "interpose/user/tprof.py")
tprof_py = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tprof_py)
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


START = "import functools, io, json, logging\nimport tprof\nfrom tprof import *\n\n"


def ranges(folder):
    report = summary_of(folder / "traces", "--by", "range")
    return {r["name"]: r for r in report["ranges"]}


def test_the_example_of_the_page_runs(tmp_path):
    code = BLOCKS[0].replace("...", "pass")
    said = speaks(tmp_path, f"batches = [1, 2]\n{code}\nload(1)\n")
    assert said.split()[0] == "0"
    found = ranges(tmp_path)
    assert (found["attention"]["count"], found["attention"]["elements"]) == (2, 8192)
    assert {"step 0", "step 1", "forward", "__main__.load"} <= set(found)


def test_every_rank_of_simple_profiler_begins_anew(tmp_path):
    said = speaks(tmp_path, START + """
log = io.StringIO()
logging.basicConfig(level=logging.INFO, stream=log, format="%(message)s")
with SimpleProfiler.profile(SimpleProfiler.Type.H2D):
    try:
        with SimpleProfiler.profile(SimpleProfiler.Type.H2D):
            pass
    except AssertionError as error:
        print(error)
SimpleProfiler.dump_and_reset("of one that is not the first")
print(log.getvalue(), dict(SimpleProfiler.results), SimpleProfiler.profiling)
""", RANK="1", WORLD_SIZE="2")
    assert said.splitlines() == ["H2D is already being profiled", " {} set()"]


TIMED = """
manager, whole = TimeManager(), TimeManager()
@timer_wrap()
def act():
    with timer("wait"):
        return 1
@timer_wrap("learning")
def learn():
    raise ValueError
def turn():
    assert act() == 1
    try:
        learn()
    except ValueError:
        pass
turn()
with whole.enable_timer():
    turn()
    with manager.enable_timer():
        for _ in range(7):
            turn()
    turn()
with manager.timer("alone"):
    pass
result = manager.gather(dst=0)
act_ = result["act"]
numbers, edges = act_.histogram(bins=4)
assert len(edges) == 5 and edges[0] == min(act_) and edges[-1] == max(act_)
result.save("saved.json")
print(json.dumps({
    "names": [len(result), sorted(result), "act" in result, "nothing" in result],
    "counts": [len(act_), act_.count(), len(act_[5:]), len(act_.get_rank(0)), len(act_.get_rank(1)), act_.rank_count()],
    "sums": [act_.sum(), act_.mean(), act_.std(), act_[5:].mean(), act_[-1]],
    "numbers": numbers,
    "samples": list(act_.ns),
    "masked": list(act_[[i % 2 == 0 for i in range(len(act_))]].ns),
    "whole": {name: list(s.ns) for name, s in whole.results().items()},
    "loaded": ProfiledTime.load("saved.json") == tprof.load("saved.json") == result and dict(tprof.load("saved.json").items()) == dict(result.items()),
}))
"""


def test_tprofilers_timers(tmp_path):
    said = json.loads(speaks(tmp_path, f"import os; os.chdir({str(tmp_path)!r})\n" + START + TIMED))
    ns = said["samples"]
    assert said["names"] == [4, ["act", "alone", "learning", "wait"], True, False]
    assert said["counts"] == [7, 7, 2, 7, 0, 1] and sum(said["numbers"]) == 7
    assert said["sums"] == pytest.approx(
        [sum(ns) / 1e9, statistics.mean(ns) / 1e9, statistics.pstdev(ns) / 1e9, statistics.mean(ns[5:]) / 1e9, ns[-1] / 1e9]
    )
    assert said["masked"] == ns[::2] and said["loaded"] is True
    found = ranges(tmp_path)
    assert {name: (r["count"], r["errors"]) for name, r in found.items()} == {
        "act": (10, 0), "wait": (10, 0), "learning": (10, 10), "alone": (1, 0),
    }  # fmt: skip
    assert all(r["total_ns"] >= r["max_ns"] >= r["mean_ns"] >= r["min_ns"] > 0 for r in found.values())
    # The trace has the same, and besides two turns that nobody listened to.
    loaded = tprof_py.load(tmp_path / "traces")
    assert isinstance(loaded, collections.abc.Mapping) and sorted(loaded) == ["act", "alone", "learning", "wait"]
    assert list(loaded["act"].ns[1:]) == said["whole"]["act"] and list(loaded["act"].ns[2:9]) == ns
    assert loaded["act"].complete and loaded["act"].sum() * 1e9 == pytest.approx(found["act"]["total_ns"])
    assert set(loaded["wait"].ranks) == {0}


def test_results_of_more_than_have_lines_are_exact(tmp_path):
    speaks(tmp_path, START + """
for i in range(20_000):
    with tprof.scope("often"):
        pass
""", TPROF_QUOTA="100K")
    found = ranges(tmp_path)["often"]
    often = tprof_py.load(tmp_path / "traces")["often"]
    assert not often.complete and len(often) == 20_000 - found["without_line"] < 20_000
    assert (often.count(), round(often.sum() * 1e9)) == (20_000, found["total_ns"])
    numbers, edges = often.histogram()
    assert sum(numbers) == 20_000 and len(edges) == len(numbers) + 1
    assert edges[0] <= min(often) and max(often) < edges[-1]


def test_composers_marker(tmp_path):
    speaks(tmp_path, START + """
marker = Marker("load", actions=["active"], record_instant_on_start=True, categories=["data", "io"])
marker.start()
marker.instant()
marker.finish()
with marker:
    marker.counter({"hits": 3, "misses": 1})
assert marker(lambda: 5)() == 5
both = Marker("both", record_instant_on_start=True, record_instant_on_finish=True)
both.start()
both.finish()
""")
    rows = summary_of(tmp_path / "traces", "--by", "range")["ranges"]
    assert {(r["name"], r["mark"]): (r["count"], r["category"]) for r in rows} == {
        ("load", False): (3, "data,io"), ("load", True): (4, "data,io"), ("both", False): (1, None), ("both", True): (2, None),
    }  # fmt: skip


def test_the_decorator_takes_a_schedule(tmp_path):
    train = """
@profiler(enabled=%s, active=2, wait=1, repeat=1)
def train(steps):
    for _ in range(steps):
        with scope("work"):
            pass
        step_profiler()
    return steps
assert train(6) == 6
"""
    speaks(tmp_path / "on", START + train % True)
    assert [s["step"] for s in steps(tmp_path / "on")] == [1, 2, 3, 4, 5, 6, 7]
    (work,) = [r for r in summary_of(tmp_path / "on/traces", "--by", "range")["ranges"] if r["name"] == "work"]
    assert (work["count"], work["without_line"]) == (6, 4)
    # The launch line has the last word, and what is not enabled leaves the function as it is.
    speaks(tmp_path / "set", START + train % True, TPROF_SCHEDULE="active=3,repeat=1")
    (work,) = [r for r in summary_of(tmp_path / "set/traces", "--by", "range")["ranges"] if r["name"] == "work"]
    assert work["without_line"] == 3
    speaks(tmp_path / "off", START + train.replace("step_profiler()", "pass") % False)
    assert steps(tmp_path / "off") == []
    refused = "try:\n    profiler(activ=3)\nexcept TypeError as error:\n    print(error)\n"
    assert "expected the words of a schedule, got activ" in speaks(tmp_path / "refused", START + refused)


def test_a_schedule_that_comes_behind_a_scope_changes_nothing(tmp_path):
    speaks(tmp_path, START + """
with scope("work"):
    pass
@profiler(active=1, wait=1, repeat=1)
def train(steps):
    for _ in range(steps):
        with scope("work"):
            pass
        step_profiler()
    return steps
assert train(4) == 4
""")
    (work,) = [r for r in summary_of(tmp_path / "traces", "--by", "range")["ranges"] if r["name"] == "work"]
    assert (work["count"], work["without_line"]) == (5, 0)


def steps(folder):
    (file,) = (folder / "traces").glob("*.json")
    lines = [json.loads(line.rstrip(",")) for line in file.read_text().splitlines() if '"tprof_step"' in line]
    return [line["args"] for line in lines]

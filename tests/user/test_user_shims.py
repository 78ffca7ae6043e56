"""The call sites of the profilers that we descend from, on the classes that our page shows."""

import json
import re

from lib.build import REPO
from lib.tool import summary_of
from test_user_python import speaks

PAGE = (REPO / "interpose/user/README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def block(defined):
    (found,) = [code for code in BLOCKS if re.search(rf"^(class|def) {defined}\b", code, re.M)]
    return f"import functools, io, json, logging\nimport tprof\n\n{found}\n"


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


def test_fsdps_simple_profiler(tmp_path):
    said = speaks(tmp_path, block("SimpleProfiler") + """
import enum
class Type(str, enum.Enum):
    ALL = "all"
    RESHARDING = "resharding"
log = io.StringIO()
logging.basicConfig(level=logging.INFO, stream=log, format="%(message)s")
SimpleProfiler.reset()
with SimpleProfiler.profile(Type.ALL):
    with SimpleProfiler.profile(Type.RESHARDING):
        with SimpleProfiler.profile("preprocessing"):
            pass
    with SimpleProfiler.profile("preprocessing"):
        pass
SimpleProfiler.dump_and_reset("FSDP model load_state_dict profiling: ")
print(log.getvalue(), end="")
""")
    line = said.removeprefix("FSDP model load_state_dict profiling: ")
    assert line != said and said.count("\n") == 1
    counts = {name: t["count"] for name, t in json.loads(line).items() if "total_ns" in t}
    assert counts == {"all": 1, "resharding": 1, "preprocessing": 2}
    assert {name: r["count"] for name, r in ranges(tmp_path).items()} == counts


def test_deepspeeds_partitioned_parameter_profiler(tmp_path):
    said = speaks(tmp_path, block("PartitionedParameterProfiler") + """
log = io.StringIO()
logging.basicConfig(level=logging.INFO, stream=log, format="%(message)s")
p = PartitionedParameterProfiler(None)
for numel in (100, 20):
    p.start_event("forward_fetch_submit")
    p.start_event("forward_all_gather")
    p.stop_event("forward_all_gather", 4 * numel)
    p.stop_event("forward_fetch_submit", numel)
p.count_event("forward_prefetch_submit", 7)
p.log_events()
p.reset_events()
try:
    p.stop_event("never began", 1)
except tprof.TprofError:
    print("refused")
print(log.getvalue(), end="")
p.log_events()
""")
    assert sorted(said.splitlines()) == [
        "forward_all_gather: count = 2, numel = 480",
        "forward_fetch_submit: count = 2, numel = 120",
        "forward_prefetch_submit: count = 1, numel = 7",
        "refused",
    ]
    found = ranges(tmp_path)
    assert (found["forward_all_gather"]["count"], found["forward_all_gather"]["elements"]) == (2, 480)


def test_tprofilers_timers(tmp_path):
    speaks(tmp_path, block("timer_wrap") + """
@timer_wrap()
def act():
    with timer("wait"):
        return 1
@timer_wrap("learning")
def learn():
    raise ValueError
for _ in range(3):
    assert act() == 1
    try:
        learn()
    except ValueError:
        pass
""")
    found = ranges(tmp_path)
    assert {name: (r["count"], r["errors"]) for name, r in found.items()} == {
        "act": (3, 0), "wait": (3, 0), "learning": (3, 3),
    }  # fmt: skip
    assert all(r["total_ns"] >= r["max_ns"] >= r["mean_ns"] >= r["min_ns"] > 0 for r in found.values())


def test_composers_marker(tmp_path):
    speaks(tmp_path, block("Marker") + """
marker = Marker("dataloader", categories=["data", "io"])
marker.start()
marker.instant()
marker.finish()
with marker:
    marker.counter({"hits": 3, "misses": 1})
assert marker(lambda: 5)() == 5
""")
    rows = summary_of(tmp_path / "traces", "--by", "range")["ranges"]
    assert {(r["name"], r["mark"]): (r["count"], r["category"]) for r in rows} == {
        ("dataloader", False): (3, "data,io"), ("dataloader", True): (1, "data,io"),
    }  # fmt: skip


def test_the_decorator_with_its_step_function(tmp_path):
    speaks(tmp_path, block("step_profiler") + """
@profiler
def train(steps):
    for _ in range(steps):
        step_profiler()
    return steps
assert train(4) == 4
""")
    assert [s["step"] for s in steps(tmp_path)] == [1, 2, 3, 4, 5]


def steps(folder):
    (file,) = (folder / "traces").glob("*.json")
    lines = [json.loads(line.rstrip(",")) for line in file.read_text().splitlines() if '"tprof_step"' in line]
    return [line["args"] for line in lines]

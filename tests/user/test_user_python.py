"""Tests what Python programs tell through tprof.py, with each interpreter that is here."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from lib.build import REPO, STANDIN
from lib.contract import not_as_the_contract_says
from lib.launch import environment, start
from lib.pythons import interpreters
from lib.rankfile import lines_of
from lib.runs import header_of
from lib.tool import merged, summary_of, tprof

PYTHONS = {version: python for version, python in interpreters().items() if int(version.split(".")[1]) >= 8}
FILE = REPO / "interpose/user/tprof.py"


def speaks(folder, program, python=sys.executable, libraries=None, **variables):
    folder.mkdir(exist_ok=True)
    shutil.copy(FILE, folder / "tprof.py")  # as a copied file
    (folder / "program.py").write_text(program)
    ours = {"RANK": "0", "WORLD_SIZE": "1"}
    done = start([python, folder / "program.py"], folder, libraries=libraries, **(ours | variables))
    assert (done.code, done.stderr) == (0, ""), done
    return done.stdout


def lines(folder):
    found = merged(folder / "traces", folder / "merged.json")
    assert not_as_the_contract_says(lines_of(folder / "merged.json")) == []
    return found


def ranges(folder):
    return {r["name"]: r for r in summary_of(folder / "traces", "--by", "range")["ranges"]}


EVERYTHING = """
import asyncio, io, json, logging, sys, threading, time
import tprof

def raises(what, *words):
    try:
        what(*words)
    except tprof.TprofError:
        return True
    return False

def refuses(what):
    try:
        what()
    except ValueError as error:
        return isinstance(error, tprof.BadArgument) and "expected" in str(error)
    return False

def late():
    with tprof.scope("late") as s:
        s.elements = -1

with tprof.scope("outer", categories=["io", "checkpoint"], elements=5):
    with tprof.scope("outer") as inner:
        inner.elements, inner.bytes = 7, 28
try:
    with tprof.scope("left"):
        raise KeyError("x")
except KeyError:
    pass

@tprof.traced
def named_by_itself(): return 1

class Loader:
    @tprof.traced
    def batch(self): return 2
    @tprof.traced("as I say", categories="io")
    def other(self): return 3
    @tprof.traced
    async def later(self):
        await asyncio.sleep(0)
        return 4

assert (named_by_itself(), Loader().batch(), Loader().other()) == (1, 2, 3)

async def both():
    async def one(name):
        async with tprof.scope(name):
            await asyncio.sleep(0)
    await asyncio.gather(one("task 1"), one("task 2"), Loader().later())
asyncio.run(both())

number = tprof.start("moves", elements=2)
worker = threading.Thread(target=tprof.end, args=(number,), kwargs={"elements": 3})
worker.start()
worker.join()

errors = [raises(tprof.pop), raises(tprof.pop, "outer"), raises(tprof.end, number), raises(tprof.phase, "asleep"),
          raises(tprof.counter, "too many", {str(i): i for i in range(9)})]
for i in range(3):
    tprof.step()
    for phase in ("load", "forward", "backward", "optimizer"):
        tprof.phase(phase)
    tprof.phase(None)
tprof.end_step()
with tprof.step(10):
    pass
tprof.counter("queue", {"full": 3, "empty": 5})
tprof.counter("alone", 1.5)
tprof.instant("checkpoint written", categories=["io"])
before = time.time_ns() - 100_000
tprof.push("as told", time_ns=before)
tprof.pop(time_ns=before + 4000)

log = io.StringIO()
logger = logging.getLogger("mine")
logger.setLevel(logging.INFO)
logger.addHandler(logging.StreamHandler(log))
totals = tprof.totals()
bad = [refuses(lambda: tprof.scope("")), refuses(lambda: tprof.scope(5)), refuses(lambda: tprof.scope("x", elements=-1)),
       refuses(lambda: tprof.scope("x", bytes=1.5)), refuses(lambda: tprof.push("")), refuses(lambda: tprof.pop("")),
       refuses(lambda: tprof.pop(elements=2**64)), refuses(lambda: tprof.start("x", elements=-1)),
       refuses(lambda: tprof.instant(None)), refuses(lambda: tprof.counter("", 1)), refuses(late)]
tprof.dump_and_reset("after all: ", logger)
print(json.dumps({"enabled": tprof.enabled(), "rank": tprof.rank(), "errors": errors, "bad": bad, "flush": tprof.flush(60),
                  "totals": totals, "after": tprof.totals(), "log": log.getvalue()}))
"""


BUCKETS = (*re.findall(r"^  X\((\w+), ", (REPO / "interpose/format/buckets.h").read_text(), re.M), "ALL")
COUNTS = ("calls", "count", "elements", "bytes", "host_ns", "device_ns", "device_timed", "failed")
NOTHING = {bucket: dict.fromkeys(COUNTS, 0) for bucket in BUCKETS} | {"scopes": {}}


def with_calls(totals):
    return {name: sums for name, sums in totals.items() if name in ("ALL", "scopes") or sums["calls"]}


def test_without_the_preload_nothing_happens(tmp_path):
    said = json.loads(speaks(tmp_path, EVERYTHING, preload=False))
    assert said == {"enabled": False, "rank": None, "errors": [False] * 5, "bad": [True] * 11, "flush": True, "totals": NOTHING, "after": NOTHING, "log": ""}
    assert not (tmp_path / "traces").exists()


@pytest.mark.parametrize("version", PYTHONS)
def test_everything_that_it_can_say_is_in_the_trace(version, tmp_path):
    said = json.loads(speaks(tmp_path, EVERYTHING, PYTHONS[version]))
    assert (said["enabled"], said["rank"], said["errors"], said["flush"]) == (True, 0, [True] * 5, True)
    assert said["bad"] == [True] * 11
    totals = {name: (t["count"], t["elements"]) for name, t in said["totals"]["scopes"].items()}
    assert totals["outer"] == (2, 12) and totals["moves"] == (1, 5) and totals["left"] == (1, 0)
    assert said["log"].startswith('after all: {"') and said["log"].count("\n") == 1
    logged = json.loads(said["log"].removeprefix("after all: "))
    late = logged["scopes"].pop("late")  # recorded, and only its elements refused
    assert (late["count"], late["errors"]) == (1, 1) and logged == with_calls(said["totals"])
    assert {**said["after"], "scopes": {}} == NOTHING
    assert {t["count"] for t in said["after"]["scopes"].values()} == {0}

    found = ranges(tmp_path)
    module = "__main__."
    counts = {name: r["count"] for name, r in found.items()}
    assert counts == {
        "outer": 1, "left": 1, "as I say": 1, "task 1": 1, "task 2": 1, "moves": 1, "as told": 1,
        f"{module}named_by_itself": 1, f"{module}Loader.batch": 1, f"{module}Loader.later": 1,
        "load": 3, "forward": 3, "backward": 3, "optimizer": 3, "checkpoint written": 1,
        "step 1": 1, "step 2": 1, "step 3": 1, "step 10": 1, "late": 1,
    }  # fmt: skip
    assert found["moves"]["elements"] == 5 and found["left"]["errors"] == 1
    assert found["as told"]["total_ns"] == 4000

    everything = lines(tmp_path)
    args = [line["args"] for line in everything if line["name"] == "outer"]
    assert args == [  # an inner one ends first
        {"domain": "tprof", "elements": 7, "bytes": 28},
        {"domain": "tprof", "category": "io,checkpoint", "elements": 5},
    ]
    (left,) = [line["args"] for line in everything if line["name"] == "left"]
    assert left["error"] == "KeyError"
    assert {line["name"]: line["args"] for line in everything if line.get("cat") == "COUNTER"} == {
        "queue": {"full": 3, "empty": 5}, "alone": {"alone": 1.5},
    }  # fmt: skip
    steps = [line["args"]["step"] for line in everything if line["name"] == "tprof_step"]
    assert steps == [1, 2, 3, 10]


def test_scopes_named_like_buckets_keep_their_own_time(tmp_path):
    """The program makes such calls, too: a copy, which counts in H2D and ALL."""
    said = json.loads(speaks(tmp_path, """
import ctypes, json, tprof
ctypes.CDLL("libcudart.so.13", ctypes.RTLD_GLOBAL)
copy = ctypes.CDLL(None).cudaMemcpy
memory = ctypes.create_string_buffer(64)
device = ctypes.c_void_p()
ctypes.CDLL(None).cudaMalloc(ctypes.byref(device), ctypes.c_size_t(64))
for name in ("H2D", "ALL", "H2D", "scopes", "calls"):
    with tprof.scope(name, elements=2):
        copy(device, memory, ctypes.c_size_t(64), 1)
print(json.dumps(tprof.totals()))
""", libraries=STANDIN))
    assert (said["H2D"]["calls"], said["H2D"]["bytes"]) == (5, 320)
    assert said["ALL"]["calls"] == 5 and set(said) == {*BUCKETS, "scopes"} and said["D2H"]["calls"] == 0
    counts = {name: (t["count"], t["elements"]) for name, t in said["scopes"].items()}
    assert counts == {"H2D": (2, 4), "ALL": (1, 2), "scopes": (1, 2), "calls": (1, 2)}
    assert all(t["total_ns"] > 0 for t in said["scopes"].values())


def test_totals_have_only_what_is_not_within_a_pause(tmp_path):
    said = json.loads(speaks(tmp_path, """
import json, tprof
def work(n):
    for _ in range(n):
        with tprof.scope("work", elements=1):
            pass
work(3)
tprof.pause()
work(100)
during = tprof.totals()["scopes"]["work"]["count"]
tprof.resume()
work(5)
with tprof.pause():
    work(1000)
work(7)
before = tprof.totals()["scopes"]["work"]
tprof.pause()
work(20)
tprof.reset()
work(30)
paused = tprof.totals()["scopes"]["work"]["count"]
tprof.resume()
work(2)
print(json.dumps([during, before["count"], before["elements"], paused, tprof.totals()["scopes"]["work"]["count"]]))
"""))
    assert said == [3, 15, 15, 0, 2]
    assert ranges(tmp_path)["work"]["count"] == 3 + 100 + 5 + 1000 + 7 + 20 + 30 + 2  # the trace has all


def test_merged_events_say_after_how_many_resets_they_were(tmp_path):
    speaks(tmp_path, """
import tprof
for epoch in range(3):
    for _ in range(epoch + 1):
        with tprof.scope(f"in {epoch}"):
            pass
    tprof.reset()
with tprof.scope("in 3"):
    pass
""")
    events = merged(tmp_path / "traces", tmp_path / "positions.json", "--positions")
    assert not_as_the_contract_says(lines_of(tmp_path / "positions.json")) == []
    scopes = [(e["name"], e["args"]["epoch"]) for e in events if e.get("cat") == "NVTX" and e["ph"] == "X"]
    assert scopes == [("in 0", 0)] + 2 * [("in 1", 1)] + 3 * [("in 2", 2)] + [("in 3", 3)]
    plain = merged(tmp_path / "traces", tmp_path / "plain.json")
    assert [e for e in plain if "epoch" in e.get("args", {}) and e["name"] == "in 0"] == []


def test_the_clock_of_totals_does_not_jump(tmp_path):
    said = json.loads(speaks(tmp_path, """
import json, time
import tprof
jumping = iter(range(10**18, 0, -10**15))
time.time_ns = time.time = lambda: next(jumping)  # a clock that is set back with every look
began = time.perf_counter_ns()
with tprof.scope("outer"):
    tprof.push("inner")
    tprof.pop("inner")
    tprof.end(tprof.start("apart"))
took = time.perf_counter_ns() - began
print(json.dumps([took, {name: t["total_ns"] for name, t in tprof.totals()["scopes"].items()}]))
"""))
    took, times = said
    assert 0 < times["inner"] < times["outer"] <= took and 0 < times["apart"] < times["outer"]
    assert {name: r["total_ns"] for name, r in ranges(tmp_path).items()} == times


CALLED = """
import json, sys, tprof
def work():
    with tprof.scope("work", elements=3):
        pass
work()
calls = []
sys.setprofile(lambda frame, event, what: calls.append(event))
work()
sys.setprofile(None)
import io, logging
log = io.StringIO()
logging.basicConfig(level=logging.INFO, stream=log)
tprof.dump_and_reset("said: ")
print(json.dumps([calls, log.getvalue(), tprof.totals(), tprof.rank()]))
"""


def test_switched_off_a_scope_does_what_it_does_without_the_library(tmp_path):
    """It makes the same calls of Python and of C, none of which is the library's; and nothing is logged."""
    off = json.loads(speaks(tmp_path / "off", CALLED, TPROF_DISABLE="1"))
    without = json.loads(speaks(tmp_path / "without", CALLED, preload=False))
    assert off[:3] == without[:3] and off[1:3] == ["", NOTHING]
    assert off[3] == 0  # the rank that the launcher gave is known all the same
    assert len(json.loads(speaks(tmp_path / "on", CALLED))[0]) > len(off[0])


def test_a_reset_from_outside_is_one_of_scopes_too(tmp_path):
    program = """
import json, sys, tprof
for _ in range(4):
    with tprof.scope("work"):
        pass
print("ready", flush=True)
sys.stdin.readline()
for _ in range(2):
    with tprof.scope("work"):
        pass
print(json.dumps(tprof.totals()["scopes"]["work"]), flush=True)
"""
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "tally").mkdir()
    env = environment(tmp_path, libraries=None, PYTHONPATH=str(FILE.parent), RANK="0", WORLD_SIZE="1")
    command = [sys.executable, tmp_path / "program.py"]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "ready\n"
        header_of(tmp_path / "traces")  # is written by another thread
        assert tprof("ctl", tmp_path / "traces", "reset").returncode == 0
        said, _ = job.communicate("go on\n")
    assert json.loads(said)["count"] == 2
    assert ranges(tmp_path)["work"]["count"] == 6


def test_a_process_without_a_rank_has_no_number_in_the_table(tmp_path):
    speaks(tmp_path, "import tprof\nwith tprof.scope('work'):\n    pass\n", RANK=None, WORLD_SIZE=None)
    assert ranges(tmp_path)["work"]["ranks"] == []
    table = tprof("summary", tmp_path / "traces", "--by", "range").stdout
    assert re.search(r"^  work +tprof +- +1 ", table, re.M), table


def test_the_file_has_no_dependency(tmp_path):
    """It is imported isolated, without any installed package."""
    shutil.copy(FILE, tmp_path / "tprof.py")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tprof; print(tprof.enabled())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


OPERATORS = """
import json, torch, tprof
from torch.profiler import ProfilerActivity, profile
a, b = torch.randn(32, 64), torch.randn(64, 128)
conv = torch.nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=1, groups=2)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True, acc_events=True) as p:
    for _ in range(3):
        a @ b
    torch.addmm(torch.randn(128), a, b)
    torch.bmm(torch.randn(4, 5, 6), torch.randn(4, 6, 7))
    torch.baddbmm(torch.randn(4, 5, 7), torch.randn(4, 5, 6), torch.randn(4, 6, 7))
    conv(torch.randn(2, 4, 16, 16))
    a + a
    a * a
p.export_chrome_trace("trace.json")
print(json.dumps([[k.key, k.input_shapes, k.count, k.flops] for k in p.key_averages(group_by_input_shape=True)]))
"""


def sums(rows):
    """Returns (calls, FLOPs) by name and the shapes of tensors."""
    found = {}
    for name, shapes, calls, flops in rows:
        before = found.get((name, key := str([s for s in shapes if s])), (0, 0))
        found[name, key] = (before[0] + calls, before[1] + flops)
    return found


def test_flops_and_shapes_are_those_of_pytorchs_profiler(tmp_path):
    said = speaks(tmp_path, f"import os; os.chdir({str(tmp_path)!r})\n" + OPERATORS, libraries=STANDIN)
    theirs = sums(json.loads(said.splitlines()[-1]))
    command = [sys.executable, FILE, "operators", tmp_path / "trace.json"]
    code = "import json, sys, tprof; print(json.dumps(tprof.operators(sys.argv[1])))"
    env = os.environ | {"PYTHONPATH": str(FILE.parent)}
    rows = json.loads(subprocess.run([sys.executable, "-c", code, tmp_path / "trace.json"], env=env, capture_output=True, check=True).stdout)
    assert sums([[r["name"], r["shapes"], r["calls"], r["flops"] or 0] for r in rows]) == theirs
    assert sum(flops > 0 for _, flops in theirs.values()) == 7
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "32x64 64x128" in text and f"{sum(f for _, f in theirs.values()):,} FLOPs" in text


STEPS = """
import ctypes, tprof
ctypes.CDLL("libcudart.so.13", ctypes.RTLD_GLOBAL)
copy = ctypes.CDLL(None).cudaMemcpy
memory, device = ctypes.create_string_buffer(64), ctypes.c_void_p()
ctypes.CDLL(None).cudaMalloc(ctypes.byref(device), ctypes.c_size_t(64))
for number in range(1, 9):
    if number == 5:
        tprof.reset()
    with tprof.step(number), tprof.scope(f"in {number}"):
        for _ in range(number):
            copy(device, memory, ctypes.c_size_t(64), 1)
"""


def test_handlers_get_scopes_of_windows_files(tmp_path):
    (tmp_path / "program.py").write_text(STEPS)
    (tmp_path / "tally").mkdir()
    settings = {"TPROF_WINDOW_FILES": "1", "TPROF_SCHEDULE": "wait=1,active=1", "TPROF_EVENTS": "all"}
    env = environment(tmp_path, preload=False, libraries=STANDIN, PYTHONPATH=str(FILE.parent), **settings)
    command = ["--handler", f"cat > {tmp_path / 'got'}", "--", sys.executable, tmp_path / "program.py"]
    done = tprof("run", "--out", tmp_path / "traces", *command, env=env)
    assert done.returncode == 0, done.stderr
    got = [json.loads(line) for line in (tmp_path / "got").read_text().splitlines()]
    scopes = [line["name"] for line in got if line.get("cat") == "NVTX" and line["ph"] == "X"]
    assert scopes == [f"in {n}" for n in (2, 4, 6, 8)]
    copies = [line for line in got if line.get("name") == "cudaMemcpy"]
    assert len(copies) == 2 + 4 + 6 + 8
    # The copies of a window come before the word that it is whole.
    whole = [i for i, line in enumerate(got) if line.get("handler") == "window"]
    assert len(whole) == 4 and [sum(line.get("name") == "cudaMemcpy" for line in got[:i]) for i in whole] == [2, 6, 12, 20]

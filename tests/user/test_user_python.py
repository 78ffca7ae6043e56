"""What Python programs tell by tprof.py, each interpreter that there is here for itself."""

import json
import shutil
import subprocess
import sys

import pytest
from lib.build import REPO
from lib.launch import start
from lib.pythons import interpreters
from lib.rankfile import lines_of
from lib.tool import merged, not_as_the_contract_says, summary_of

PYTHONS = {version: python for version, python in interpreters().items() if int(version.split(".")[1]) >= 8}
FILE = REPO / "interpose/user/tprof.py"


def speaks(folder, program, python=sys.executable, **variables):
    folder.mkdir(exist_ok=True)
    shutil.copy(FILE, folder / "tprof.py")  # as a copied file
    (folder / "program.py").write_text(program)
    ours = {"RANK": "0", "WORLD_SIZE": "1"}
    done = start([python, folder / "program.py"], folder, libraries=None, **(ours | variables))
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
tprof.dump_and_reset("after all: ", logger)
print(json.dumps({"enabled": tprof.enabled(), "rank": tprof.rank(), "errors": errors, "flush": tprof.flush(60),
                  "totals": totals, "after": tprof.totals(), "log": log.getvalue()}))
"""


def test_without_the_preload_nothing_happens(tmp_path):
    said = json.loads(speaks(tmp_path, EVERYTHING, preload=False))
    assert said == {"enabled": False, "rank": None, "errors": [False] * 5, "flush": True, "totals": {}, "after": {}, "log": ""}
    assert not (tmp_path / "traces").exists()


@pytest.mark.parametrize("version", PYTHONS)
def test_everything_that_it_can_say_is_in_the_trace(version, tmp_path):
    said = json.loads(speaks(tmp_path, EVERYTHING, PYTHONS[version]))
    assert (said["enabled"], said["rank"], said["errors"], said["flush"]) == (True, 0, [True] * 5, True)
    totals = {name: (t["count"], t.get("elements")) for name, t in said["totals"].items() if "calls" not in t}
    assert totals["outer"] == (2, 12) and totals["moves"] == (1, 5) and totals["left"] == (1, 0)
    assert said["log"].startswith('after all: {"') and said["log"].count("\n") == 1
    assert json.loads(said["log"].removeprefix("after all: ")) == said["totals"]
    assert set(said["after"]) == {"ALL"}

    found = ranges(tmp_path)
    module = "__main__."
    counts = {name: r["count"] for name, r in found.items()}
    assert counts == {
        "outer": 1, "left": 1, "as I say": 1, "task 1": 1, "task 2": 1, "moves": 1, "as told": 1,
        f"{module}named_by_itself": 1, f"{module}Loader.batch": 1, f"{module}Loader.later": 1,
        "load": 3, "forward": 3, "backward": 3, "optimizer": 3, "checkpoint written": 1,
        "step 1": 1, "step 2": 1, "step 3": 1, "step 10": 1,
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


def test_the_file_has_no_dependency(tmp_path):
    """Isolated, without any installed package."""
    shutil.copy(FILE, tmp_path / "tprof.py")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tprof; print(tprof.enabled())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

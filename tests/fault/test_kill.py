"""SIGKILL at random moments: what the trace says lies between the counts of the program and of the stand-in.

For every thread and kind of call, at whatever instruction the process died:

    program entered >= traced + unfinished >= stand-in entered
    stand-in returned >= traced >= program returned

The delay before the kill is random; no verdict depends on how long it was.
"""

import collections
import dataclasses
import json
import pathlib
import random
import signal
import subprocess
import time

import pytest
from lib import counted, runs, tally
from lib.build import INSTANT, STANDIN
from lib.rankfile import parsed
from lib.thorough import ALL
from lib.tool import merged, told

# Each is at another instruction, and `make test-all` makes more of them.
KILLS = 100 if ALL else 50


@dataclasses.dataclass
class Remains:
    """The remains of a killed client, read three ways that share nothing."""

    counts: dict[int, dict[str, tuple[int, int, int]]]  # by thread id
    threads: dict[int, dict]  # by thread id, from ring_dump
    lines: list[dict]  # rank file and replayed ring
    traces: pathlib.Path
    tally: dict | None


def kill_a_storm(
    folder: pathlib.Path, delay_s: float, libraries: str, pause_us: int = 0, **env: str
) -> Remains:
    storm = runs.client("storm", pause_us)
    with runs.standing(folder, storm, libraries=libraries, **env) as process:
        runs.until(lambda: list((folder / "traces").glob("*.json")))  # a thread of its own makes it
        time.sleep(delay_s)
        process.kill()
        _, complaints = process.communicate()
    assert (process.returncode, complaints) == (-signal.SIGKILL, "")

    traces = folder / "traces"
    (ring,) = traces.glob(".*.ring")
    (rank_file,) = traces.glob("*.json")
    dump = subprocess.run(
        [runs.RING_DUMP, ring, rank_file, folder / "lines"],
        capture_output=True,
        text=True,
        check=True,
    )
    (counts,) = (folder / "counts").iterdir()
    tallies = tally.read_all(folder / "tally")
    return Remains(
        counts=dict(counted.read(counts)),
        threads={t["tid"]: t for t in json.loads(dump.stdout)["threads"]},
        lines=parsed(folder / "lines"),
        traces=traces,
        tally=tallies[0] if tallies else None,
    )


def key(call: dict) -> tuple[str, str, str]:
    return call["bucket"], call["function"], call["dtype"]


def traced(thread: dict) -> collections.Counter:
    """Returns (bucket, function, dtype) -> calls that the ledger holds, accepted or refused."""
    return collections.Counter({key(r): r["calls"] + r["failed"] for r in thread["rows"]})


def check_against_the_program(remains: Remains) -> None:
    for tid, kinds in remains.counts.items():
        thread = remains.threads[tid]
        rows = {key(row): row for row in thread["rows"]}
        seen, still_open = traced(thread), collections.Counter(map(key, thread["open"]))
        for kind, (entered, returned, failed) in kinds.items():
            at = counted.key(kind)
            row = rows.get(at, {"calls": 0, "failed": 0, "count": 0})
            assert entered >= seen[at] + still_open[at], (tid, kind)
            assert row["calls"] >= returned and row["failed"] >= failed, (tid, kind)
            refused = kind in counted.REFUSED
            assert (row["calls"] if refused else row["failed"]) == 0, (tid, kind)
            # A row is never half written.
            assert row["count"] == row["calls"] * counted.KINDS[kind][2], (tid, kind)
        assert set(rows) <= set(map(counted.key, kinds)), "a call that nobody made"


def check_against_the_tally(remains: Remains) -> None:
    tally = collections.defaultdict(lambda: (0, 0))
    for row in remains.tally["rows"]:
        at = (row["thread"], row["function"], row["dtype"], row["kind"])
        ended = row["returned"] + row["failed"]
        tally[at] = tuple(map(sum, zip(tally[at], (row["entered"], ended))))
    for tid, kinds in remains.counts.items():
        thread = remains.threads[tid]
        seen, still_open = traced(thread), collections.Counter(map(key, thread["open"]))
        for kind in kinds:
            bucket, function, dtype = at = counted.key(kind)
            direction = bucket if dtype == "byte" else None
            entered, ended = tally[tid, function, dtype, direction]
            assert ended >= seen[at], (tid, kind)
            assert seen[at] + still_open[at] >= entered, (tid, kind)


def check_lines(remains: Remains) -> None:
    """Each call that the ledger holds has its one line, or is one of the thread's drops."""
    calls = [line for line in remains.lines if line["ph"] in "XB" and line["cat"] != "COMM"]
    runs.assert_no_line_twice(calls)

    lines = collections.defaultdict(collections.Counter)
    for call in calls:
        if call["ph"] == "X":
            lines[call["tid"]][call["cat"], call["name"], call["args"].get("dtype", "byte")] += 1
    for tid, thread in remains.threads.items():
        expected = traced(thread)
        del expected[counted.key("d2d")]
        missing = expected - lines[tid]
        assert not lines[tid] - expected, f"lines of calls that thread {tid} did not make"
        assert missing.total() == thread["dropped"], f"thread {tid} misses {missing}"

    check_seq(calls, gapless=all(t["dropped"] == 0 for t in remains.threads.values()))


def check_seq(calls: list[dict], gapless: bool) -> None:
    """Leaves out refused calls: the library never issued them, and their number is given again."""
    seqs = collections.defaultdict(list)
    for call in calls:
        args = call["args"]
        if "comm" not in args or "result" in args:
            continue
        refused = (call["cat"], call["name"], args["dtype"]) in map(counted.key, counted.REFUSED)
        stream = call["name"] if call["cat"] == "P2P" else "collectives"
        if not refused:
            seqs[args["comm"], stream].append(args["seq"])
    assert seqs
    for at, numbers in seqs.items():
        assert len(set(numbers)) == len(numbers), f"a seq twice on {at}"
        if gapless:
            assert sorted(numbers) == list(range(len(numbers))), f"a gap in seq of {at}"


def check_tool(remains: Remains, folder: pathlib.Path) -> None:
    """`tprof` replays the same from rank file and ring."""
    lines = merged(remains.traces, folder / "merged.json")
    events = [(e["tid"], e["name"], e["dur"]) for e in lines if e["ph"] == "X"]
    ours = [(e["tid"], e["name"], e["dur"]) for e in remains.lines if e["ph"] == "X"]
    assert sorted(events) == sorted(ours)

    _, report = told("summary", remains.traces)
    # If no call of NCCL was open, the counts are whole, and the kill is only a note: hosts at work wait in copies.
    still_open = [call["function"] for thread in remains.threads.values() for call in thread["open"]]
    assert report["complete"] == (not any(function.startswith("nccl") for function in still_open))
    calls = collections.Counter()
    for thread in remains.threads.values():
        for row in thread["rows"]:
            calls[row["bucket"]] += row["calls"]
    assert {b: report["buckets"][b]["calls"] for b in calls} == dict(calls)


# Each kill is a case of its own, so that one that fails can be run again alone.
@pytest.mark.parametrize("n", range(KILLS))
def test_kill_on_the_stand_in(n, tmp_path):
    remains = kill_a_storm(tmp_path, random.Random(n).uniform(0, 0.04), STANDIN)
    check_against_the_program(remains)
    check_against_the_tally(remains)
    check_lines(remains)
    if n % 10 == 0:
        check_tool(remains, tmp_path)


# The calls cost nothing, so the ring of the smallest size is full most of the time.
@pytest.mark.parametrize("n", range(KILLS // 5))
def test_kill_with_full_rings(n, tmp_path):
    delay = random.Random(KILLS + n).uniform(0, 0.04)
    remains = kill_a_storm(tmp_path, delay, INSTANT, TPROF_RING="64")
    check_against_the_program(remains)
    check_lines(remains)


# The pauses leave time to the writer, so it is at work nearly always and some writes are cut.
@pytest.mark.parametrize("n", range(KILLS // 10))
def test_kill_while_lines_are_written(n, tmp_path):
    delay = random.Random(2 * KILLS + n).uniform(0, 0.15)
    remains = kill_a_storm(tmp_path, delay, INSTANT, pause_us=500, TPROF_RING="1024")
    check_against_the_program(remains)
    check_lines(remains)
    check_tool(remains, tmp_path)

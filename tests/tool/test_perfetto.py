"""Timelines in Perfetto, by its own importer: it shows every slice and every arrow of ours and of others' traces."""

import collections
import gzip
import itertools
import json
import random

import pytest
from lib import handmade, launch, perfetto
from lib.build import BUILD
from lib.clocks import clock_job
from lib.rankfile import parsed
from lib.timeline import ns
from lib.tool import tprof

STREAM, RANGES, OTHERS = 1 << 23, 1 << 22, 1 << 24


def merge(traces, to, *more):
    done = tprof("merge", traces, "-o", to, *more)
    assert done.returncode == 0, done.stderr
    return parsed(to)


def kineto(folder, to):
    done = tprof("export", folder, "--kineto", "-o", to)
    assert done.returncode == 0, done.stderr
    return {file: json.loads(gzip.decompress(file.read_bytes()))["traceEvents"] for file in to.iterdir()}


def lanes_of(events):
    """Returns lane -> begin, end and line of its slices, as viewers sort them: of two that begin together the longer
    one comes first."""
    lanes = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]), event))
    return {lane: sorted(slices, key=lambda s: (s[0], -s[1])) for lane, slices in lanes.items()}


def left_out(events):
    """Returns the slices that end behind the one of their lane that they begin in: viewers show no such slice."""
    found = []
    for slices in lanes_of(events).values():
        around = []
        for begin, end, event in slices:
            while around and around[-1] <= begin:
                around.pop()
            if around and end > around[-1]:
                found.append(event)
            else:
                around.append(end)
    return found


def assert_all_is_shown(file, events, tmp_path):
    """`events`: those of the file. Perfetto counts what it leaves out; we count what it has."""
    assert left_out(events) == []
    arrows = collections.Counter(e["cat"] + e["name"] + str(e["id"]) for e in events if e["ph"] in "stf")
    assert all(isinstance(e["id"], int) and 0 <= e["id"] < 1 << 53 for e in events if e["ph"] in "stf")
    if why := perfetto.why_not():
        pytest.skip(why)
    plain = tmp_path / "plain.json"
    plain.write_bytes(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes())
    complaints, [[slices]], flows = perfetto.ask(plain, perfetto.COMPLAINTS, perfetto.SLICES, perfetto.FLOWS)
    assert (complaints, slices) == ([], sum(e["ph"] in "XBbi" for e in events))
    assert len(flows) == sum(ends - 1 for ends in arrows.values())
    return flows


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Runs a job whose devices were timed by events: one that follows another on its stream may begin before that
    one ended, by nanoseconds."""
    run = launch.start(
        [BUILD / "native_trainer", "--ranks", 4, "--steps", 10], tmp_path_factory.mktemp("measured"),
        STANDIN_LATENCY_US="100", TPROF_TIMING="events", TPROF_STEP="call:cudaMemcpyAsync@4",
    )  # fmt: skip
    assert run.code == 0, run.stderr
    return run


def test_of_a_job_that_was_measured_every_slice_and_arrow_is_shown(measured, tmp_path):
    events = merge(measured.traces, tmp_path / "merged.json")
    assert tprof("merge", measured.traces, "-o", tmp_path / "merged.json.gz").returncode == 0
    assert gzip.decompress((tmp_path / "merged.json.gz").read_bytes()) == (tmp_path / "merged.json").read_bytes()
    flows = assert_all_is_shown(tmp_path / "merged.json", events, tmp_path)
    calls = sum(row["calls"] for file in measured.ranks() for row in file.ledger_rows())
    timed = sum(row["device_timed"] for file in measured.ranks() for row in file.ledger_rows())
    shown = [e for e in events if e["ph"] == "X"]
    assert sum("bytes" in e["args"] for e in shown if "args" in e) == calls
    assert sum(e["cat"] == "DEVICE" for e in shown) == timed
    collectives = sum(of["collectives"] for file in measured.ranks() for of in file.signatures().values())
    assert len(flows) == timed + collectives * 3 // 4
    assert all(a.split()[0] == b.split()[0] for a, b in flows), flows


def test_of_that_job_kineto_traces_are_whole(measured, tmp_path):
    files = kineto(measured.traces, tmp_path / "out")
    assert len(files) == 4 and all(left_out(events) == [] for events in files.values())
    assert_all_is_shown(*next(iter(files.items())), tmp_path)


def test_clocks_that_drift_make_no_slices_overlap(tmp_path):
    """Hosts' clocks run apart by up to 20 us in a second, and calls follow each other without a gap."""
    clock_job(tmp_path / "run", 3, 2, 200)
    for rank, file in enumerate(sorted((tmp_path / "run").iterdir())):
        range_ = {"cat": "NVTX", "name": "r", "ph": "X", "pid": rank, "tid": RANGES + 7, "dur": 90000, "args": {}}
        handmade.insert(file, *(range_ | {"ts": 90000 * n + 1} for n in range(50)), before='"ph":"X"')
    events = merge(tmp_path / "run", tmp_path / "m.json")
    assert "aligned" in tprof("merge", tmp_path / "run", "-o", tmp_path / "again.json").stderr
    assert_all_is_shown(tmp_path / "m.json", events, tmp_path)


def device_slice(begin, dur, lane=STREAM + 1):
    args = {"comm": 1, "seq": 0, "stream": lane - STREAM, "call_tid": 7, "queued": 0.5}
    return {"cat": "DEVICE", "name": "ncclAllGather", "ph": "X", "pid": 0, "tid": lane, "ts": begin / 1000, "dur": dur / 1000, "args": args}


def range_(begin, dur, lane=RANGES + 7):
    return {"cat": "NVTX", "name": "r", "ph": "X", "pid": 0, "tid": lane, "ts": begin / 1000, "dur": dur / 1000, "args": {}}


def call(begin, dur, lane=7):
    return handmade.event(tid=lane, ts=begin / 1000, dur=dur / 1000)


def busy(begin, dur, lane=3 << 22):
    return {"cat": "BUSY", "name": "compute", "ph": "X", "pid": 0, "tid": lane, "ts": begin / 1000, "dur": dur / 1000, "args": {"device": 0}}


LANES = {"device": device_slice, "range": range_, "call": call, "busy": busy}
SHAPES = {
    "by a nanosecond": [(1000, 501), (1500, 300), (1799, 10)],
    "by much": [(1000, 5000), (2000, 6000), (3000, 9000)],  # streams of threads that share a number
    "over several": [(1000, 900), (1100, 100), (1150, 100), (1240, 10_000)],
    "begin together": [(1000, 10), (1000, 20), (1000, 20), (1010, 11)],
    "of no length": [(1000, 0), (1000, 1), (1001, 0), (1001, 2), (1002, 5)],
    "out of order": [(3000, 1500), (2000, 1001), (1000, 1500)],
    "any": [(begin, random.Random(begin).choice([0, 1, 40, 700])) for begin in random.Random(5).choices(range(9000), k=300)],
    "far from the beginning": [(10**15 + 1000 * n, 1000 + n % 3) for n in range(50)],  # 11.6 days
}  # fmt: skip


def test_slices_that_overlap_are_cut_and_say_by_how_much(tmp_path):
    """Each rank has slices of one shape in one lane."""
    (tmp_path / "job").mkdir()
    cases = list(enumerate(itertools.product(LANES, SHAPES)))
    made = {rank: [LANES[lane](begin, dur) for begin, dur in SHAPES[shape]] for rank, (lane, shape) in cases}
    for rank, slices in made.items():
        head = [handmade.header(rank=rank, world_size=len(cases), local_rank=rank, pid=rank), handmade.comm(id=f"{rank:x}")]
        lines = [line | {"pid": rank} for line in [*head, *slices, handmade.ledger(), handmade.footer()]]
        (tmp_path / f"job/rank-{rank:05}.json").write_text(handmade.array(*lines))
    events = merge(tmp_path / "job", tmp_path / "m.json")
    for rank, (_, shape) in cases:
        cut = [e for e in events if e["pid"] == rank and e["ph"] == "X" and e["cat"] not in ("LANE",)]
        told = sorted((ns(e["ts"]), ns(e["dur"]) + ns(e["args"].get("cut", 0))) for e in cut)
        assert told == sorted(SHAPES[shape]) and all(e["args"].get("cut", 1) > 0 for e in cut)
        # The longest that does not overlap: nothing is cut of what nests or follows.
        assert bool(left_out(made[rank])) == any("cut" in e["args"] for e in cut)
    # The merged trace is read with what was measured, so that it is cut again.
    again = merge(tmp_path / "m.json", tmp_path / "again.json")
    assert [e for e in again if e["ph"] == "X"] == [e for e in events if e["ph"] == "X"]
    assert_all_is_shown(tmp_path / "m.json", events, tmp_path)


def others(events, rank, base):
    return json.dumps({"distributedInfo": {"rank": rank}, "baseTimeNanoseconds": base, "traceEvents": events})


def test_slices_and_arrows_of_pytorchs_traces_stay(measured, tmp_path):
    """Their ids mean something within a file, a category and a name only; CUPTI's kernels overlap, too."""
    begin = {file.rank: file.header["base_time_ns"] for file in measured.ranks()}
    for rank, base in begin.items():
        events = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "ts": 0, "args": {"name": "python"}}]
        for n, (cat, name) in itertools.product(range(20), [("ac2g", "ac2g"), ("fwdbwd", "fwdbwd")]):
            ts = 100 * n + (0 if cat == "ac2g" else 50)
            at = {"pid": 1, "tid": 2, "ts": ts + 0.127}
            to = {"pid": 0, "tid": 7, "ts": ts + 20.254}
            events += [
                {"ph": "X", "cat": "cpu_op", "name": f"op {name}", "dur": 3.001, **at},
                {"ph": "X", "cat": "kernel", "name": f"kernel {name}", "dur": 60.001, **to},
                {"ph": "s", "id": [n, str(n), f"0x{n:x}", f"any.{n}"][rank], "cat": cat, "name": name, **at},
                {"ph": "f", "id": [n, str(n), f"0x{n:x}", f"any.{n}"][rank], "cat": cat, "name": name, "bp": "e", **to},
            ]
        (tmp_path / f"pytorch-{rank}.json").write_text(others(events, rank, base))
    alone = merge(measured.traces, tmp_path / "alone.json")
    both = merge(measured.traces, tmp_path / "both.json", "--with", tmp_path / "pytorch-*.json")
    flows = assert_all_is_shown(tmp_path / "both.json", both, tmp_path)
    theirs = [e for e in both if e.get("cat", "").startswith("OTHER,") and e["ph"] == "X"]
    assert len(theirs) == 4 * 80
    assert {ns(e["dur"]) + ns(e.get("args", {}).get("cut", 0)) for e in theirs} == {3001, 60001}
    count = collections.Counter(flow for flow in map(tuple, flows) if flow[0].startswith("op"))
    assert count == {("op ac2g", "kernel ac2g"): 80, ("op fwdbwd", "kernel fwdbwd"): 80}
    assert len(flows) - 160 == sum(e["ph"] in "tf" for e in alone)
    ids = collections.defaultdict(set)
    for e in both:
        if e["ph"] in "stf":
            ids[e["id"]].add((e["cat"], e["name"], e["pid"] if e["cat"] != "FLOW" else None))
    assert all(len(of) == 1 for of in ids.values())

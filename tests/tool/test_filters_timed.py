"""Filters on calls that were timed on the device, in marked steps: what they leave is counted from the rank files."""

import bisect
import collections
import csv
import dataclasses

import pytest
from generator import causes, rank_files
from lib.filtered import tell_steps
from lib.rankfile import parsed
from lib.tool import summary_of, tprof

STEPS = 5


@dataclasses.dataclass(frozen=True)
class Call:
    rank: int
    op: str
    bucket: str
    comm: str | None  # id
    bytes: int
    step: int | None
    device_ns: int | None


def calls_of(file):
    lines = parsed(file)
    ids = {line["args"]["comm"]: line["args"]["id"] for line in lines if line["name"] == "tprof_comm"}
    ranges = [x for x in lines if x.get("cat") == "NVTX" and x["name"].startswith("step ")]
    steps = sorted((x["ts"], int(x["name"].split()[1])) for x in ranges)
    begins = [begin for begin, _ in steps]
    times = {
        (round(1000 * (x["ts"] - x["args"]["queued"])), x["args"]["call_tid"]): round(1000 * x["dur"])
        for x in lines
        if x.get("cat") == "DEVICE"
    }
    for x in lines:
        if x["ph"] != "X" or x["cat"] in ("DEVICE", "NVTX", "BUSY", "LANE"):
            continue
        at = bisect.bisect_right(begins, x["ts"]) - 1
        yield Call(x["pid"], x["name"], x["cat"], ids.get(x["args"].get("comm")), x["args"]["bytes"],
                   steps[at][1] if at >= 0 else None, times.get((round(1000 * x["ts"]), x["tid"])))  # fmt: skip


@pytest.fixture(scope="module", params=[("hsdp", False), ("zero3_offload", False), ("hsdp", True)], ids=str)
def made(request, tmp_path_factory):
    """A job whose steps are ranges, or whose library also told the counts of each step."""
    job, told = request.param
    folder = tmp_path_factory.mktemp(job) / "job"
    rank_files.write(causes.case(job, 8, None, 3, STEPS), folder, 3)
    if told:
        for file in folder.glob("rank-*.json"):
            begins = (x["ts"] for x in parsed(file) if x.get("cat") == "NVTX" and x["name"].startswith("step "))
            tell_steps(file, sorted(begins), first=0)
    calls = [call for file in sorted(folder.glob("rank-*.json")) for call in calls_of(file)]
    assert any(call.device_ns for call in calls) and {call.step for call in calls} >= set(range(STEPS))
    return folder, calls


def filters(calls):
    """Yields options, and what passes. One border is within a class of sizes, with calls on both sides of it."""
    large = max(c.bytes for c in calls if c.comm)
    middle = large - large // 5 + 1
    comm = collections.Counter(c.comm for c in calls if c.comm).most_common()[-1][0]
    yield ["--ops", "ncclReduceScatter,h2d"], lambda c: c.op == "ncclReduceScatter" or c.bucket == "H2D"
    yield ["--sizes", f"{middle}-"], lambda c: c.bytes >= middle
    yield ["--steps", "1,3-"], lambda c: c.step in (1, 3, 4)
    yield ["--comm", comm, "--steps", "2-3"], lambda c: c.comm == comm and c.step in (2, 3)
    batch = min(c.bytes for c in calls if c.bucket == "H2D")
    yield (["--ops", "H2D", "--sizes", f"-{batch}", "--ranks", "0-5", "--steps", "0-2"],
           lambda c: c.bucket == "H2D" and c.bytes <= batch and c.rank <= 5 and c.step in (0, 1, 2))  # fmt: skip


def test_device_times_are_of_the_chosen_calls(made):
    folder, calls = made
    for options, passes in filters(calls):
        left = [c for c in calls if passes(c)]
        report = summary_of(folder, *options)["buckets"]
        for bucket in {c.bucket for c in calls}:
            mine = [c for c in left if c.bucket == bucket]
            timed = [c.device_ns for c in mine if c.device_ns is not None]
            assert report[bucket]["calls"] == len(mine), (options, bucket)
            assert report[bucket]["device_timed"] == len(timed), (options, bucket)
            assert (report[bucket]["device_ns"] or 0) == sum(timed), (options, bucket)


def test_merge_has_the_device_times_of_its_calls(made, tmp_path):
    folder, calls = made
    for n, (options, passes) in enumerate(filters(calls)):
        done = tprof("merge", folder, "-o", tmp_path / f"{n}.json", *options)
        assert done.returncode == 0, done.stderr
        lines = parsed(tmp_path / f"{n}.json")
        left = [c for c in calls if passes(c)]
        device = [line for line in lines if line.get("cat") == "DEVICE"]
        timed = [c.device_ns for c in left if c.device_ns is not None]
        assert sorted(round(1000 * (line["dur"] + line["args"].get("cut", 0))) for line in device) == sorted(timed)
        no_calls = ("DEVICE", "NVTX", "BUSY", "LANE")
        made_calls = [line for line in lines if line["ph"] == "X" and line["cat"] not in no_calls]
        assert len(made_calls) == len(left)
        steps = {c.step for c in left} if "--steps" in options else set(range(STEPS))
        ranges = {line["name"] for line in lines if line.get("cat") == "NVTX" and line["name"].startswith("step ")}
        assert ranges == {f"step {step}" for step in steps}


def test_export_has_the_device_times_of_its_calls(made, tmp_path):
    folder, calls = made
    for n, (options, passes) in enumerate(filters(calls)):
        assert tprof("export", folder, "--csv", tmp_path / str(n), *options).returncode == 0
        rows = list(csv.DictReader((tmp_path / str(n) / "calls.csv").open()))
        left = [c for c in calls if passes(c)]
        told_of = collections.Counter((int(r["rank"]), r["function"], r["device_ns"]) for r in rows)
        times = [(c.rank, c.op, "" if c.device_ns is None else str(c.device_ns)) for c in left]
        assert told_of == collections.Counter(times)
        steps = {int(r["step"]) for r in csv.DictReader((tmp_path / str(n) / "steps.csv").open())}
        assert steps == ({c.step for c in left} if "--steps" in options else set(range(STEPS)))


def test_kineto_traces_have_the_chosen_calls(made, tmp_path):
    folder, calls = made
    options, passes = next(filters(calls))
    timed = collections.Counter(c.rank for c in calls if passes(c) and c.device_ns is not None)
    done = tprof("export", folder, "--kineto", "-o", tmp_path / "k", *options)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "k").iterdir())) == len(timed)

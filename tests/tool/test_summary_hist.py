"""tprof summary --hist, and the spread of operations: compares both with the lines, as read here."""

import bisect
import collections
import dataclasses
import json
import statistics

import pytest
from lib import jobs, loops
from lib.clocks import clock_job, nanoseconds
from lib.rankfile import lines_of
from lib.tool import generate, summary_of, tprof
from test_summary_ranges import LANE, pushed, with_lines

RANKS = 3


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Returns a folder, and (bucket, function) -> rank -> durations."""
    folder = tmp_path_factory.mktemp("job")
    generate(folder, RANKS, 700)
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for rank, file in enumerate(sorted(folder.iterdir())):
        for line in lines_of(file):
            event = json.loads(line, parse_float=str)
            if event["ph"] == "X":
                times[event["cat"], event["name"]][rank].append(nanoseconds(event["dur"]))
    return folder, times


def check(found, times, bins):
    """Compares a histogram with `times`, which are durations by rank."""
    everything = sorted(ns for rank in times.values() for ns in rank)
    edges = found["edges_ns"]
    assert edges == sorted(set(edges)) and len(edges) == bins + 1
    assert (edges[0], edges[-1]) == (everything[0], everything[-1])
    assert (found["count"], found["rank_count"]) == (len(everything), len(times))
    for part, expected in ((found, everything), *zip(found["ranks"], times.values(), strict=True)):
        assert part["count"] == len(expected)
        assert (part["min_ns"], part["max_ns"]) == (min(expected), max(expected))
        assert part["mean_ns"] == pytest.approx(statistics.fmean(expected), abs=1)
        assert part["std_ns"] == pytest.approx(statistics.pstdev(expected), abs=1)
        in_bins = collections.Counter(min(bisect.bisect(edges, ns), bins) - 1 for ns in expected)
        assert part["bins"] == [in_bins[i] for i in range(bins)]


@pytest.mark.parametrize("name, bins", [("ncclAllGather", None), ("cudaMemcpyAsync", 7), ("H2D", 50)])
def test_of_a_function_and_of_a_bucket(job, name, bins):
    folder, times = job
    of_name = collections.defaultdict(list)
    for key, ranks in times.items():
        for rank, durations in ranks.items() if name in key else ():
            of_name[rank] += durations
    found = summary_of(folder, "--hist", name, *(["--bins", bins] if bins else []))["hist"]
    assert (found["kind"], found["from"]) == ("bucket" if name == "H2D" else "function", "host")
    assert found["scale"] == "linear"  # from 2 to 18 microseconds
    check(found, of_name, bins or 20)


def test_a_rank_without_calls_is_not_counted_and_ranks_share_the_bins(job, tmp_path):
    folder = jobs.healthy(4, 40, 3).write(tmp_path / "job")
    file = folder / "rank-00002.json"
    lines = [line for line in lines_of(file) if '"name":"ncclAllReduce"' not in line or '"ph":"X"' not in line]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    found = summary_of(folder, "--hist", "ncclAllReduce")["hist"]
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1, 3] and found["rank_count"] == 3
    assert found["edges_ns"] == [5000, 5000] and found["bins"] == [found["count"]]
    text = tprof("summary", job[0], "--hist", "ncclReduceScatter", "--per-rank", "--bins", 4).stdout
    tables = [part.split("\n") for part in text.split("below")[1:]]
    rows = [[line.split()[:4] for line in table[1:5]] for table in tables]
    assert len(rows) == 1 + RANKS and all(row == rows[0] for row in rows)
    assert "Durations of ncclReduceScatter, time on the host" in text


def test_of_device_times_and_log_scaled_where_the_spread_is_wide(tmp_path):
    truth = clock_job(tmp_path / "run", 2, 2, 100, sleeps=[(3, 50, 10**9)])
    took = {
        rank: [nanoseconds(json.loads(line, parse_float=str)["dur"]) for line in lines_of(file) if '"DEVICE"' in line]
        for rank, file in enumerate(sorted((tmp_path / "run").iterdir()))
    }
    assert len(truth["left"]) == 100 == len(took[0])
    found = summary_of(tmp_path / "run", "--hist", "ALLREDUCE")["hist"]
    assert (found["from"], found["looked"], found["scale"]) == ("device", 400, "log")
    check(found, took, 20)
    ratios = [b / a for a, b in zip(found["edges_ns"], found["edges_ns"][1:])]
    assert max(ratios) / min(ratios) < 1.01
    # A merged trace has the same calls, with clocks a little corrected.
    assert tprof("merge", tmp_path / "run", "-o", tmp_path / "m.json").returncode == 0
    merged = summary_of(tmp_path / "m.json", "--hist", "ALLREDUCE")["hist"]
    assert [rank["count"] for rank in merged["ranks"]] == [100] * 4
    assert merged["mean_ns"] == pytest.approx(found["mean_ns"], rel=1e-4)


def test_calls_of_a_group_have_their_share_of_its_time(tmp_path):
    loop = loops.Loop([[0]])
    for _ in range(4):
        loop.gather(1000)
    (rank,) = loop.job.ranks
    for at, calls, took in ((2, 3, 300_000), (3, 1, 50_000)):
        rank.ops[at] = dataclasses.replace(rank.ops[at], device=(50_000, took), timed_calls=calls)
    loop.job.write(tmp_path / "job")
    found = summary_of(tmp_path / "job", "--hist", "ncclAllGather")["hist"]
    assert (found["from"], found["looked"], found["shared"], found["count"]) == ("device", 4, 3, 4)
    assert (found["min_ns"], found["max_ns"], found["mean_ns"]) == (50_000, 100_000, 87_500)
    (op,) = summary_of(tmp_path / "job", "--by", "op")["ops"]
    assert op["times"]["std_ns"] == pytest.approx(statistics.pstdev([100_000] * 3 + [50_000]), abs=1)


def test_of_the_ranges_of_a_name(tmp_path):
    started = {"cat": "NVTX", "name": "a", "pid": 0, "tid": LANE + 7, "id2": {"local": "3"}, "args": {}}
    lines = [pushed("a", 1, 1), pushed("b", 3, 1), pushed("a", 5, 3), started | {"ph": "b", "ts": 10}]
    lines += [started | {"ph": "e", "ts": 15}, started | {"ph": "i", "s": "t", "ts": 20}]
    found = summary_of(with_lines(tmp_path, lines), "--hist", "a", "--bins", "2")["hist"]
    assert (found["kind"], found["from"], found["looked"]) == ("range", "host", None)
    assert (found["edges_ns"], found["bins"]) == ([1000, 3000, 5000], [1, 2])
    assert "Durations of the NVTX ranges a\n" in tprof("summary", tmp_path, "--hist", "a").stdout


def test_calls_that_have_no_line_are_said(tmp_path):
    job = jobs.healthy(2, 20, 1)
    for rank in job.ranks:
        rank.lines = False
    done = tprof("summary", job.write(tmp_path / "job"), "--hist", "H2D")
    assert done.returncode == 2 and "calls of H2D, but none has a line" in done.stderr


def test_operations_have_their_spread_where_lines_are_read(job):
    folder, times = job
    assert all("times" not in op for op in summary_of(folder)["ops"])
    found = summary_of(folder, "--by", "op")["ops"]
    by_name = collections.defaultdict(list)
    for op in found:
        by_name[op["bucket"], op["name"]].append(op)
        assert op["times"]["count"] == op["calls"] and op["times"]["rank_count"] == RANKS
        # The ledger's own sum and these are of the same calls.
        assert op["times"]["mean_ns"] == pytest.approx(op["host_ns"] / op["calls"], abs=1)
    (copy,) = by_name["D2H", "cudaMemcpy"]
    expected = [ns for rank in times["D2H", "cudaMemcpy"].values() for ns in rank]
    assert copy["times"]["std_ns"] == pytest.approx(statistics.pstdev(expected), abs=1)
    assert (copy["times"]["min_ns"], copy["times"]["max_ns"]) == (min(expected), max(expected))
    text = tprof("summary", folder, "--by", "op").stdout
    assert "Their durations" in text and max(map(len, text.splitlines())) < 160

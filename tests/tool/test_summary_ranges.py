"""tprof summary --by range: compares what NVTX ranges held with a generator that knows it call by call."""

import collections
import json
import os
import random
import statistics

import pytest
from lib import jobs
from lib.rankfile import lines_of
from lib.tool import generate, summary_of, tprof

LANE = 1 << 22
BUCKETS = {"ALLGATHER": "ncclAllGather", "H2D": "cudaMemcpyAsync"}


class Program:
    """Threads that push ranges, call, and pop them, in the order in which their lines are written."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now = 10
        self.lines = []
        self.times = collections.defaultdict(list)  # name -> durations
        self.held = collections.defaultdict(collections.Counter)  # (name, bucket) -> calls, bytes

    def tick(self):
        self.now += self.random.randint(1, 900)
        return self.now

    def call(self, tid, open_names):
        bucket = self.random.choice(sorted(BUCKETS))
        size = 4 * self.random.randint(0, 1000)
        ts = self.tick()
        args = {"bytes": size, "device": 0}
        if bucket == "ALLGATHER":
            args = {"comm": 1, "seq": 10**6 + ts, "count": size // 8, "dtype": "float32", "bytes": size}
        self.lines.append(
            {"name": BUCKETS[bucket], "cat": bucket, "ph": "X", "pid": 0, "tid": tid}
            | {"ts": ts / 1000, "dur": 0.001, "args": args}
        )
        for name in open_names:
            self.held[name, bucket].update(calls=1, bytes=size)

    def thread(self, tid, depth=0, names=()):
        for _ in range(self.random.randint(1, 12)):
            if depth == 4 or self.random.random() < 0.6:
                self.call(tid, names)
                continue
            name = f"layer {self.random.randint(0, 5)} of {depth}"
            start = self.tick()
            self.thread(tid, depth + 1, (*names, name))
            duration = self.tick() - start
            self.times[name].append(duration)
            self.lines.append(
                {"cat": "NVTX", "ph": "X", "name": name, "pid": 0, "tid": LANE + tid}
                | {"ts": start / 1000, "dur": duration / 1000, "args": {}}
            )


def with_lines(folder, lines):
    """Makes a folder with a healthy rank file, whose only events are these lines."""
    generate(folder, 1, 2)
    (file,) = folder.iterdir()
    old = lines_of(file)
    first = next(i for i, line in enumerate(old) if '"cat":' in line)
    old = [line for line in old if '"cat":' not in line]
    text = [json.dumps(line, separators=(",", ":")) for line in lines]
    file.write_text("[\n" + ",\n".join(old[:first] + text + old[first:]) + "\n]\n")
    return folder


def ranges_of(folder):
    return {r["name"]: r for r in summary_of(folder, "--by", "range")["ranges"]}


@pytest.mark.parametrize("seed", range(4))
def test_counts_times_and_calls_inside_are_those_of_the_program(tmp_path, seed):
    program = Program(seed)
    for round_ in range(40):
        program.thread(7 + round_ % 3)
    found = ranges_of(with_lines(tmp_path, program.lines))
    assert set(found) == set(program.times) and len(found) > 5
    for name, times in program.times.items():
        r = found[name]
        assert (r["count"], r["total_ns"]) == (len(times), sum(times))
        assert (r["min_ns"], r["max_ns"], r["open"]) == (min(times), max(times), 0)
        assert r["mean_ns"] == pytest.approx(statistics.fmean(times), abs=1)
        assert r["std_ns"] == pytest.approx(statistics.pstdev(times), abs=1)
        assert r["ranks"] == [0] and r["rank_count"] == 1 and r["domain"] is None and r["inside_exact"] is True
        expected = {b: dict(program.held[name, b]) for b in BUCKETS if program.held[name, b]}
        assert r["inside"] == expected, name


def test_columns_without_room_are_named_with_what_they_are_of(tmp_path):
    program = Program(1)
    for _ in range(40):
        program.thread(7)
    folder = with_lines(tmp_path, program.lines)
    said = tprof("summary", folder, "--by", "range", env={**os.environ, "COLUMNS": "40"}).stdout
    assert "no room for mean, std, min, max, ALLGATHER bytes, H2D bytes: use a wider terminal" in said


def pushed(name, start, duration, **args):
    return {"cat": "NVTX", "ph": "X", "name": name, "pid": 0, "tid": LANE + 7, "ts": start, "dur": duration, "args": args}


def copy(ts, tid=7, **more):
    args = {"bytes": 8, "device": 0} | more
    return {"name": "cudaMemcpyAsync", "cat": "H2D", "ph": "X", "pid": 0, "tid": tid, "ts": ts, "dur": 0.001, "args": args}


def test_calls_of_other_threads_and_calls_that_were_refused_are_not_inside(tmp_path):
    lines = [copy(1), copy(1.5, tid=8), copy(2, result=1), copy(3, captured=True), pushed("a", 0.5, 5)]
    assert ranges_of(with_lines(tmp_path, lines))["a"]["inside"] == {"H2D": {"calls": 1, "bytes": 8}}


def test_ranges_of_two_domains_are_two(tmp_path):
    lines = [pushed("a", 1, 1), pushed("a", 3, 1, domain="mine")]
    result = tprof("summary", with_lines(tmp_path, lines), "--by", "range", "--json")
    assert {(r["name"], r["domain"]) for r in json.loads(result.stdout)["ranges"]} == {("a", None), ("a", "mine")}


def test_payloads_of_64_bits_keep_their_digits_and_null_is_none(tmp_path):
    payloads = [2**63 - 1, None, 2**63, -(2**63)]
    lines = [pushed("a", 1 + i, 1, payload=payload) for i, payload in enumerate(payloads)]
    lines += [pushed("b", 9, 1, payload=1.5), pushed("b", 11, 1, payload=2)]
    found = ranges_of(with_lines(tmp_path, lines))
    assert found["a"]["payload"] == {
        "count": 3, "sum": 2**63 - 1, "mean": (2**63 - 1) / 3, "min": -(2**63), "max": 2**63,
    }  # fmt: skip
    assert found["b"]["payload"] == {"count": 2, "sum": 3.5, "mean": 1.75, "min": 1.5, "max": 2}


def test_a_category_named_by_a_number_is_not_the_one_of_that_number(tmp_path):
    lines = [pushed("a", 1, 1, category=7), pushed("a", 3, 1, category="7"), pushed("a", 5, 1)]
    result = tprof("summary", with_lines(tmp_path, lines), "--by", "range", "--json")
    assert [r["category"] for r in json.loads(result.stdout)["ranges"]] == [None, "7", 7]


@pytest.mark.parametrize("wrong", [{"category": 0}, {"category": 2**32}, {"payload": "1"}, {"color": 1}])
def test_attributes_that_no_program_can_give_are_refused(tmp_path, wrong):
    done = tprof("summary", with_lines(tmp_path, [pushed("a", 1, 1, **wrong)]), "--by", "range")
    assert done.returncode == 2 and next(iter(wrong)) in done.stderr and len(done.stderr.splitlines()) == 1


def test_started_ranges_have_times_and_nothing_is_said_of_their_calls(tmp_path):
    line = {"cat": "NVTX", "name": "free", "pid": 0, "tid": LANE + 7, "id2": {"local": "3"}}
    lines = [copy(2), line | {"ph": "b", "ts": 1, "args": {}}, line | {"ph": "e", "ts": 3, "args": {}}]
    r = ranges_of(with_lines(tmp_path, lines))["free"]
    assert (r["count"], r["total_ns"], r["inside"], r["inside_exact"]) == (1, 2000, None, False)


def test_open_ranges_have_calls_and_no_time_and_marks_are_counted(tmp_path):
    line = {"cat": "NVTX", "name": "step", "pid": 0, "tid": LANE + 7, "args": {}}
    lines = [copy(2), line | {"ph": "i", "s": "t", "name": "tick", "ts": 3}]
    lines.append(line | {"ph": "B", "ts": 1, "args": {"unfinished": True}})
    folder = with_lines(tmp_path, lines)
    found = ranges_of(folder)
    assert (found["step"]["count"], found["step"]["open"], found["step"]["total_ns"]) == (0, 1, None)
    assert found["step"]["inside"] == {"H2D": {"calls": 1, "bytes": 8}}
    assert (found["tick"]["mark"], found["tick"]["count"], found["tick"]["inside"]) == (True, 1, None)
    text = tprof("summary", folder, "--by", "range").stdout
    assert "tick (mark)" in text and "open: ranges that were open" in text


def test_calls_that_no_range_is_around_are_in_no_range_behind_them(tmp_path):
    lines = [copy(1 + i) for i in range(100_000)]
    r = ranges_of(with_lines(tmp_path / "a", [*lines, copy(200_000), pushed("new", 199_999, 5)]))["new"]
    assert r["inside"]["H2D"]["calls"] == 1 and r["inside_exact"] is True
    lines += [pushed("part", 31.5, 300_000), pushed("all", 0, 300_000)]
    for name, calls in (("all", 100_000), ("part", 100_000 - 31)):
        r = ranges_of(with_lines(tmp_path / name, lines))[name]
        assert r["inside"]["H2D"]["calls"] == calls and r["inside_exact"] is True


def test_a_trace_without_ranges_says_how_they_come(tmp_path):
    jobs.healthy(2, 10, 1).write(tmp_path / "job")
    text = tprof("summary", tmp_path / "job", "--by", "range").stdout
    assert "NVTX ranges\n  none: the program made none" in text and "NVTX_INJECTION64_PATH" in text

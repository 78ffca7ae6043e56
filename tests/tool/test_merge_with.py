"""merge --with: puts traces of other tools on the axis of ours. They are planted, so each of their moments is
known by the wall clock, and so is the error of that clock."""

import gzip
import json

import pytest
from lib.contract import SCHEMA
from lib.rankfile import named, parsed
from lib.tool import generate, summary_of, tprof


@pytest.fixture
def traces(tmp_path):
    generate(tmp_path / "run", 2, 20)
    return tmp_path / "run"


def begin_ns(traces, rank):
    """Returns CLOCK_REALTIME of the rank's ts 0."""
    (header,) = named(parsed(traces / f"rank-{rank:05}.json"), "tprof_header")
    return header["base_time_ns"]


def kineto(rank, base_ns, events, **more):
    """Returns a trace as PyTorch writes it: ts in microseconds after the base, white space, and names of lanes."""
    names = [{"ph": "M", "name": "thread_name", "pid": 77, "tid": 78, "ts": 0, "args": {"name": "thread 78 (python)"}}]
    whole = {
        "schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "traceEvents": [{"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}}, *names, *events],
        "displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns,
    }
    return json.dumps(whole | more, indent=2)


def op(name, ts, pid=77, tid=78, **more):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": 5.25, "args": {"Sequence number": 3}} | more


def merge(traces, output, *with_):
    done = tprof("merge", traces, "-o", output, *(word for file in with_ for word in ("--with", file)))
    assert done.returncode == 0, done.stderr
    lines = parsed(output)
    for line in lines:
        SCHEMA.validate(line)
    return lines, done


def others(lines):
    return [line for line in lines if line.get("cat", "").startswith("OTHER,") and line["ph"] != "M"]


def realtime_ns(lines, line):
    base = {header["base_time_ns"] for header in named(lines, "tprof_header")}
    (base,) = base
    micros, _, thousandths = f"{line['ts']:.3f}".partition(".")
    return base + int(micros) * 1000 + int(thousandths)


def test_events_are_on_the_lanes_of_their_rank_at_their_time(traces, tmp_path):
    begin = {rank: begin_ns(traces, rank) for rank in (0, 1)}
    for rank in (0, 1):
        base = begin[rank] - 3_000_000_000
        text = kineto(rank, base, [op("aten::mm", 3_000_001.125), op("gemm", 3_000_002, 0, 7, cat="kernel")])
        with gzip.open(tmp_path / f"host_{rank}.pt.trace.json.gz", "wt") as file:
            file.write(text)
    lines, done = merge(traces, tmp_path / "out.json", tmp_path / "*.pt.trace.json.gz")
    assert "2 processes and 2 traces of others" in done.stderr
    found = {(line["pid"], line["name"]): realtime_ns(lines, line) for line in others(lines)}
    assert found == {
        (rank, name): begin[rank] + ns for rank in (0, 1) for name, ns in (("aten::mm", 1_125), ("gemm", 2_000))
    }
    named_lanes = [line for line in lines if line.get("cat") == "OTHER," and line["name"] == "thread_name"]
    lanes = {line["tid"]: line["args"]["name"] for line in named_lanes}
    assert set(lanes.values()) == {"thread 78 (python)"}
    assert len({(line["pid"], line["tid"]) for line in others(lines)}) == 4
    ours = {line["tid"] for line in lines if not line.get("cat", "").startswith("OTHER,")}
    assert not ours & {line["tid"] for line in others(lines)}
    assert others(lines)[0]["args"] == {"Sequence number": 3} and others(lines)[0]["dur"] == 5.25


def test_nothing_of_ours_changes_but_where_the_axis_begins(traces, tmp_path):
    alone, _ = merge(traces, tmp_path / "alone.json")
    early = begin_ns(traces, 0) - 7_000_000
    (tmp_path / "rank0.json").write_text(kineto(0, early, [op("early", 0.001)]))
    both, _ = merge(traces, tmp_path / "both.json", tmp_path / "rank0.json")
    assert others(both)[0]["ts"] == 0 and realtime_ns(both, others(both)[0]) == early + 1
    calls = [line for line in both if line["ph"] == "X" and not line["cat"].startswith("OTHER,")]
    before = [line for line in alone if line["ph"] == "X"]
    assert [realtime_ns(both, line) for line in calls] == [realtime_ns(alone, line) for line in before]
    figures = [summary_of(tmp_path / name) for name in ("alone.json", "both.json")]
    assert figures[0]["buckets"] == figures[1]["buckets"]
    assert tprof("check", tmp_path / "both.json").returncode == tprof("check", tmp_path / "alone.json").returncode
    again, _ = merge(tmp_path / "both.json", tmp_path / "again.json")
    assert others(again) == []


def test_arrows_of_two_files_stay_apart(traces, tmp_path):
    arrow = [op("a", 1), op("a", 1, ph="s", id=5, cat="ac2g"), op("a", 2, ph="f", id=5, cat="ac2g", bp="e")]
    for rank in (0, 1):
        (tmp_path / f"k{rank}.json").write_text(kineto(rank, begin_ns(traces, rank), arrow))
    lines, _ = merge(traces, tmp_path / "out.json", tmp_path / "k0.json", tmp_path / "k1.json")
    ids = {rank: {line["id"] for line in others(lines) if "id" in line and line["pid"] == rank} for rank in (0, 1)}
    assert len(ids[0]) == len(ids[1]) == 1 and ids[0] != ids[1]
    assert all(line["bp"] == "e" for line in others(lines) if line["ph"] == "f")


def test_a_list_of_events_since_1970_is_of_the_rank_in_its_name(traces, tmp_path):
    """The file is as Composer's JSONTraceHandler writes it."""
    at = begin_ns(traces, 1) // 1000 + 50
    (tmp_path / "ep0-ba0-rank1.json").write_text(json.dumps([op("batch", at, 1, 1, ph="B"), op("batch", at + 9, 1, 1, ph="E")]))
    lines, _ = merge(traces, tmp_path / "out.json", tmp_path / "ep0-ba0-rank1.json")
    assert [(line["pid"], line["ph"], realtime_ns(lines, line)) for line in others(lines)] == [
        (1, "B", at * 1000), (1, "E", (at + 9) * 1000)
    ]
    (tmp_path / "ep0-ba0-rank1.json").rename(tmp_path / "batches.json")
    lines, _ = merge(traces, tmp_path / "out.json", f"0={tmp_path / 'batches.json'}")
    assert {line["pid"] for line in others(lines)} == {0}


def test_of_ranks_that_are_left_out_nothing_comes(traces, tmp_path):
    for rank in (0, 1):
        (tmp_path / f"k{rank}.json").write_text(kineto(rank, begin_ns(traces, rank), [op("a", 1)]))
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--ranks", "1", "--with", tmp_path / "k*.json")
    assert done.returncode == 0 and {line["pid"] for line in others(parsed(tmp_path / "out.json"))} == {1}


@pytest.mark.parametrize("text, why", [
    ("{", "Chrome"), ("[]", "no event"), ('{"traceEvents": 3}', "Chrome"), ("hello", "JSON"),
    (json.dumps([op("a", 1)]), "origin of its times"), (json.dumps({"traceEvents": [op("a", "x")]}), "Chrome"),
    (json.dumps([op("a", 2_000_000_000_000_000)]), "its rank"),
])
def test_what_is_no_such_trace_is_refused_in_one_line(traces, tmp_path, text, why):
    (tmp_path / "other.json").write_text(text)
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--with", tmp_path / "other.json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and why in done.stderr and "other.json" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_file_that_is_not_there_is_refused(traces, tmp_path):
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--with", tmp_path / "kineto" / "*.json")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "no such file" in done.stderr


# function -> its name in PyTorch's records, its name in PyTorch's ranges, the argument that has its elements
COLLECTIVES = {
    "ncclAllGather": ("_allgather_base", "_all_gather_base", "Out msg nelems"),
    "ncclReduceScatter": ("_reduce_scatter_base", "_reduce_scatter_base", "In msg nelems"),
    "ncclAllReduce": ("allreduce", "all_reduce", "In msg nelems"),
}
BEFORE, BEHIND = 200, 150  # nanoseconds by which a record begins before our call, and ends after it


def calls(traces, rank):
    """Returns our calls as (name, elements, begin, end), by CLOCK_REALTIME."""
    lines = parsed(traces / f"rank-{rank:05}.json")
    base = begin_ns(traces, rank)
    ranks = {comm["comm"]: comm["nranks"] for comm in named(lines, "tprof_comm")}
    found = []
    for line in lines:
        if line["name"] in COLLECTIVES and line["ph"] == "X":
            args, begin = line["args"], base + round(line["ts"] * 1000)
            times = 1 if line["name"] == "ncclAllReduce" else ranks[args["comm"]]
            found.append((line["name"], args["count"] * times, begin, begin + round(line["dur"] * 1000)))
    return found


def recorded(traces, rank, late, chosen=slice(None), ranges=False, changed=lambda marks: None):
    """Returns a trace that marks our calls, by a clock that is behind by `late` nanoseconds."""
    base = begin_ns(traces, rank) - 9_000_000
    marks = []
    for name, elements, begin, end in calls(traces, rank)[chosen]:
        record, range_name, argument = COLLECTIVES[name]
        said = {} if ranges else {"Collective name": record, argument: elements, "dtype": "Float"}
        at = {"ts": (begin - BEFORE - late - base) / 1000, "dur": (end - begin + BEFORE + BEHIND) / 1000}
        marks.append(op("record_param_comms", args=said, **at))
        if ranges:
            marks.append(op(f"nccl:{range_name}", cat="user_annotation", args={}, **at))
    changed(marks)
    # Events on the device, and those around, mark no call.
    on_device = op("nccl:_all_gather_base", 1, 0, 7, cat="gpu_user_annotation")
    return kineto(rank, base, [on_device, op("c10d::_allgather_base_", 2), *marks])


def clocks(lines):
    return [line["args"] | {"pid": line["pid"]} for line in lines if line.get("name") == "tprof_other"]


def refined(traces, tmp_path, text):
    """Returns what the merged trace says of the clock of one file of rank 1, and its lines."""
    (tmp_path / "rank1.json").write_text(text)
    lines, done = merge(traces, tmp_path / "out.json", tmp_path / "rank1.json")
    (clock,) = clocks(lines)
    assert (clock["file"], clock["pid"]) == ("rank1.json", 1)
    assert f"rank1.json: {clock['clock']}" in done.stderr
    return clock, lines


@pytest.mark.parametrize("late", [3_000_000, -45_000])
@pytest.mark.parametrize("chosen, ranges", [(slice(None), False), (slice(6, 12), False), (slice(7, None), True)])
def test_a_clock_that_is_off_is_put_right_by_the_collectives_that_both_saw(tmp_path, late, chosen, ranges):
    generate(tmp_path / "run", 2, 30)
    traces = tmp_path / "run"
    inside = calls(traces, 1)[chosen]
    clock, lines = refined(traces, tmp_path, recorded(traces, 1, late, chosen, ranges))
    assert clock["fits_ns"] == [late - BEHIND, late + BEFORE]
    assert clock["shift_ns"] == min(clock["fits_ns"], key=abs)
    assert clock["collectives"] == len(inside)
    assert clock["clock"] == f"refined by {len(inside)} collectives, shifted {clock['shift_ns'] / 1000:.3f} us"
    name = "nccl:" if ranges else "record_param_comms"
    on_host = [line for line in others(lines) if line["cat"] != "OTHER,gpu_user_annotation"]
    marks = [line for line in on_host if line["name"].startswith(name)]
    assert len(marks) == len(inside)
    for mark, (_, _, begin, end) in zip(marks, inside):
        at = realtime_ns(lines, mark)
        assert at <= begin and end <= at + round(mark["dur"] * 1000)


def test_a_clock_that_agrees_is_left_as_it_is(traces, tmp_path):
    clock, lines = refined(traces, tmp_path, recorded(traces, 1, 0))
    made = len(calls(traces, 1))
    assert clock["clock"] == f"refined by {made} collectives, shifted 0.000 us" and clock["shift_ns"] == 0
    first = next(line for line in others(lines) if line["name"] == "record_param_comms")
    assert realtime_ns(lines, first) == calls(traces, 1)[0][2] - BEFORE


def test_a_barrier_is_the_all_reduce_that_it_makes(traces, tmp_path):
    def with_barrier(marks):
        inner = next(mark for mark in marks if mark["args"]["Collective name"] == "allreduce")
        around = {"ts": inner["ts"] - 0.05, "dur": inner["dur"] + 0.1}
        marks.append(inner | around | {"args": {"Collective name": "barrier", "In msg nelems": 0}})

    clock, _ = refined(traces, tmp_path, recorded(traces, 1, 800_000, changed=with_barrier))
    assert clock["fits_ns"] == [800_000 - BEHIND, 800_000 + BEFORE] and clock["collectives"] == len(calls(traces, 1))


def test_where_nothing_proves_a_shift_the_wall_clock_stays_and_it_says_so(traces, tmp_path):
    def other_elements(marks):
        marks[4]["args"]["In msg nelems"] = 7

    def one_missing(marks):
        del marks[4]

    def one_elsewhere(marks):
        marks[2]["ts"] += 0.36

    def no_collective(marks):
        marks.clear()

    reasons = {
        other_elements: "to the 12", one_missing: "to the 11", one_elsewhere: "to the 12",
        no_collective: "marks no collective",
    }
    for change, why in reasons.items():
        clock, lines = refined(traces, tmp_path, recorded(traces, 1, 800_000, changed=change))
        assert clock["clock"].startswith("the wall clock: ") and why in clock["clock"], change
        assert set(clock) == {"file", "clock", "pid"}
        mark = next(line for line in others(lines) if line["name"] == "c10d::_allgather_base_")
        assert realtime_ns(lines, mark) == begin_ns(traces, 1) - 9_000_000 + 2000


def test_where_lines_are_missing_a_far_shift_is_not_believed(traces, tmp_path):
    """The other trace may mark different calls, which have no lines."""
    text = recorded(traces, 1, 3_000_000, slice(6, None))
    file = traces / "rank-00001.json"
    lines = file.read_text().split("\n")
    gone = next(i for i, line in enumerate(lines) if "ncclAllGather" in line)
    file.write_text("\n".join(lines[:gone] + lines[gone + 1:]))
    clock, _ = refined(traces, tmp_path, text)
    assert clock["clock"].startswith("the wall clock: ")
    clock, _ = refined(traces, tmp_path, recorded(traces, 1, 0, slice(6, 9)))
    assert clock["shift_ns"] == 0 and clock["collectives"] == 3


def test_a_rank_file_that_is_damaged_does_not_stop_the_others(traces, tmp_path):
    (tmp_path / "rank1.json").write_text(recorded(traces, 1, 0))
    file = traces / "rank-00001.json"
    beginning = '"cat":"ALLGATHER","ph":"X","pid":'
    file.write_text(file.read_text().replace(beginning + "1", beginning + "x", 1))
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--with", tmp_path / "rank1.json")
    assert done.returncode == 1 and {line["pid"] for line in parsed(tmp_path / "out.json")} == {0}


@pytest.mark.parametrize(
    "damage",
    [
        ('"Sequence number": 3', '"Sequence number": tru'),
        ("thread 78 (python)", 'thread\n{"name":"tprof_header"}'),
        ('"baseTimeNanoseconds": ', '"baseTimeNanoseconds": 1e400, "x": '),
        ('"dur": 5.25', '"dur": 4611686018427387'),
    ],
)
def test_what_is_no_json_is_not_copied_into_the_merged_trace(traces, tmp_path, damage):
    whole = kineto(0, begin_ns(traces, 0), [op("aten::mm", 10)])
    assert damage[0] in whole
    (tmp_path / "bad.json").write_text(whole.replace(*damage))
    done = tprof("merge", traces, "--with", f"0={tmp_path / 'bad.json'}", "-o", tmp_path / "out.json")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_categories_and_ids_that_are_no_strings_leave_the_merged_trace_whole(traces, tmp_path):
    at = begin_ns(traces, 0) // 1000 + 50
    (tmp_path / "odd.json").write_text(json.dumps([op("a", at, cat={"b": "c"}, id={"d": ["e"]}), op("f", at, cat=5, id=6)]))
    lines, _ = merge(traces, tmp_path / "out.json", f"0={tmp_path / 'odd.json'}")
    assert {line["name"] for line in others(lines)} == {"a", "f"}

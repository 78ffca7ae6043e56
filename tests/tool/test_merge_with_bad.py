"""merge --with: what is no trace, or of another job, is named by file, line and byte, and stops nothing else; and no
file of others changes what is said of the job."""

import functools
import gzip
import json
import resource

import pytest
from lib.rankfile import parsed
from lib.thorough import some
from lib.tool import generate, tprof
from test_merge_with import begin_ns, kineto, op, others, recorded

HOUR = 3600 * 10**9


@pytest.fixture
def traces(tmp_path):
    generate(tmp_path / "run", 2, 20)
    return tmp_path / "run"


def merge(traces, *with_, **how):
    output = traces.parent / "out.json"
    done = tprof("merge", traces, "-o", output, *(word for file in with_ for word in ("--with", file)), **how)
    return done, parsed(output) if output.exists() else None


def good(traces, rank=0, **more):
    file = traces.parent / f"pytorch-{rank}.json"
    file.write_text(kineto(rank, begin_ns(traces, rank), [op(f"good {rank}", 1)], **more))
    return file


def assert_left_out(traces, bad, *why):
    """Alone it is refused; among others it is left out, and told."""
    done, lines = merge(traces, bad)
    assert (done.returncode, done.stderr.count("\n"), lines) == (2, 1, None), done.stderr
    assert done.stderr.startswith(f"tprof: {bad}: ") and all(word in done.stderr for word in why), done.stderr
    files = [good(traces, rank) for rank in (0, 1)]
    done, lines = merge(traces, files[0], bad, files[1])
    assert done.returncode == 1 and {e["name"] for e in others(lines)} == {"good 0", "good 1"}
    [told] = [line for line in done.stderr.splitlines() if str(bad) in line]
    assert told.startswith("error: ") and told.endswith("; left out") and all(word in told for word in why)
    (traces.parent / "out.json").unlink()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("away", [-40 * 365 * 24 * HOUR, -HOUR, HOUR, 3 * 365 * 24 * HOUR])
@pytest.mark.parametrize("ranges", [False, True])
def test_a_recording_of_another_time_is_left_out(traces, away, ranges):
    bad = traces.parent / "bad.json"
    base = begin_ns(traces, 1)
    text = recorded(traces, 1, 0, ranges=ranges).replace(str(base - 9_000_000), str(base - 9_000_000 + away))
    bad.write_text(text)
    assert_left_out(traces, bad, "not this job's")


def test_a_recording_of_a_rank_that_is_not_here_is_left_out(traces):
    bad = traces.parent / "bad.json"
    bad.write_text(kineto(7, begin_ns(traces, 0), [op("a", 1)]))
    assert_left_out(traces, bad, "rank 7", "not merged")


EVENTS = [op("first", 1), op("second", 2, args={"x": 1}), op("third", 3)]
BROKEN = {
    "NaN": ('"x": 1', '"x": NaN', "NaN", "'NaN' is no JSON"),
    "infinity": ('"x": 1', '"x": -Infinity', "-Infinity", "'-Infinity' is no JSON"),
    "a control character": ('"second"', '"sec\x07ond"', "\x07", "a control character"),
    "a line break in a string": ('"second"', '"sec\nond"', "\nond", "a control character"),
    "no comma": ('"x": 1', '"x": 1 2', "2\n", "expected a comma"),
    "another bracket": ('"x": 1', '"x": 1]', "]", "an unmatched closing bracket"),
    "too deep": ('"x": 1', '"x": ' + "[" * 600, None, "nested too deeply"),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_no_json_is_told_by_line_and_byte(traces, how, packed):
    old, new, at, why = BROKEN[how]
    whole = kineto(0, begin_ns(traces, 0), EVENTS)
    assert whole.count(old) == 1
    text = whole.replace(old, new)
    place = [why]
    if at is not None:
        byte = text.index(at, text.index(new))
        place.append(f"line {text.count(chr(10), 0, byte) + 1}, byte {byte}: ")
    bad = traces.parent / ("bad.json.gz" if packed else "bad.json")
    bad.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert_left_out(traces, bad, *place)


@pytest.mark.parametrize("field, value", [("ts", '"2"'), ("ts", '"noon"'), ("ts", "null"), ("dur", '"5.25"'), ("ts", "1e300")])
def test_a_time_that_is_no_number_is_told_with_its_event(traces, field, value):
    text = kineto(0, begin_ns(traces, 0), EVENTS)
    at = text.index('"second"')
    begin = text.rindex("{", 0, at)
    place = text.index(f'"{field}": ', at) + len(f'"{field}": ')
    text = text[:place] + value + text[text.index(",", place):]
    bad = traces.parent / "bad.json"
    bad.write_text(text)
    line = text.count("\n", 0, begin) + 1
    assert_left_out(traces, bad, f"line {line}, byte {begin}: in this event: expected a time", value)


@pytest.mark.parametrize("cut", [0, 1, 40, 300, -30, -2])
def test_what_has_no_end_is_told(traces, cut):
    bad = traces.parent / "bad.json"
    bad.write_text(kineto(0, begin_ns(traces, 0), EVENTS)[:cut])
    assert_left_out(traces, bad, "empty file" if cut == 0 else "it has no end")


@pytest.mark.parametrize("begin, more", some([(b'[{"a":"', b"x"), (b"[", b" "), (b"", b"{"), (b'{"x":"', b"x")], 2))
def test_what_is_too_large_for_memory_is_told_and_takes_little(traces, begin, more):
    bad = traces.parent / "bad.json.gz"
    bad.write_bytes(gzip.compress(begin) + gzip.compress(more * (32 << 20), 1) * 20)  # 640 MiB
    bounded = functools.partial(resource.setrlimit, resource.RLIMIT_DATA, (400 << 20, 400 << 20))
    done, _ = merge(traces, bad, preexec_fn=bounded)
    why = {b"x": "too large for memory", b" ": "no end", b"{": "nested too deeply"}[more]
    assert done.returncode == 2 and why in done.stderr, done.stderr


def test_a_long_recording_takes_little_memory(traces):
    """200,000 events: as JSON some 36 MB, of which one event is in memory at a time, and 32 bytes of each."""
    file = traces.parent / "long.json"
    event = json.dumps(op("aten::add", 1.5, args={"text": "x" * 100}))
    with file.open("w") as to:
        to.write(kineto(0, begin_ns(traces, 0), []).replace('"traceEvents": [', '"traceEvents": [' + event, 1).partition('"name": "process_name"')[0].rpartition("{")[0])
        for n in range(200_000):
            to.write(event.replace("1.5", str(n + 0.5)) + ",\n")
        to.write(event + '], "baseTimeNanoseconds": %d}' % begin_ns(traces, 0))
    bounded = functools.partial(resource.setrlimit, resource.RLIMIT_DATA, (60 << 20, 60 << 20))
    done = tprof("merge", traces, "-o", traces.parent / "merged.json", "--with", f"0={file}", preexec_fn=bounded)
    assert done.returncode == 0, done.stderr
    assert (traces.parent / "merged.json").read_text().count('"aten::add"') >= 200_001


def test_slices_without_a_time_are_left_out_and_counted(traces):
    file = traces.parent / "zero.json"
    file.write_text(kineto(0, begin_ns(traces, 0), [op("a", 1), op("none", 0), op("none", 0, ph="s", id=4), op("none", 2, dur=-1)]))
    done, lines = merge(traces, file)
    assert done.returncode == 0 and "zero.json: 3 events are left out" in done.stderr
    assert [e["name"] for e in others(lines)] == ["a"]


def test_it_says_how_many_of_our_collectives_pytorch_has(traces):
    for rank, some in ((0, slice(2, 6)), (1, slice(None))):
        (traces.parent / f"k{rank}.json").write_text(recorded(traces, rank, 0, some))
    done, _ = merge(traces, traces.parent / "k?.json")
    calls = sum(line["name"].startswith("nccl") for file in traces.iterdir() for line in parsed(file))
    assert f"PyTorch's traces have {4 + calls // 2} of our {calls} collectives" in done.stderr, done.stderr
    done, _ = merge(traces, traces.parent / "k0.json")
    assert f"PyTorch's trace has 4 of our {calls // 2} collectives" in done.stderr, done.stderr


@pytest.mark.parametrize("early", [7_000_000, 2 * 10**9])
def test_nothing_that_is_said_of_the_job_changes(traces, early):
    """PyTorch may have begun long before the first call of NCCL, and end behind the last."""
    for file in traces.iterdir():  # its process had begun long before
        base = begin_ns(traces, int(file.stem[-5:]))
        head, at, rest = file.read_text().partition('"start_ns":')
        file.write_text(head + at + str(base - HOUR) + rest[rest.index(",") :])
    alone, _ = merge(traces)
    assert alone.returncode == 0
    (traces.parent / "out.json").rename(traces.parent / "alone.json")
    (traces.parent / "early.json").write_text(kineto(0, begin_ns(traces, 0) - early, [op("early", 1), op("late", 2 * early / 1000)]))
    both, lines = merge(traces, traces.parent / "early.json")
    assert both.returncode == 0 and min(line["ts"] for line in lines if "ts" in line) >= 0
    for command in (["summary"], ["summary", "--by", "op"], ["summary", "--by", "comm"], ["check"], ["report"]):
        told = [tprof(*command, traces.parent / name).stdout.replace(name, "") for name in ("alone.json", "out.json")]
        assert told[0] and told[0] == told[1], command

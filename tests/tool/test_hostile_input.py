"""Input that lies is refused by name, or said to be what it is. No total is wrong without a word."""

import gzip
import json
import os

import pytest
from lib.handmade import array, as_text, closed, comm, event, footer, header, ledger, metadata, row
from lib.tool import generate, tprof

MAX64 = 2**64 - 1


@pytest.fixture
def say(tmp_path):
    """Returns say(text), which gives the one line on standard error with which both readers refuse the file."""

    def call(text, name="rank.json"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        out = tmp_path / "m.json"
        lines = []
        for command in (["summary", file], ["merge", file, "-o", out]):
            result = tprof(*command)
            assert result.returncode == 2, result.stdout + result.stderr
            assert result.stdout == "" and not out.exists()
            assert result.stderr.startswith(f"tprof: {file}: "), result.stderr
            assert result.stderr.count("\n") == 1
            lines.append(result.stderr)
        assert lines[0] == lines[1]
        return lines[0]

    return call


@pytest.fixture
def summary(tmp_path):
    """Returns summary(text), which gives what `summary --json` says of a file that can be read."""

    def call(text, *arguments):
        file = tmp_path / "rank.json"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        result = tprof("summary", file, "--json", *arguments)
        assert result.returncode in (0, 1), result.stderr
        return json.loads(result.stdout)

    return call


def test_the_trace_that_the_others_are_made_from_is_read(summary):
    found = summary(closed(event()))
    assert found["buckets"]["ALL"]["bytes"] == 2048


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (header(rank=-1), '"rank"'),
        (header(rank=2**63 - 1, world_size=None), '"rank"'),
        (header(rank=0.5), '"rank"'),
        (header(rank="0"), '"rank"'),
        (header(rank=2), "rank 2 of 2"),
        (header(world_size=0), '"world_size"'),
        (header(world_size=2**63 - 1), '"world_size"'),
        (header(world_size=2**63), '"world_size"'),
        (header(base_time_ns=-1), '"base_time_ns"'),
        (header(base_time_ns=2**63 - 1), '"base_time_ns"'),
        (header(clock=[[0, 1]]), "clock"),
        (header(clock=[[2**63 - 1, 0, 0]]), "clock"),
        (header(clock={}), "clock"),
        (header(schema=1), '"schema"'),
        ('{"name":"tprof_header","ph":"M","pid":0,"tid":0}', '"args"'),
    ],
)
def test_a_header_that_can_not_be_is_refused(say, line, expected):
    text = say(array(line, comm(), ledger(), footer()))
    assert "byte 2: " in text and expected in text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (comm(nranks=0), '"nranks"'),
        (comm(nranks=-4), '"nranks"'),
        (comm(nranks=2**63 - 1), '"nranks"'),
        (comm(rank=2), '"rank"'),
        (comm(comm=0), '"comm"'),
        (comm(id=7), '"id"'),
        (ledger(row(calls=-1)), '"calls"'),
        (ledger(row(calls=1.0)), '"calls"'),
        (ledger(row(calls=2**64)), "one JSON object"),
        (ledger(row(bytes=None)), '"bytes"'),
        (ledger(row(bytes=True)), '"bytes"'),
        (ledger(row(bytes_class=64)), '"bytes_class"'),
        (ledger(row(bytes_class=-2)), '"bytes_class"'),
        (ledger(row(bucket="ALL")), "unknown bucket"),
        (ledger(row(mode="reversed")), "unknown mode"),
        (ledger([]), '"rows"'),
        (ledger(epoch=-1), '"epoch"'),
        (ledger(ts="1"), '"ts"'),
        (ledger(ts=1e300), '"ts"'),
        (ledger(comms=[{"comm": 1, "collectives": -1, "signature": "", "marks": []}]), "collect"),
        (ledger(comms=[{"comm": 1, "collectives": 1, "signature": "", "marks": [1]}]), "marks"),
        (as_text(ledger()).replace('"calls":1,', ""), '"calls"'),
        (as_text(ledger()).replace('"calls":1', '"calls":NaN'), "one JSON object"),
        (as_text(ledger()).replace('"calls":1', '"calls":1e999'), "one JSON object"),
        (as_text(ledger()).replace('"calls":1', '"calls":1,"calls":2'), '"calls" stands twice'),
        (as_text(ledger()) + " trailing", "one JSON object"),
        (as_text(ledger()).replace("ncclAllGather", "nccl\0"), "one JSON object"),
        (footer(dropped={"quota": -1}), '"dropped"'),
        (footer(complete=1), '"complete"'),
        (footer(coverage=None), '"coverage"'),
        (metadata("tprof_clock", clock=[0, 2**63 - 1, 0]), "clock"),
        (metadata("tprof_identity", rank=5, world_size=2), "rank 5 of 2"),
        (metadata("tprof_merged", schema="tprof/1"), "tprof_merged"),
        (header(pid=4712), "second tprof_header"),
        ('{"ph":"M","name":"tprof_ledger"}', "begins with"),
        (' {"name":"tprof_ledger"}', "begins with"),
        ('{"name":"tprof_\\u006cedger"}', '"pid"'),
        ('{"name":"\\u0074prof_ledger"}', '"pid"'),
        ("[[[[[", "begins with"),
        ('{"name":"tprof_comm","args":' + "[" * 5000, "one JSON object"),
    ],
)
def test_a_line_that_can_not_be_is_refused_with_its_place(say, line, expected):
    before = array(header(), comm()).removesuffix("\n]\n") + ",\n"
    text = say(before + as_text(line) + ",\n" + array(ledger(), footer())[2:])
    assert f"byte {len(before)}: " in text and expected in text


def test_a_ledger_behind_the_footer_is_refused(say):
    assert "after the process's tprof_footer" in say(array(header(), comm(), footer(), ledger()))
    assert "after the process's tprof_footer" in say(closed(footer()))


def test_an_epoch_that_goes_back_is_refused(say):
    assert "epoch of at least 1" in say(closed(ledger(epoch=1)))


def test_files_that_were_put_together_are_refused(say, tmp_path):
    assert "nothing after ']'" in say(closed() + closed(pid=4712))
    # These are so large that only their ends would be read.
    generate(tmp_path / "run", 2, 3000)
    first, second = ((tmp_path / "run" / f"rank-0000{i}.json").read_text() for i in (0, 1))
    assert "nothing after ']'" in say(first + second)
    assert "second tprof_header" in say(
        first.removesuffix("\n]\n") + ",\n" + second.removeprefix("[\n")
    )


def test_data_behind_the_end_of_the_array_is_refused_and_space_is_not(say, summary):
    assert "nothing after ']'" in say(closed() + '{"name":"x"}\n')
    assert "nothing after ']'" in say(closed() + "x")
    assert summary(closed() + "\n\n")["buckets"]["ALL"]["calls"] == 1


def test_lines_may_end_as_on_other_systems(summary):
    assert summary(closed(event()).replace("\n", "\r\n"))["buckets"]["ALL"]["bytes"] == 2048


def test_a_byte_order_mark_changes_nothing(summary):
    assert summary("\ufeff" + closed(event())) == summary(closed(event()))


def test_bytes_that_are_no_text_are_refused(say, tmp_path):
    bad = as_text(ledger()).encode().replace(b"ncclAllGather", b"\xff\xfe")
    assert "one JSON object" in say(closed().encode().replace(as_text(ledger()).encode(), bad))
    # In an event line, only a merge reads such bytes.
    file = tmp_path / "rank.json"
    file.write_bytes(closed(event(name="X")).encode().replace(b'"X"', b'"\xff"'))
    result = tprof("merge", file, "-o", tmp_path / "m.json")
    assert result.returncode == 2 and "one JSON object" in result.stderr


# A call's line is written anew from what was read of it. Another line is moved as it is.
OF_NO_CALL = event(cat="FUTURE")


@pytest.mark.parametrize(
    "line",
    [
        OF_NO_CALL | {"pid": "0"},
        OF_NO_CALL | {"pid": []},
        event(ts="1"),
        event(ts=1e300),
        event(ts=None),
        as_text(OF_NO_CALL).replace('"pid":0', '"pid":0,"pid":1'),
        as_text(OF_NO_CALL).replace('"ts":1.5', '"ts":1.5,"ts":2.5'),
        as_text(event()) + "}",
        as_text(event())[:-2],
        '{"name":"x"}',
        '{"name":"tprof_clock","pid":0,"args":{"clock":[1.5,0,0]}}',
    ],
)
def test_an_event_line_that_can_not_be_moved_is_refused_by_merge(tmp_path, line):
    before = array(header(), comm()).removesuffix("\n]\n") + ",\n"
    file = tmp_path / "rank.json"
    file.write_text(before + as_text(line) + ",\n" + array(ledger(), footer())[2:])
    result = tprof("merge", file, "-o", tmp_path / "m.json")
    assert result.returncode == 2
    assert result.stderr.startswith(f"tprof: {file}: byte {len(before)}: ")
    assert not (tmp_path / "m.json").exists()


def test_a_header_nested_beyond_reason_in_the_middle_of_a_large_file(tmp_path):
    generate(tmp_path / "run", 1, 3000)
    file = tmp_path / "run/rank-00000.json"
    lines = file.read_text().split("\n")
    deep = '{"name":"tprof_clock","pid":0,"x":' + "[" * 1_000_000 + "]" * 1_000_000 + "}"
    lines.insert(len(lines) // 2, deep + ",")
    file.write_text("\n".join(lines))
    result = tprof("merge", file, "-o", tmp_path / "m.json")
    assert result.returncode == 2 and "expected one JSON object on this line" in result.stderr


def test_sums_beyond_64_bits_stop_there_and_say_so(summary, tmp_path):
    rows = [row(bytes=MAX64, elements=2**63), row(dtype="int8", bytes=5, elements=2**63)]
    found = summary(array(header(world_size=1), comm(), ledger(*rows), footer()))
    assert found["buckets"]["ALLGATHER"]["bytes"] == MAX64
    assert found["buckets"]["ALL"]["elements"] == MAX64
    (problem,) = [p for p in found["findings"] if p["kind"] == "overflow"]
    assert problem["severity"] == "error" and "lower bound" in problem["text"]
    assert found["complete"] is False
    assert "lower bound" in tprof("summary", tmp_path / "rank.json").stdout


def test_the_largest_number_alone_is_no_overflow(summary):
    found = summary(array(header(world_size=1), comm(), ledger(row(bytes=MAX64 - 1)), footer()))
    assert found["findings"] == []


def test_a_communicator_that_no_line_declares_keeps_its_counts(summary):
    """A ledger is written now and then, and a communicator's line may have been cut off."""
    found = summary(array(header(world_size=1), ledger(row(comm=9)), footer()))
    assert found["buckets"]["ALLGATHER"]["bytes"] == 2048
    assert [op["comm_id"] for op in found["ops"]] == ["?"]


@pytest.mark.parametrize("name", ["rank.json", "rank.json.gz"])
def test_a_line_without_end_is_refused(say, name):
    text = closed().removesuffix("]\n") + '{"name":"' + "a" * (70 << 20)
    assert "expected a line break within" in say(
        gzip.compress(text.encode(), 1) if name.endswith("gz") else text, name
    )


def test_a_ring_file_that_is_a_pipe_does_not_stop_the_reader(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o400)
    (tmp_path / "rank.json").write_text(array(header(ring="pipe"), comm(), ledger())[:-2])
    result = tprof("summary", tmp_path / "rank.json")
    assert result.returncode == 2
    assert "pipe: not a tprof ring file" in result.stderr

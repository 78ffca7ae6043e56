"""merge --with of nsys export --type sqlite. No file of a real nsys was here: the databases are made by NVIDIA's
description of the schema, so each of their moments is known."""

import sqlite3

import pytest
from lib.rankfile import named, parsed
from lib.tool import SCHEMA, generate, tprof

GEMM, LAUNCH = "void gemm<float>(int)", "cudaLaunchKernel_v7000"
STRINGS = ["", GEMM, "gemm", LAUNCH, "backward", "pt_autograd_0"]
# Columns are integers that are there, but for those with a type: NULL where it says so.
DEVICE = "start end deviceId contextId streamId correlationId:NULL globalPid:NULL"
TABLES = {
    "StringIds": "id value:TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime:TEXT localTime:TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName:TEXT name:TEXT nameEnum value:TEXT",
    "ThreadNames": "nameId priority globalTid",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{DEVICE} demangledName shortName gridX gridY gridZ blockX blockY blockZ",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{DEVICE} bytes copyKind",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{DEVICE} value bytes",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid:NULL correlationId:NULL nameId returnValue",
    "NVTX_EVENTS": "start end:NULL eventType rangeId:NULL text:TEXTNULL globalTid:NULL endGlobalTid:NULL"
    " textId:NULL domainId:NULL",
}


def declared(column):
    name, _, kind = column.partition(":")
    return f"{name} {'TEXT' if kind.startswith('TEXT') else 'INTEGER'}{'' if kind.endswith('NULL') else ' NOT NULL'}"


@pytest.fixture
def traces(tmp_path):
    generate(tmp_path / "run", 2, 20)
    return tmp_path / "run"


def header(traces, rank):
    return named(parsed(traces / f"rank-{rank:05}.json"), "tprof_header")[0]


def serialized(pid, tid=0):
    """A globalPid, or a globalTid: above them is the number of the (virtual) machine."""
    return 1 << 48 | pid << 24 | tid


def exported(file, begin_ns, *pids, without=(), host="somewhere"):
    """What two processes did, each 1 us behind the one before, from 10 us behind the beginning."""
    kept = {name: columns for name, columns in TABLES.items() if name not in without}
    with sqlite3.connect(file) as db:
        for name, columns in kept.items():
            left = [declared(c) for c in columns.split() if f"{name}.{c.split(':')[0]}" not in without]
            db.execute(f"CREATE TABLE {name} ({', '.join(left)})")

        def put(table, **row):
            if table in kept:
                row = {column: value for column, value in row.items() if f"{table}.{column}" not in without}
                places = ", ".join("?" * len(row))
                db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values()))

        for number, text in enumerate(STRINGS):
            put("StringIds", id=number, value=text)
        put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=begin_ns, utcTime="", localTime="")
        put("TARGET_INFO_SYSTEM_ENV", globalVid=0, devStateName="", name="Hostname", nameEnum=0, value=host)
        for number, pid in enumerate(pids):
            t, thread = 10_000 + number * 1000, serialized(pid, pid + 1)
            place = {"deviceId": number, "contextId": 1, "globalPid": serialized(pid)}
            grid = {"gridX": 8, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
            call = {"eventClass": 0, "globalTid": thread, "returnValue": 0}
            put("ThreadNames", nameId=5, priority=0, globalTid=thread)
            put("CUPTI_ACTIVITY_KIND_RUNTIME", start=t, end=t + 101, correlationId=7, nameId=3, **call)
            kernel = {"streamId": 7, "correlationId": 7, "demangledName": 1, "shortName": 2}
            put("CUPTI_ACTIVITY_KIND_KERNEL", start=t + 200, end=t + 307, **kernel, **grid, **place)
            copy = {"streamId": 13, "correlationId": 8, "bytes": 4096, "copyKind": 1}
            put("CUPTI_ACTIVITY_KIND_MEMCPY", start=t + 400, end=t + 409, **copy, **place)
            memset = {"streamId": 7, "correlationId": 9, "value": 0, "bytes": 64}
            put("CUPTI_ACTIVITY_KIND_MEMSET", start=t + 500, end=t + 511, **memset, **place)
            mine, none = {"globalTid": thread, "domainId": 3}, {"globalTid": thread, "domainId": 0}
            put("NVTX_EVENTS", start=0, eventType=75, text="my domain", **mine)
            put("NVTX_EVENTS", start=t - 50, end=t + 600, eventType=59, text='step "1"', **mine)
            put("NVTX_EVENTS", start=t + 1, end=t + 201, eventType=60, textId=4, endGlobalTid=thread, **none)
            put("NVTX_EVENTS", start=t + 2, eventType=34, text="mark", **none)
            put("NVTX_EVENTS", start=t + 3, eventType=59, text="open", **none)


def merge(traces, output, *words):
    done = tprof("merge", traces, "-o", output, *words)
    assert done.returncode == 0, done.stderr
    lines = parsed(output)
    for line in lines:
        SCHEMA.validate(line)
    return lines, done.stderr


def theirs(lines, pid):
    return [line for line in lines if line.get("cat", "").startswith("OTHER,") and line["pid"] == pid]


def found(lines, pid):
    """(category, phase, name, nanoseconds since 1970) of the other tool's events."""
    (base,) = {header["base_time_ns"] for header in named(lines, "tprof_header")}
    mine = [line for line in theirs(lines, pid) if line["ph"] != "M"]
    return [(line["cat"][6:], line["ph"], line["name"], base + round(line["ts"] * 1000)) for line in mine]


def truth(t):
    """What exported() put there of a process whose first call began at t."""
    return [
        ("kernel", "X", GEMM, t + 200), ("gpu_memcpy", "X", "Memcpy HtoD", t + 400),
        ("gpu_memset", "X", "Memset", t + 500), ("cuda_runtime", "X", LAUNCH, t),
        ("nvtx", "X", 'step "1"', t - 50), ("nvtx", "b", "backward", t + 1), ("nvtx", "e", "backward", t + 201),
        ("nvtx", "i", "mark", t + 2), ("nvtx", "B", "open", t + 3),
    ]


def test_each_process_is_on_the_lanes_of_the_rank_with_its_pid(traces, tmp_path):
    begin = header(traces, 0)["base_time_ns"]
    pids = [header(traces, rank)["pid"] for rank in (0, 1)]
    exported(tmp_path / "node.sqlite", begin, *pids)
    lines, said = merge(traces, tmp_path / "out.json", "--with", tmp_path / "node.sqlite")
    for rank in (0, 1):
        assert found(lines, rank) == truth(begin + 10_000 + rank * 1000)
    mine = theirs(lines, 0)
    lanes = {line["tid"]: line["args"]["name"] for line in mine if line["name"] == "thread_name"}
    on = {line["name"]: lanes[line["tid"]] for line in mine if line["ph"] != "M"}
    assert on["Memcpy HtoD"] == "nsys: device 0, stream 13"
    assert on["Memset"] == on[GEMM] == "nsys: device 0, stream 7"
    thread = f"thread {pids[0] + 1} (pt_autograd_0)"
    assert on[LAUNCH] == f"nsys: {thread}" and on["mark"] == on["open"] == f"nsys: NVTX of {thread}"
    args = {line["name"]: line["args"] for line in mine if line["ph"] in "XB"}
    grid = {"gridX": 8, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
    assert args[GEMM] == grid | {"correlationId": 7}
    assert args["Memcpy HtoD"] == {"correlationId": 8, "bytes": 4096, "copyKind": 1}
    assert args['step "1"'] == {"domain": "my domain"} and args["open"] == {}
    durations = {line["name"]: line["dur"] for line in mine if line["ph"] == "X"}
    assert durations == {GEMM: 0.107, "Memcpy HtoD": 0.009, "Memset": 0.011, LAUNCH: 0.101, 'step "1"': 0.650}
    started = {line["id"] for line in mine if line["ph"] in "be"}
    assert len(started) == 1
    assert "not in it" not in said


def test_of_a_file_that_lacks_tables_and_columns_the_rest_is_used(traces, tmp_path):
    begin = header(traces, 0)["base_time_ns"]
    columns = {"NVTX_EVENTS.textId", "CUPTI_ACTIVITY_KIND_KERNEL.demangledName", "CUPTI_ACTIVITY_KIND_MEMCPY.start"}
    lacking = columns | {"CUPTI_ACTIVITY_KIND_MEMSET"}
    without = lacking | {"ThreadNames", "TARGET_INFO_SYSTEM_ENV"}
    exported(tmp_path / "node.sqlite", begin, header(traces, 1)["pid"], without=without)
    lines, said = merge(traces, tmp_path / "out.json", "--with", tmp_path / "node.sqlite")
    (note,) = [line for line in said.splitlines() if "not in it" in line]
    assert set(note.split("not in it: ")[1].split("; ")[0].split(", ")) == lacking
    t = begin + 10_000
    assert found(lines, 1) == [
        (category, phase, {GEMM: "gemm", "backward": "(no name)"}.get(name, name), at)
        for category, phase, name, at in truth(t) if category not in ("gpu_memset", "gpu_memcpy")
    ]


def test_a_process_of_another_host_is_not_taken_for_a_rank(traces, tmp_path):
    (host,) = {header(traces, rank)["host"] for rank in (0, 1)}
    pid = header(traces, 1)["pid"]
    file = traces / "rank-00001.json"
    file.write_text(file.read_text().replace(f'"host":"{host}"', '"host":"other"'))
    exported(tmp_path / "node.sqlite", header(traces, 0)["base_time_ns"], pid, host=host)
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--with", tmp_path / "node.sqlite")
    assert done.returncode == 2 and "RANK=FILE" in done.stderr
    lines, _ = merge(traces, tmp_path / "out.json", "--with", f"0={tmp_path / 'node.sqlite'}")
    assert len(found(lines, 0)) == 9 and not found(lines, 1)


@pytest.mark.parametrize("spoilt, why", [
    ({"TARGET_INFO_SESSION_START_TIME"}, "times begin"),
    (set(TABLES) - {"TARGET_INFO_SESSION_START_TIME", "StringIds"}, "RANK=FILE"),
    ("cut", "can't be read"),
])
def test_what_can_not_be_used_is_refused_in_one_line(traces, tmp_path, spoilt, why):
    file = tmp_path / "node.sqlite"
    first = header(traces, 0)
    exported(file, first["base_time_ns"], first["pid"], without=() if spoilt == "cut" else spoilt)
    if spoilt == "cut":
        file.write_bytes(file.read_bytes()[:5000])
    done = tprof("merge", traces, "-o", tmp_path / "out.json", "--with", file)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and why in done.stderr and "node.sqlite" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_of_ranks_that_are_left_out_nothing_comes(traces, tmp_path):
    headers = [header(traces, rank) for rank in (0, 1)]
    exported(tmp_path / "node.sqlite", headers[0]["base_time_ns"], *(h["pid"] for h in headers))
    lines, _ = merge(traces, tmp_path / "out.json", "--ranks", "1", "--with", tmp_path / "node.sqlite")
    assert len(found(lines, 1)) == 9

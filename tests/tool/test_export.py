"""tprof export: compares the tables with the lines and with the stand-in's own count."""

import collections
import csv
import json
import re
import sqlite3

import pytest
from lib import figures, jobs, launch, loops, processes, tally
from lib.build import BUILD, REPO
from lib.clocks import clock_job, nanoseconds
from lib.rankfile import lines_of, named, parsed
from lib.tool import generate, tprof
from test_merge import damage
from test_summary_ranges import LANE, pushed, with_lines

PAGE = (REPO / "analysis/export/README.md").read_text()


def export(traces, database, *more, status=0):
    done = tprof("export", traces, "--sqlite", database, *more)
    assert done.returncode == status, done.stderr
    return opened(database)


def opened(database):
    db = sqlite3.connect(database)
    db.row_factory = sqlite3.Row
    return db


def rows(db, table, order="rowid"):
    return [dict(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY {order}")]


def events_of(file):
    """Yields its calls, with times as text, so that nanoseconds() can read them exactly."""
    for line in lines_of(file):
        event = json.loads(line, parse_float=str)
        if event["ph"] in "XB" and event.get("cat") in jobs.BUCKETS.values():
            yield event


def call_of(event, rank):
    """Returns the row of a call, as far as its line says it."""
    args = event["args"]
    size = jobs.SIZES.get(args.get("dtype"), 1)
    unfinished = event["ph"] == "B"
    outcome = "unfinished" if unfinished else "captured" if args.get("captured") else "executed"
    return {
        "rank": rank, "thread": event["tid"], "bucket": event["cat"], "function": event["name"],
        "comm": args.get("comm"), "seq": args.get("seq"), "peer": args.get("peer"), "reduce": args.get("reduce"),
        "dtype": args.get("dtype", "byte"), "count": args.get("count", args["bytes"]),
        "elements": args["bytes"] // size, "bytes": args["bytes"], "device": args.get("device"), "stream": 0,
        "outcome": outcome, "host_ns": None if unfinished else nanoseconds(event["dur"]),
        "device_ts_ns": None, "device_ns": None, "device_calls": None,
    }  # fmt: skip


def in_any_order(calls):
    return sorted(json.dumps(call, sort_keys=True) for call in calls)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Returns folder and database of a job that is healthy but for a captured call, and one that did not return."""
    folder = tmp_path_factory.mktemp("job")
    made = jobs.healthy(4, 60, 7)
    made.ranks[1].end = "recovered"
    made.ranks[1].inside = [jobs.Op("ncclAllReduce", 500, 64, comm=0, dtype="float32", reduce="sum")]
    made.ranks[2].launches = 3
    made.ranks[2].ops.append(jobs.Op("cudaMemcpyAsync", 400, 408, captured=True))
    made.write(folder / "run")
    return folder / "run", export(folder / "run", folder / "run.db")


def test_calls_are_those_of_the_lines_on_the_axis_of_the_merged_trace(job, tmp_path):
    folder, db = job
    lines = [
        (call_of(event, rank), nanoseconds(event["ts"]))
        for rank, file in enumerate(sorted(folder.iterdir()))
        for event in events_of(file)
    ]
    calls = rows(db, "calls")
    kept = [{key: value for key, value in call.items() if key in lines[0][0]} for call in calls]
    assert in_any_order(kept) == in_any_order(call for call, _ in lines)
    assert {call["outcome"] for call in calls} == {"executed", "captured", "unfinished"}
    assert tprof("merge", folder, "-o", tmp_path / "m.json").returncode == 0
    axis = sorted((event["pid"], nanoseconds(event["ts"])) for event in events_of(tmp_path / "m.json"))
    assert sorted((call["rank"], call["ts_ns"]) for call in calls) == axis
    (header,) = {h["base_time_ns"] for h in named(parsed(tmp_path / "m.json"), "tprof_header")}
    assert rows(db, "job")[0]["base_time_ns"] == header


def test_the_other_tables_are_those_of_the_lines(job):
    folder, db = job
    ended = {row["rank"]: row["ended"] for row in rows(db, "processes")}
    assert ended == {0: "closed", 1: "recovered", 2: "closed", 3: "closed"}
    for rank, file in enumerate(sorted(folder.iterdir())):
        lines = parsed(file)
        comms = {comm["comm"]: comm for comm in named(lines, "tprof_comm")}
        found = [row for row in rows(db, "communicators") if row["rank"] == rank]
        assert {row["comm"]: row["id"] for row in found} == {n: comm["id"] for n, comm in comms.items()}
        assert all(row["rank_in_comm"] == comms[row["comm"]]["rank"] for row in found)
        ledger = named(lines, "tprof_ledger")[-1]["rows"]
        found = [row for row in rows(db, "ledger") if row["rank"] == rank]
        same = ("dtype", "comm", "bytes_class", "mode", "calls", "count", "elements", "bytes", "failed", "unfinished")
        assert in_any_order({key: row[key] for key in (*same, "function")} for row in found) == in_any_order(
            {key: row[key] for key in same} | {"function": row["name"]} for row in ledger
        )
        assert all(row["device_ns"] is None and row["exposed_ns"] is None for row in found)


def test_device_times_are_with_their_calls(tmp_path):
    """Some lines of device times stand before their calls."""
    clock_job(tmp_path / "run", 1, 2, 200)
    for file in (tmp_path / "run").iterdir():
        lines = list(lines_of(file))
        at = [i for i, line in enumerate(lines) if '"DEVICE"' in line]
        for i in at[::3]:
            lines[i - 1], lines[i] = lines[i], lines[i - 1]
        file.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    db = export(tmp_path / "run", tmp_path / "run.db")
    for rank, file in enumerate(sorted((tmp_path / "run").iterdir())):
        times = {}
        for line in lines_of(file):
            event = json.loads(line, parse_float=str)
            if event.get("cat") == "DEVICE":
                times[event["args"]["seq"]] = (nanoseconds(event["dur"]), nanoseconds(event["args"]["queued"]), 1)
        found = {
            call["seq"]: (call["device_ns"], call["device_ts_ns"] - call["ts_ns"], call["device_calls"])
            for call in rows(db, "calls")
            if call["rank"] == rank
        }
        assert len(times) == 200 and found == times


def test_ranges_have_their_times_and_attributes(tmp_path):
    started = {"cat": "NVTX", "name": "free", "pid": 0, "tid": LANE + 7, "id2": {"local": "3"}, "args": {}}
    lines = [
        pushed("a,\"b\"", 1, 1, domain="mine", category="load", payload=2**62 + 1, color="#00ff00"),
        pushed("c", 3, 0.5, category=7, payload=1.5), pushed("save", 8, 1, elements=10, bytes=40, error="Bad"),
        started | {"ph": "b", "ts": 10}, started | {"ph": "i", "name": "tick", "s": "t", "ts": 12},
        started | {"ph": "e", "ts": 15}, pushed("open", 20, 0, unfinished=True) | {"ph": "B"},
    ]  # fmt: skip
    db = export(with_lines(tmp_path / "run", lines), tmp_path / "run.db")
    what = "name, domain, category, category_number, color, payload, elements, bytes, error, kind, ts_ns, ns, thread"
    base = min(row["ts_ns"] for row in rows(db, "ranges")) - 1000
    assert [tuple(row) for row in db.execute(f"SELECT {what} FROM ranges ORDER BY ts_ns")] == [
        ("a,\"b\"", "mine", "load", None, "#00ff00", 2**62 + 1, None, None, None, "pushed", base + 1000, 1000, 7),
        ("c", None, None, 7, None, 1.5, None, None, None, "pushed", base + 3000, 500, 7),
        ("save", None, None, None, None, None, 10, 40, "Bad", "pushed", base + 8000, 1000, 7),
        ("free", *[None] * 8, "started", base + 10_000, 5000, 7),
        ("tick", *[None] * 8, "mark", base + 12_000, None, 7),
        ("open", *[None] * 8, "pushed", base + 20_000, None, 7),
    ]  # fmt: skip


def test_steps_are_those_of_the_loop(tmp_path):
    loop = loops.fsdp(loops.Shape(steps=9))
    db = export(loop.job.write(tmp_path / "job"), tmp_path / "run.db")
    assert [row["steps_found"] for row in rows(db, "job")] == ["period"]
    for row in rows(db, "calls"):
        at = (row["ts_ns"] + jobs.STEP_NS // 2) // jobs.STEP_NS
        assert row["step"] == (sum(step <= at for step in loop.steps) or None)
    assert {(row["rank"], row["step"]) for row in rows(db, "steps")} == {(r, s) for r in (0, 1) for s in range(1, 10)}


def test_ranks_of_one_process_are_apart_and_can_be_chosen(tmp_path):
    made = jobs.healthy(4, 40, 2)
    alone = export(made.write(tmp_path / "ranks"), tmp_path / "ranks.db")
    together = export(processes.write(made, tmp_path / "all", [[0, 1, 2, 3]]), tmp_path / "all.db")
    chosen = export(tmp_path / "all", tmp_path / "some.db", "--ranks", "1,3")
    query = "SELECT rank, function, count(*), sum(bytes) FROM calls GROUP BY 1, 2"
    expected = [tuple(row) for row in alone.execute(query)]
    assert [tuple(row) for row in together.execute(query)] == expected
    assert [tuple(row) for row in chosen.execute(query)] == [row for row in expected if row[0] in (1, 3)]


def test_they_are_what_the_stand_in_counted(tmp_path):
    launch.start([BUILD / "native_trainer", "--ranks", "2", "--steps", "6"], tmp_path, TPROF_TIMING="events")
    db = export(tmp_path / "traces", tmp_path / "run.db")
    counted = collections.Counter()
    for process in tally.read_all(tmp_path / "tally"):
        for (bucket, function, dtype, _, _), of in figures.of_plain_names(figures.of_tally(process)).items():
            if bucket != "D2D" and of["calls"]:
                counted.update({(bucket, function, dtype, key): of[key] for key in ("calls", "elements", "bytes")})
    for table, calls, condition in (("calls", "count(*)", "1"), ("ledger", "sum(calls)", "bucket <> 'D2D'")):
        found = {}
        for *key, n, elements, size in db.execute(
            f"SELECT bucket, function, dtype, {calls}, sum(elements), sum(bytes) FROM {table}"
            f" WHERE {condition} GROUP BY 1, 2, 3"
        ):
            found |= {(*key, "calls"): n, (*key, "elements"): elements, (*key, "bytes"): size}
        assert found == counted, table
    timed, of_ledger = db.execute(
        "SELECT (SELECT sum(device_ns) FROM calls), (SELECT sum(device_ns) FROM ledger WHERE bucket <> 'D2D')"
    ).fetchone()
    assert timed == of_ledger > 0


def test_csv_has_the_same_as_sqlite(job, tmp_path):
    folder, db = job
    (tmp_path / "csv").mkdir()  # an empty folder may be there
    assert tprof("export", folder, "--csv", tmp_path / "csv").returncode == 0
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert {path.name for path in (tmp_path / "csv").iterdir()} == {f"{table}.csv" for table in tables}
    for table in tables:
        text = (tmp_path / f"csv/{table}.csv").read_bytes()
        assert text.endswith(b"\r\n") and text.count(b"\n") == text.count(b"\r\n")
        with open(tmp_path / f"csv/{table}.csv", newline="") as file:
            head, *body = csv.reader(file)
        found = db.execute(f"SELECT * FROM {table} ORDER BY rowid")
        assert head == [column[0] for column in found.description]
        assert body == [["" if value is None else str(value) for value in row] for row in found]


@pytest.mark.parametrize("kind", ["sqlite", "csv"])
def test_a_damaged_file_is_left_out_as_a_whole(tmp_path, kind):
    generate(tmp_path / "run", 3, 3000)
    what = damage(tmp_path / "run/rank-00001.json")
    done = tprof("export", tmp_path / "run", f"--{kind}", tmp_path / "out")
    assert done.returncode == 1 and f"error: {what}; left out" in done.stderr
    if kind == "sqlite":
        counts = [tuple(row) for row in opened(tmp_path / "out").execute("SELECT rank, count(*) FROM calls GROUP BY 1")]
        ranks = {row["rank"] for row in rows(opened(tmp_path / "out"), "ledger")}
    else:
        calls = list(csv.DictReader(open(tmp_path / "out/calls.csv", newline="")))
        counts = sorted((int(rank), n) for rank, n in collections.Counter(c["rank"] for c in calls).items())
        ranks = {int(row["rank"]) for row in csv.DictReader(open(tmp_path / "out/ledger.csv", newline=""))}
    assert counts == [(0, 3000), (2, 3000)] and ranks == {0, 2}


def test_the_page_names_every_column(job):
    db = job[1]
    described = {
        name: re.findall(r"`([a-z_]+)`", re.sub(r"\([^()]*\)", "", columns))
        for name, columns in re.findall(r"^\| `(\w+)`[^|]*\| (.*) \|$", PAGE, re.MULTILINE)
    }
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert described == {
        table: [row["name"] for row in db.execute(f"SELECT * FROM pragma_table_info('{table}')")] for table in tables
    }


def test_one_format_is_asked_for_with_its_folder(tmp_path):
    generate(tmp_path / "run", 1, 20)
    out = tmp_path / "out"
    for wrong in ([], ["--sqlite", out, "--csv", out], ["--sqlite", out, "-o", out], ["--kineto"],
                  ["--kineto", "--inspector", "-o", out]):  # fmt: skip
        done = tprof("export", tmp_path / "run", *wrong)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, wrong
    assert not out.exists()

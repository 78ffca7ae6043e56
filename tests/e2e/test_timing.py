"""TPROF_TIMING: compares calls' device times with the stand-in's own schedule, and checks what must not change."""

import collections
import dataclasses
import json

import pytest
from lib import figures, graphs, random_calls, rankfile
from lib.build import BUILD
from lib.contract import SCHEMA
from lib.launch import ALL_RANKS, start
from lib.rankfile import named, parsed, untimed
from lib.timed import LATENCY_US, RANKS, device_lines, ran, traced, trainer
from lib.tool import told, tprof

pytestmark = pytest.mark.timed

@pytest.mark.parametrize("timing", ["events", "cupti"])
def test_every_call_has_the_time_that_the_device_spent_on_it(timing, tmp_path):
    """CUPTI tells what the device's own schedule says, and events no less than that; each time has a line on the lane of
    its stream, behind its call."""
    run = trainer(tmp_path, timing)
    for file in run.ranks():
        truth, rows, times = ran(tmp_path, file), file.ledger_rows(), device_lines(file)
        assert untimed(file) == 0
        assert {row["name"] for row in rows} == {"ncclAllGather", "ncclReduceScatter", "cudaMemcpyAsync"}
        for row in rows:
            assert (row["device_timed"], row["device_bytes"]) == (row["calls"], row["bytes"]), row
            assert row["device_ns"] >= row["calls"] * LATENCY_US * 1000, row
            assert row["device_ns"] / row["calls"] <= row["device_ns_max"] <= row["device_ns"], row
        # The calls of a stream took no longer than the job.
        streams = {event["args"].get("stream", 0) for event in file.events}
        assert sum(row["device_ns"] for row in rows) <= len(streams) * file.ledgers[-1]["ts"] * 1000
        clocks = [line["args"] for line in file.lines if line["name"] == "tprof_device_clock"]
        error_ns = max(clock["error_ns"] for clock in clocks) + 1000
        calls = {(e["name"], e["tid"], round(e["ts"] * 1000)) for e in file.events}
        lanes = collections.defaultdict(list)
        for line in times:
            lanes[line["tid"]].append((line["ts"] * 1000, line["dur"] * 1000))
            args, began = line["args"], round(line["ts"] * 1000)
            assert line["tid"] == 2**23 + args.get("stream", 0) and line["dur"] >= LATENCY_US and args["queued"] >= 0
            assert (line["name"], args["call_tid"], began - round(args["queued"] * 1000)) in calls
            assert timing == "events" or any(
                ended - start == round(line["dur"] * 1000) and abs(start - began) <= error_ns
                for start, ended in truth[line["name"]]
            ), line
        for lane in map(sorted, lanes.values()):
            assert all(later >= begin + took - 2 * error_ns for (begin, took), (later, _) in zip(lane, lane[1:]))
        # Every step ends with a wait of the host: nothing is on the device after the last of them.
        assert max(line["ts"] + line["dur"] for line in times) <= file.ledgers[-1]["ts"]
        for name in ("ncclAllGather", "ncclReduceScatter", "cudaMemcpyAsync"):
            mine, expected = [row for row in rows if row["name"] == name], [e - b for b, e in truth[name]]
            assert sum(row["device_timed"] for row in mine) == len(expected)
            assert sum(line["args"].get("calls", 1) for line in times if line["name"] == name) == len(expected)
            told = (sum(row["device_ns"] for row in mine), max(row["device_ns_max"] for row in mine))
            assert timing == "events" or told == (sum(expected), max(expected))
        assert [e.message for line in file.lines for e in SCHEMA.iter_errors(line)] == []
    public = tmp_path / "public"
    assert tprof("anonymize", run.traces, "-o", public).returncode == 0
    keys = ("device_ns", "device_ns_max", "device_bytes", "device_timed")
    ours, theirs = (
        [[row.get(key) for key in keys] for ledger in named(lines, "tprof_ledger") for row in ledger["rows"]]
        for lines in ([line for file in run.ranks() for line in file.lines],
                      [line for path in sorted(public.iterdir()) for line in parsed(path)])
    )  # fmt: skip
    assert ours == theirs


@pytest.mark.parametrize("timing", ["events", "cupti", "host"])
def test_counts_are_the_tallys_and_where_nothing_is_asked_for_nothing_is_timed(timing, tmp_path):
    run = trainer(tmp_path, timing)
    for file in run.ranks():
        expected = figures.of_tally(run.tallies()[file.header["pid"]])
        assert figures.difference(figures.of_ledger(file), expected) == "", file.path
        assert (sum(row["device_timed"] for row in file.ledger_rows()) != 0) == (timing != "host")


@pytest.mark.parametrize("timing", ["events", "cupti"])
def test_a_graphs_launch_has_one_time_for_all_that_it_executes(timing, tmp_path):
    run = traced([BUILD / "graphs", graphs.captured() + graphs.run("g", 3)], tmp_path, timing, STANDIN_LATENCY_US="500")
    (file,) = run.ranks()
    launches = [e for e in file.lines if e.get("cat") == "GRAPH"]
    times = [line for line in device_lines(file) if line["name"] == "cudaGraphLaunch"]
    assert len(times) == len(launches) == 3 and all(t["dur"] >= 500 for t in times)
    assert {t["args"]["graph"] for t in times} == {e["args"]["graph"] for e in launches}


@pytest.mark.parametrize("timing", ["events", "cupti"])
def test_what_was_read_is_there_after_a_kill_and_the_rest_is_not_timed(timing, tmp_path):
    # Long enough for what takes a call half a second to be read, also on a busy machine.
    latency_us = 16_000 if timing == "cupti" else LATENCY_US
    run = trainer(tmp_path, timing, 128 + 9, STANDIN_DIE="0:ncclReduceScatter:45", STANDIN_LATENCY_US=str(latency_us))
    assert tprof("recover", run.traces).returncode == 0
    for file in run.ranks():
        truth, rows = ran(tmp_path, file), file.ledger_rows()
        assert 0 < sum(row["device_timed"] for row in rows) <= sum(row["calls"] for row in rows)
        for row in rows:
            assert row["device_ns"] >= row["device_timed"] * latency_us * 1000, row
        for line in device_lines(file) if timing == "cupti" else []:
            assert round(line["dur"] * 1000) in {ended - began for began, ended in truth[line["name"]]}


def test_one_of_n_is_the_same_one_on_all_ranks(tmp_path):
    timed = []
    for file in trainer(tmp_path, "events:4").ranks():
        rows = [row for row in file.ledger_rows() if row["comm"] is not None]
        timed.append([(row["name"], row["bytes_class"], row["device_timed"]) for row in rows])
        calls = sum(row["calls"] for row in rows)
        assert 0 < sum(row["device_timed"] for row in rows) < calls / 2, "about a quarter"
    assert timed[0] == timed[1]


def test_with_one_queue_to_the_device_nothing_is_timed_and_that_is_said_once(tmp_path):
    run = trainer(tmp_path, "events", CUDA_DEVICE_MAX_CONNECTIONS="1")
    assert len(run.words_of_ours()) == RANKS
    assert "CUDA_DEVICE_MAX_CONNECTIONS=1" in run.words_of_ours()[0]
    for file in run.ranks():
        assert sum(row["device_timed"] for row in file.ledger_rows()) == 0
    for command in ("doctor", "check", "report"):
        (found,) = [f for f in told(command, run.traces)[1]["findings"] if f["kind"] == "one_queue"]
        assert "TPROF_TIMING=events is ignored" in found["text"] and "TPROF_TIMING=cupti" in found["next"]
        assert "all-gathers and reduce-scatters of FSDP don't overlap" in found["text"]


@pytest.mark.parametrize("timing, seed", [("events", n) for n in range(1, 13)] + [("cupti", n) for n in range(1, 5)])
def test_each_call_of_a_random_program_is_timed_or_counted_as_not_timed(timing, seed, tmp_path):
    """The programs have groups, captures, refused calls, batches and several devices."""
    plan = random_calls.plan(seed)
    plan = dataclasses.replace(plan, settings=plan.settings | {"TPROF_TIMING": timing})
    played = random_calls.play(plan, tmp_path / "run")
    assert random_calls.faults(played) == []
    for file in played.files().values():
        direct = [row for row in file.ledger_rows() if row["mode"] == "direct"]
        timed = sum(row["device_timed"] for row in direct)
        if file.footer["complete"]:
            assert timed + untimed(file) == sum(row["calls"] for row in direct), file.path


def test_summary_gives_bandwidths_by_nccl_tests_formulas(tmp_path):
    run = trainer(tmp_path, "events")
    rows = [row for file in run.ranks() for row in file.ledger_rows()]
    text = tprof("summary", run.traces, "--verbose").stdout
    assert "algbw GB/s  busbw GB/s" in text and "No algbw" not in text
    for op in json.loads(tprof("summary", run.traces, "--json").stdout)["ops"]:
        mine = [r for r in rows if (r["name"], r["bytes_class"]) == (op["name"], op["bytes_class"])]
        assert op["device_timed"] == op["calls"]
        assert op["device_ns"] == sum(row["device_ns"] for row in mine)
        algbw = sum(row["bytes"] for row in mine) / op["device_ns"]
        assert op["algbw_GBps"] == pytest.approx(algbw)
        # The factor of all-gather and reduce-scatter is (n - 1) / n.
        expected = algbw / 2 if op["name"].startswith("nccl") else None
        assert op["busbw_GBps"] == (pytest.approx(expected) if expected else None)


def test_a_device_that_hangs_holds_up_neither_the_trace_nor_the_other_counts(tmp_path):
    """The ranks end by a kill; their calls are in the ledger, timed or not. The signal that ends rank 0 because
    rank 1 has died may come between the library's return from a call and ours: that call is unfinished."""
    run = trainer(
        tmp_path, "events", 128 + 9,
        STANDIN_HANG_DEVICE="0:ncclReduceScatter:20", STANDIN_DIE="1:ncclReduceScatter:20",
        STANDIN_TIMEOUT_S="5",
    )
    assert tprof("recover", run.traces).returncode == 0
    for file in run.ranks():
        ours = figures.of_ledger(file)
        expected = figures.of_tally(run.tallies()[file.header["pid"]])
        unfinished = {row["name"] for row in file.ledger_rows() if row["unfinished"]}
        if file.rank == 0 and len(unfinished) == 1:
            for table in (ours, expected):
                for key in [key for key in table if key[1] in unfinished]:
                    del table[key]
        assert figures.difference(ours, expected) == "", file.path


def test_a_merged_trace_has_an_arrow_from_each_call_to_its_time_on_the_device(tmp_path):
    run = trainer(tmp_path, "events")
    expected = sum(len(device_lines(file)) for file in run.ranks())
    for once, twice in ((run.traces, tmp_path / "m.json"), (tmp_path / "m.json", tmp_path / "n.json")):
        assert tprof("merge", once, "-o", twice).returncode == 0
        lines = json.loads(twice.read_text())
        assert [e.message for line in lines for e in SCHEMA.iter_errors(line)] == []
        to_device = [line for line in lines if line["name"] == "to the device"]
        begins = {line["id"]: line for line in to_device if line["ph"] == "s"}
        ends = {line["id"]: line for line in to_device if line["ph"] == "f"}
        assert len(begins) == expected and begins.keys() == ends.keys()
        calls = [line for line in lines if line["ph"] == "X" and line["cat"] not in ("DEVICE", "BUSY")]
        spans = {(c["pid"], c["tid"], round(c["ts"] * 1000)) for c in calls}
        for arrow in begins.values():
            at = round(arrow["ts"] * 1000)
            assert any((arrow["pid"], arrow["tid"], at - ns) in spans for ns in (0, 1))


def test_work_that_a_dead_rank_left_waiting_was_never_through_and_not_refused(tmp_path):
    """The device of the rank that lives gives up after seconds, and its process ends in order."""
    ranks = ["env", "WORLD_SIZE=2", "DEVICES=2", f"NATIVE_TRAINER_ID={tmp_path}/id", "sh", "-c", ALL_RANKS, "ranks"]
    run = start([*ranks, BUILD / "native_trainer", "--steps", 5, "--blocks", 1], tmp_path, TPROF_TIMING="events",
                STANDIN_DIE="1:ncclReduceScatter:1", STANDIN_TIMEOUT_S="3")  # fmt: skip
    assert run.code != 0
    file = rankfile.read(run.traces / "rank-00000.json")
    lost = file.footer["timing_lost"]
    assert set(lost) <= {"unread", "sync"} and lost["unread"] > 0

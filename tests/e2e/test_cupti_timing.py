"""TPROF_TIMING=cupti: compares device time by CUPTI's records with the schedule of the stand-in, whose
libcupti makes the records. Others who want CUPTI get it."""

import json

import pytest
from lib import device_work
from lib.build import BUILD, STANDIN
from lib.contract import SCHEMA
from lib.launch import without_agent
from lib.rankfile import untimed
from lib.timed import RANKS, device_lines, ran, traced, trainer
from lib.tool import tprof

pytestmark = pytest.mark.timed


def test_the_calls_of_a_group_have_the_one_time_of_their_kernel(tmp_path):
    run = traced(device_work.groups(3, 4), tmp_path, "cupti", STANDIN_LATENCY_US="300")
    (file,) = run.ranks()
    expected = [ended - began for began, ended in ran(tmp_path, file)["ncclAllGather"]]
    assert len(expected) == 3
    (row,) = file.ledger_rows()
    assert (row["calls"], row["device_timed"]) == (12, 12)
    assert row["device_ns"] == sum(expected)
    lines = device_lines(file)
    assert [line["args"]["calls"] for line in lines] == [4, 4, 4]
    assert sorted(round(line["dur"] * 1000) for line in lines) == sorted(expected)


@pytest.mark.parametrize("timing", ["cupti", "events"])
def test_calls_of_several_sizes_in_a_group_have_one_time_that_is_no_rows(timing, tmp_path):
    run = traced(device_work.groups(3, 4, uneven=True), tmp_path, timing, STANDIN_LATENCY_US="3000")
    (file,) = run.ranks()
    expected = sorted(ran(tmp_path, file)["ncclAllGather"])
    assert len(expected) == 3
    rows = file.ledger_rows()
    assert [(row["calls"], row["device_timed"]) for row in rows] == [(3, 0)] * 4
    assert file.footer["timing_lost"] == {"mixed": 12}
    lines = sorted(device_lines(file), key=lambda line: line["ts"])
    assert [(line["name"], line["args"]["calls"]) for line in lines] == [("ncclGroupEnd", 4)] * 3
    first = [e for e in file.events if e["cat"] == "ALLGATHER" and e["args"]["seq"] % 4 == 0]
    for line, call, (began, ended) in zip(lines, first, expected, strict=True):
        assert line["args"]["seq"] == call["args"]["seq"]
        assert line["ts"] - line["args"]["queued"] == pytest.approx(call["ts"], abs=0.001)
        # One event is before the group, another one behind it.
        error_ns = 2_000
        assert line["ts"] * 1000 < began + error_ns and (line["ts"] + line["dur"]) * 1000 > ended - error_ns
        if timing == "cupti":
            assert line["dur"] * 1000 == pytest.approx(ended - began, abs=1)
    merged = tmp_path / "merged.json"
    assert tprof("merge", run.traces, "-o", merged).returncode == 0
    shown = [line for line in json.loads(merged.read_text()) if line.get("cat") == "DEVICE"]
    assert [(line["name"], line["args"]["op"]) for line in shown] == [("Group", "ncclGroupEnd")] * 3
    assert all(not list(SCHEMA.iter_errors(line)) for line in shown)


@pytest.mark.parametrize("how", ["linked", "dlsym"])
@pytest.mark.parametrize("when, ours", [("first", 0), ("later", 5)])
def test_a_program_that_wants_cupti_has_it_and_is_left_alone_from_then_on(when, ours, how, tmp_path):
    run = traced([BUILD / "cupti_user", when, how], tmp_path, "cupti")
    assert run.stdout == "subscribed 0, saw 7 copies, 0 buffers of others\n"
    (word,) = run.words_of_ours()
    assert "CUPTI" in word
    (file,) = run.ranks()
    assert sum(row["calls"] for row in file.ledger_rows()) == ours + 10 or when == "first"
    timed = sum(row["device_timed"] for row in file.ledger_rows())
    assert timed + untimed(file) == ours
    assert set(file.footer.get("timing_lost", {})) <= {"tool"}


def test_a_tool_that_was_there_before_keeps_it_and_that_is_said_once(tmp_path):
    run = trainer(tmp_path, "cupti", STANDIN_CUPTI_TAKEN="1")
    words = run.words_of_ours()
    assert len(words) == RANKS and all("another tool is using CUPTI" in word for word in words)
    for file in run.ranks():
        assert sum(row["device_timed"] for row in file.ledger_rows()) == 0
        assert untimed(file) == 0


def test_calls_that_come_while_cupti_lets_us_in_count_as_not_timed(tmp_path):
    run = trainer(tmp_path, "cupti", STANDIN_CUPTI_SUBSCRIBE_AFTER="7")
    for file in run.ranks():
        rows = file.ledger_rows()
        timed = sum(row["device_timed"] for row in rows)
        assert 0 < timed < sum(row["calls"] for row in rows)
        assert timed + untimed(file) == sum(row["calls"] for row in rows)


def test_without_a_libcupti_that_loads_calls_have_the_hosts_times_and_that_is_said_once(tmp_path):
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for path in STANDIN.glob("lib*.so*"):
        (libraries / path.name).symlink_to(path)
    # The file stays, but empty: without one the loader goes on looking, and this machine may have a real
    # one.
    (libraries / "libcupti.so.13").unlink()
    (libraries / "libcupti.so.13").touch()
    run = trainer(tmp_path, "cupti", LD_LIBRARY_PATH=str(libraries))
    words = run.words_of_ours()
    assert len(words) == RANKS and all("no libcupti" in word for word in words)
    for file in run.ranks():
        assert sum(row["device_timed"] for row in file.ledger_rows()) == 0


def test_times_that_cannot_be_are_counted_and_not_believed(tmp_path):
    for file in trainer(tmp_path, "cupti", STANDIN_CUPTI_IMPOSSIBLE="4").ranks():
        truth = ran(tmp_path, file)
        lost = file.footer["timing_lost"]
        assert set(lost) == {"impossible"}
        rows = file.ledger_rows()
        calls = sum(row["calls"] for row in rows)
        assert lost["impossible"] == calls // 4
        assert sum(row["device_timed"] for row in rows) == calls - lost["impossible"]
        expected = {ended - began for spans in truth.values() for began, ended in spans}
        assert {round(line["dur"] * 1000) for line in device_lines(file)} <= expected


def test_only_calls_of_a_windows_steps_are_timed(tmp_path):
    run = trainer(
        tmp_path, "cupti", TPROF_STEP="call:cudaMemcpyAsync@4096", TPROF_SCHEDULE="wait=3,active=4,repeat=1",
        STANDIN_LATENCY_US="5000",
    )
    for file in run.ranks():
        truth = ran(tmp_path, file)
        rows = file.ledger_rows()
        calls, timed = sum(row["calls"] for row in rows), sum(row["device_timed"] for row in rows)
        assert 0 < timed <= timed + untimed(file) < calls
        times = device_lines(file)
        (window,) = [line["args"] for line in file.lines if line["name"] == "tprof_window"]
        for line in times:
            called = line["ts"] - line["args"]["queued"]
            assert window["ts"] <= called <= window["ts"] + window["dur"]
            assert round(line["dur"] * 1000) in {ended - began for began, ended in truth[line["name"]]}


def test_calls_of_fsdp2_take_as_long_as_the_devices_schedule_says(tmp_path):
    run = traced(without_agent("fsdp2.py", 2), tmp_path, "cupti", STANDIN_LATENCY_US="200")
    assert len(run.ranks()) == 2
    for file in run.ranks():
        truth = ran(tmp_path, file)
        for name in ("ncclAllGather", "ncclReduceScatter"):
            rows = [row for row in file.ledger_rows() if row["name"] == name]
            expected = [ended - began for began, ended in truth[name]]
            assert sum(row["device_timed"] for row in rows) == sum(row["calls"] for row in rows)
            assert sum(row["device_ns"] for row in rows) == sum(expected)


def test_compute_is_busy_while_kernels_run_that_are_not_nccls(tmp_path):
    """Kernels run on several streams at once, and each moment counts once."""
    run = traced(
        device_work.command("light_second_stream", steps=5), tmp_path, "cupti", STANDIN_BLOCK_US="1", STANDIN_GBPS="0.001"
    )
    (file,) = run.ranks()
    busy, until = 0, 0
    for began, ended in sorted(ran(tmp_path, file)["kernel"]):
        busy += max(0, ended - max(began, until))
        until = max(until, ended)
    compute = file.footer["compute"]
    (device,) = compute["devices"]
    assert device["device"] == 0
    # Two clocks, and ends that meet, make a difference of a nanosecond each.
    assert device["busy_ns"] == pytest.approx(busy, abs=100)
    assert busy < compute["window_ns"] <= file.ledgers[-1]["ts"] * 1000
    assert "compute kernels: busy" in tprof("summary", run.traces).stdout
    assert json.loads(tprof("summary", run.traces, "--json").stdout)["compute"] == {
        "busy_ns": device["busy_ns"], "window_ns": compute["window_ns"],
    }

"""TPROF_TIMING=cupti: compares device time by CUPTI's records with the schedule of the stand-in, whose
libcupti makes the records. Others who want CUPTI get it."""

import collections
import json
import signal

import pytest
from lib import device_work, figures
from lib.build import BUILD, STANDIN
from lib.contract import SCHEMA
from lib.launch import start, without_agent
from lib.rankfile import untimed
from lib.tool import tprof

pytestmark = pytest.mark.timed

LATENCY_US = 1000
STEPS = 10
RANKS = 2


def traced(command, folder, code=0, **settings):
    schedule = folder / "schedule"
    schedule.mkdir(parents=True)
    run = start(command, folder, **{"STANDIN_SCHEDULE": str(schedule), "TPROF_TIMING": "cupti", **settings})
    assert run.code == code, run.stderr
    return run


def trainer(folder, code=0, **settings):
    command = [BUILD / "native_trainer", "--ranks", RANKS, "--steps", STEPS]
    return traced(command, folder, code, **{"STANDIN_LATENCY_US": str(LATENCY_US), **settings})


def ran(folder, file):
    """Returns what ran on the devices, by name: (began, ended) in ns, on the axis of the rank file."""
    base = file.header["monotonic_ns"]
    table = collections.defaultdict(list)
    for line in (folder / "schedule" / f"schedule-{file.header['pid']}").read_text().splitlines():
        _, what, _, began, ended, *_ = line.split()
        table[what].append((int(began) - base, int(ended) - base))
    return table


def device_lines(file):
    return [line for line in file.lines if line.get("cat") == "DEVICE"]


def test_each_calls_time_is_what_the_device_spent_on_it_by_its_own_schedule(tmp_path):
    for file in trainer(tmp_path).ranks():
        truth = ran(tmp_path, file)
        assert untimed(file) == 0
        for name in ("ncclAllGather", "ncclReduceScatter", "cudaMemcpyAsync"):
            rows = [row for row in file.ledger_rows() if row["name"] == name]
            assert all(row["device_timed"] == row["calls"] for row in rows)
            assert all(row["device_bytes"] == row["bytes"] for row in rows)
            expected = [ended - began for began, ended in truth[name]]
            assert sum(row["device_timed"] for row in rows) == len(expected)
            assert sum(row["device_ns"] for row in rows) == sum(expected)
            assert max(row["device_ns_max"] for row in rows) == max(expected)


def test_lines_are_where_and_as_long_as_the_schedule_says(tmp_path):
    run = trainer(tmp_path)
    for file in run.ranks():
        new = [line for line in file.lines if line["name"] in ("tprof_device_clock", "tprof_footer")]
        for line in new + device_lines(file)[:5]:
            assert [e.message for e in SCHEMA.iter_errors(line)] == []
        truth = ran(tmp_path, file)
        clocks = [line["args"] for line in file.lines if line["name"] == "tprof_device_clock"]
        error_ns = max(clock["error_ns"] for clock in clocks) + 1000
        lines = collections.Counter()
        for line in device_lines(file):
            lines[line["name"]] += 1
            assert line["tid"] == 2**23 + line["args"].get("stream", 0)
            assert line["args"]["queued"] >= 0
            began = round(line["ts"] * 1000)
            assert any(
                ended - start == round(line["dur"] * 1000) and abs(start - began) <= error_ns
                for start, ended in truth[line["name"]]
            ), line
        assert lines == {name: len(truth[name]) for name in ("ncclAllGather", "ncclReduceScatter", "cudaMemcpyAsync")}
    public = tmp_path / "public"
    assert tprof("anonymize", run.traces, "-o", public).returncode == 0


def test_counts_are_the_tallys(tmp_path):
    run = trainer(tmp_path)
    for file in run.ranks():
        expected = figures.of_tally(run.tallies()[file.header["pid"]])
        assert figures.difference(figures.of_ledger(file), expected) == "", file.path


def test_a_graphs_launch_has_one_time_for_all_that_it_executes(tmp_path):
    run = traced([BUILD / "graphs", "several_streams"], tmp_path, STANDIN_LATENCY_US="500")
    (file,) = run.ranks()
    launches = [e for e in file.lines if e.get("cat") == "GRAPH"]
    times = [line for line in device_lines(file) if line["name"] == "cudaGraphLaunch"]
    assert len(times) == len(launches) == 3
    assert all(t["dur"] >= 500 for t in times)


def test_the_calls_of_a_group_have_the_one_time_of_their_kernel(tmp_path):
    run = traced(device_work.groups(3, 4), tmp_path, STANDIN_LATENCY_US="300")
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
    run = traced(device_work.groups(3, 4, uneven=True), tmp_path, STANDIN_LATENCY_US="3000", TPROF_TIMING=timing)
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
    run = traced([BUILD / "cupti_user", when, how], tmp_path)
    assert run.stdout == "subscribed 0, saw 7 copies, 0 buffers of others\n"
    (word,) = run.words_of_ours()
    assert "CUPTI" in word
    (file,) = run.ranks()
    assert sum(row["calls"] for row in file.ledger_rows()) == ours + 10 or when == "first"
    timed = sum(row["device_timed"] for row in file.ledger_rows())
    assert timed + untimed(file) == ours
    assert set(file.footer.get("timing_lost", {})) <= {"tool"}


def test_a_tool_that_was_there_before_keeps_it_and_that_is_said_once(tmp_path):
    run = trainer(tmp_path, STANDIN_CUPTI_TAKEN="1")
    words = run.words_of_ours()
    assert len(words) == RANKS and all("another tool is using CUPTI" in word for word in words)
    for file in run.ranks():
        assert sum(row["device_timed"] for row in file.ledger_rows()) == 0
        assert untimed(file) == 0


def test_calls_that_come_while_cupti_lets_us_in_count_as_not_timed(tmp_path):
    run = trainer(tmp_path, STANDIN_CUPTI_SUBSCRIBE_AFTER="7")
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
    run = trainer(tmp_path, LD_LIBRARY_PATH=str(libraries))
    words = run.words_of_ours()
    assert len(words) == RANKS and all("no libcupti" in word for word in words)
    for file in run.ranks():
        assert sum(row["device_timed"] for row in file.ledger_rows()) == 0


def test_times_that_cannot_be_are_counted_and_not_believed(tmp_path):
    for file in trainer(tmp_path, STANDIN_CUPTI_IMPOSSIBLE="4").ranks():
        truth = ran(tmp_path, file)
        lost = file.footer["timing_lost"]
        assert set(lost) == {"impossible"}
        rows = file.ledger_rows()
        calls = sum(row["calls"] for row in rows)
        assert lost["impossible"] == calls // 4
        assert sum(row["device_timed"] for row in rows) == calls - lost["impossible"]
        expected = {ended - began for spans in truth.values() for began, ended in spans}
        assert {round(line["dur"] * 1000) for line in device_lines(file)} <= expected


def test_what_was_read_is_there_after_a_kill_and_the_rest_is_not_timed(tmp_path):
    # Long enough for what takes a call half a second to be read, also on a busy machine.
    run = trainer(
        tmp_path, 128 + signal.SIGKILL, STANDIN_DIE="0:ncclReduceScatter:45", STANDIN_LATENCY_US="16000"
    )
    assert tprof("recover", run.traces).returncode == 0
    for file in run.ranks():
        truth = ran(tmp_path, file)
        rows = file.ledger_rows()
        assert 0 < sum(row["device_timed"] for row in rows) <= sum(row["calls"] for row in rows)
        for row in rows:
            assert row["device_ns"] >= row["device_timed"] * 16_000_000, row
        for line in device_lines(file):
            assert round(line["dur"] * 1000) in {ended - began for began, ended in truth[line["name"]]}


def test_only_calls_of_a_windows_steps_are_timed(tmp_path):
    run = trainer(
        tmp_path, TPROF_STEP="call:cudaMemcpyAsync@4096", TPROF_SCHEDULE="wait=3,active=4,repeat=1",
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
    run = traced(without_agent("fsdp2.py", 2), tmp_path, STANDIN_LATENCY_US="200")
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
        device_work.command("light_second_stream", steps=5), tmp_path, STANDIN_BLOCK_US="1", STANDIN_GBPS="0.001"
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

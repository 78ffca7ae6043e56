"""tprof ctl: a running process does what it is told, exactly from there on. The client makes calls when
the test says so, and the stand-in counts them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import pytest
from lib import rankfile
from lib.build import TPROF
from lib.commanded import commanded
from lib.contract import SCHEMA
from lib.rankfile import named
from lib.runs import until
from lib.tool import summary_of, tprof, worse_than_notes

MARKED = {"TPROF_STEP": "call:ncclReduceScatter"}


def gathers(lines) -> int:
    return sum(line["ph"] == "X" and line["name"] == "ncclAllGather" for line in lines)


def calls(file: rankfile.RankFile, name: str = "ncclAllGather") -> int:
    return sum(row["calls"] for row in file.ledger_rows() if row["name"] == name)


def obeyed(file: rankfile.RankFile) -> list[tuple]:
    lines = named(file.lines, "tprof_control")
    return [(line["ctl"], line.get("argument"), line["obeyed"]) for line in lines]


# This is what a job does and is told, how many all-gathers have a line, how many there were, and the steps of its
# windows.
TOLD = {
    "between stop and start there is no line": ({}, "gather 3, stop, stop, gather 5, start, start, gather 2", 5, 10, [None, None]),
    "killed after stop": ({}, "gather 3, stop, gather 5, kill", 3, 8, [None]),
    # A window is of whole steps that begin behind it: the step that goes on when it is asked for is not whole.
    "windows, asked first": (MARKED, "window 3, step 6, dump, window 1, step 2", 3 + 1, 8, [None, (2, 4), (8, 8)]),
    "windows, asked later": (MARKED, "step 2, window 3, step 6, dump, window 1, step 2", 2 + 3 + 1, 10, [None, (4, 6), (10, 10)]),
    "start goes on behind a window": (MARKED, "window 1, step 4, start, gather 2, stop, gather 4", 1 + 2, 10, None),
    "no lines until start": ({"TPROF_SCHEDULE": "ctl"}, "gather 2, start, gather 3", 3, 5, [None]),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_calls_have_lines_as_the_job_was_told_and_all_are_counted(name, tmp_path):
    settings, script, with_lines, all_of_them, expected = TOLD[name]
    answers, last = [], None
    with commanded(tmp_path, **settings) as job:
        for command in script.split(", "):
            what, *argument = command.split()
            if what in ("gather", "step"):
                job.does(what, *argument)
            elif what == "kill":
                job.process.kill()
                job.process.wait()
            else:
                answer = "already" if command == last else "done"
                assert job.ctl(*command.split()) == (0, [answer])
                answers.append((what, int(argument[0]) if argument else None, answer))
            last = command
        if last != "kill":
            file = job.ends()
            assert job.counted("ncclAllGather") == all_of_them
    if last == "kill":
        assert tprof("recover", job.traces).returncode == 0
        file = rankfile.read(job.file())
    assert (gathers(file.lines), calls(file)) == (with_lines, all_of_them)
    if not settings:
        assert file.footer["dropped"] == {"window": all_of_them - with_lines}
        assert named(file.lines, "tprof_window")[0]["ts"] == 0
    told = [(what, int(argument) if argument is not None else None, answer) for what, argument, answer in obeyed(file)]
    assert last == "kill" or told == answers
    windows = named(file.lines, "tprof_window")
    assert expected is None or [(w["first_step"], w["last_step"]) if "first_step" in w else None for w in windows] == expected
    for line in file.lines:
        SCHEMA.validate(line)
    assert last == "kill" or worse_than_notes(job.traces) == []


def test_metrics_of_a_window_are_in_its_file_and_nowhere_else(tmp_path):
    def metrics(text):
        return text.count('"name":"process memory, bytes"')

    settings = {"TPROF_SCHEDULE": "ctl", "TPROF_WINDOW_FILES": "1", "TPROF_METRICS": "100ms"}
    with commanded(tmp_path, **settings) as job:
        path = job.file()
        job.told("start")
        of_window = path.stem + ".*.json*"
        until(lambda: sum(metrics(file.read_text()) for file in job.traces.glob(of_window)) >= 2)
        job.told("stop")
        job.does("gather", 1)
        job.process.stdin.close()
        assert job.process.wait() == 0
    assert metrics(path.read_text()) == 0
    (window,) = named(rankfile.read(path).lines, "tprof_window")
    (file,) = rankfile.windows_of(path).values()
    at = [line["ts"] for line in file.lines if line.get("cat") == "COUNTER"]
    assert window["ts"] <= min(at) and max(at) <= window["ts"] + window["dur"]


def test_dump_puts_all_lines_and_the_ledger_into_the_file(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 4)
        job.told("dump")
        lines = rankfile.parsed_so_far(job.file())
        assert gathers(lines) == 4
        (dumped,) = [ledger for ledger in named(lines, "tprof_ledger") if ledger["reason"] == "dump"]
        assert sum(row["calls"] for row in dumped["rows"]) == 4 == job.counted("ncclAllGather")
        job.does("gather", 1)
        assert calls(job.ends()) == 5


def test_no_call_of_another_thread_is_lost_between_the_totals_and_the_reset(tmp_path):
    with commanded(tmp_path) as job:
        job.told("reset")
        (sum_of_epochs,) = job.does("race", 20_000)
        assert int(sum_of_epochs) == 20_000
        assert job.counted("ncclAllGather") == 20_000
        assert calls(job.ends()) == 20_000


def test_reset_begins_the_programs_totals_anew(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 3)
        job.told("reset")
        job.does("gather", 2)
        (totals,) = map(json.loads, job.does("totals"))
        assert (totals["epoch"], totals["buckets"]["ALLGATHER"]["calls"]) == (1, 2)
        job.does("reset")
        job.does("step", 4)
        job.told("dump")
        assert calls(job.ends()) == 9
    for epoch, gathers_then in enumerate((3, 2, 4)):
        found = summary_of(job.traces, "--epoch", epoch)
        assert found["buckets"]["ALLGATHER"]["calls"] == gathers_then
        assert found["buckets"].get("RESHARDING", {"calls": 0})["calls"] == (4 if epoch == 2 else 0)
    assert summary_of(job.traces)["buckets"]["ALLGATHER"]["calls"] == 9
    assert worse_than_notes(job.traces) == []
    for wrong in (["--epoch", 3], ["--epoch", 1, "--by", "step"], ["--epoch", "-1"]):
        done = tprof("summary", job.traces, *wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "--by" not in wrong or "--epoch works with --by size, comm or dtype, not step" in done.stderr


def test_a_time_that_is_read_after_a_reset_is_of_the_next_epoch(tmp_path):
    """The program's totals and the trace agree on that, and no epoch loses what another has."""
    figures = ("calls", "device_timed", "device_ns")

    def summed(*epochs, buckets):
        return [sum(of[bucket][figure] or 0 for of in epochs for bucket in buckets if bucket in of) for figure in figures]

    with commanded(tmp_path, TPROF_TIMING="events") as job:
        job.does("held", 3)
        job.does("reset")
        job.does("gather", 2)
        until(lambda: summary_of(job.traces)["buckets"]["ALL"]["device_timed"] == 3 + 3 + 2)
        (live,) = (json.loads(said)["buckets"] for said in job.does("totals"))
        job.ends()
    first, second, whole = (summary_of(job.traces, *epoch)["buckets"] for epoch in (["--epoch", 0], ["--epoch", 1], []))
    for bucket in ("ALLGATHER", "RESHARDING", "ALL"):
        assert summed(second, buckets=[bucket]) == summed(live, buckets=[bucket]), bucket
        assert summed(first, second, buckets=[bucket]) == summed(whole, buckets=[bucket]), bucket
    assert summed(live, buckets=["ALLGATHER", "RESHARDING"]) == summed(live, buckets=["ALL"])
    assert second["RESHARDING"]["calls"] == 0 and second["RESHARDING"]["device_timed"] > 0


def test_an_epoch_that_a_killed_process_ended_is_known(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 3)
        job.does("reset")
        job.told("dump")
        job.does("gather", 4)
        job.process.kill()
        job.process.wait()
    calls_of = [summary_of(job.traces, "--epoch", n)["buckets"]["ALLGATHER"]["calls"] for n in (0, 1)]
    assert calls_of == [3, 4]


def test_timing_is_switched_on_and_off(tmp_path):
    with commanded(tmp_path) as job:
        assert job.ctl("timing", "host") == (0, ["already"])
        job.does("gather", 2)
        job.told("timing", "events")
        job.does("gather", 3)
        assert job.ctl("timing", "events") == (0, ["already"])
        job.told("timing", "host")
        job.does("gather", 4)
        assert job.ctl("timing", "cupti") == (1, ["no_timer"])
        file = job.ends()
    (row,) = [row for row in file.ledger_rows() if row["name"] == "ncclAllGather"]
    assert (row["calls"], row["device_timed"]) == (9, 3) and row["device_ns"] > 0
    assert file.footer.get("timing_lost", {}) == {}


def test_timing_stays_off_where_it_would_order_the_streams(tmp_path):
    with commanded(tmp_path, CUDA_DEVICE_MAX_CONNECTIONS="1") as job:
        assert job.ctl("timing", "events") == (1, ["ordered"])


@pytest.mark.parametrize("settings, what, answer", [
    ({"TPROF_SCHEDULE": "active=2,repeat=1"}, ["stop"], "schedule"),
    ({"TPROF_SCHEDULE": "profiler"}, ["window", 2], "schedule"),
    ({"TPROF_EVENTS": "off"}, ["start"], "no_lines"),
    ({"TPROF_RANKS": "3"}, ["window", 2], "no_lines"),
    ({"TPROF_STEP": "off"}, ["window", 2], "no_steps"),
])
def test_what_settings_forbid_is_not_done_and_said(tmp_path, settings, what, answer):
    with commanded(tmp_path, **settings) as job:
        assert job.ctl(*what) == (1, [answer])
        done = tprof("ctl", job.traces, *what)
        assert done.returncode == 1 and done.stdout.count("\n") == 1
        file = job.ends()
    assert {line[2] for line in obeyed(file)} == {answer}


def test_all_ranks_of_a_folder_are_told_and_one_process_by_its_id(tmp_path):
    with (
        commanded(tmp_path / "a", TPROF_OUTPUT_DIR=str(tmp_path), WORLD_SIZE="2", TPROF_RUN_ID="x") as first,
        commanded(tmp_path / "b", TPROF_OUTPUT_DIR=str(tmp_path), RANK="1", WORLD_SIZE="2", TPROF_RUN_ID="x") as second,
    ):
        assert first.ctl("stop", target=tmp_path) == (0, ["done", "done"])
        assert first.ctl("start", target=second.process.pid) == (0, ["done"])
        text = tprof("ctl", tmp_path, "start").stdout
        assert text == (
            f"rank 0, pid {first.process.pid}: has event lines from now on\n"
            f"rank 1, pid {second.process.pid}: did so already\n"
        )


def test_a_process_that_is_stopped_obeys_when_it_goes_on(tmp_path):
    with commanded(tmp_path) as job:
        job.process.send_signal(signal.SIGSTOP)
        assert job.ctl("stop") == (1, ["silent"])
        assert job.ctl("start") == (1, ["not_asked"])  # nobody knows yet what came of the first
        job.process.send_signal(signal.SIGCONT)
        job.does("gather", 0)
        while job.ctl("stop") != (0, ["already"]):
            pass
        job.does("gather", 3)
        assert gathers(job.ends().lines) == 0


def as_another_user(*arguments):
    """Runs a copy of the tool: where it was built may be root's alone."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        copy = shutil.copy(TPROF, place)
        return subprocess.run(
            [copy, *map(str, arguments)], user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
            check=False, cwd=place,
        )  # fmt: skip


def test_another_user_is_refused(tmp_path):
    with commanded(tmp_path) as job:
        ring = job.ring()
        if os.geteuid() == 0:
            done = as_another_user("ctl", job.process.pid, "stop")
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
            assert "Permission denied" in done.stderr
        else:
            ring.chmod(0o400)
            done = tprof("ctl", job.process.pid, "stop")
            assert done.returncode == 1 and "Permission denied" in done.stdout
        job.does("gather", 3)
        assert gathers(job.ends().lines) == 3


def test_a_process_of_another_version_is_left_alone(tmp_path):
    layout_at = 8  # after the magic
    with commanded(tmp_path) as job:
        ring = job.ring()
        with ring.open("r+b") as file:
            file.seek(layout_at)
            file.write((9999).to_bytes(4, "little"))
        done = tprof("ctl", job.process.pid, "stop")
    assert done.returncode == 1 and "layout 9999" in done.stdout and done.stdout.count("\n") == 1


def test_bad_input_is_one_line(tmp_path):
    with commanded(tmp_path) as job:
        pid = job.process.pid
        job.process.kill()
        job.process.wait()
        for target, *what in (
            (job.traces, "stop"), (pid, "stop"), (os.getpid(), "stop"), (job.traces, "frobnicate"),
            (job.traces, "window"), (job.traces, "window", "0"), (job.traces, "window", "many"),
            (job.traces, "timing", "sundial"), (job.traces, "stop", "now"), (tmp_path / "nothing", "stop"),
        ):
            done = tprof("ctl", target, *what)
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), (target, what)

"""tprof ctl: a running process does what it is told, exactly from there on. The client makes calls when
the test says so, and the stand-in counts them."""

import json
import os
import pathlib
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


def test_what_is_called_between_stop_and_start_has_no_line_and_is_counted(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 3)
        job.told("stop")
        assert job.ctl("stop") == (0, ["already"])
        job.does("gather", 5)
        job.told("start")
        assert job.ctl("start") == (0, ["already"])
        job.does("gather", 2)
        file = job.ends()
        assert gathers(file.lines) == 5 and calls(file) == 10 == job.counted("ncclAllGather")
    assert file.footer["dropped"] == {"window": 5}
    windows = named(file.lines, "tprof_window")
    assert len(windows) == 2 and windows[0]["ts"] == 0
    assert obeyed(file) == [("stop", None, "done"), ("stop", None, "already"),
                            ("start", None, "done"), ("start", None, "already")]
    for line in file.lines:
        SCHEMA.validate(line)
    assert worse_than_notes(job.traces) == []


def test_a_process_that_is_killed_after_stop_has_the_lines_from_before(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 3)
        job.told("stop")
        job.does("gather", 5)
        job.process.kill()
        job.process.wait()
    assert tprof("recover", job.traces).returncode == 0
    file = rankfile.read(job.file())
    assert (gathers(file.lines), calls(file), file.footer["dropped"]) == (3, 8, {"window": 5})


@pytest.mark.parametrize("asked_first", [False, True])
def test_a_window_is_of_whole_steps_that_begin_behind_it(tmp_path, asked_first):
    with commanded(tmp_path, **MARKED) as job:
        if not asked_first:
            job.does("step", 2)
        job.told("window", 3)
        job.does("step", 6)
        job.told("dump")
        (window,) = [w for w in named(rankfile.parsed_so_far(job.file()), "tprof_window") if "first_step" in w]
        # The step that goes on when it is asked for is not whole.
        first = 2 if asked_first else 4
        assert (window["first_step"], window["last_step"]) == (first, first + 2)
        job.told("window", 1)
        job.does("step", 2)
        file = job.ends()
    before = 0 if asked_first else 2
    assert gathers(file.lines) == before + 3 + 1
    assert calls(file) == before + 8 == job.counted("ncclAllGather")
    assert [w.get("first_step") for w in named(file.lines, "tprof_window")] == [None, first, before + 8]


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


def test_start_goes_on_behind_a_window(tmp_path):
    with commanded(tmp_path, **MARKED) as job:
        job.told("window", 1)
        job.does("step", 4)
        job.told("start")
        job.does("gather", 2)
        job.told("stop")
        job.does("gather", 4)
        file = job.ends()
    assert (gathers(file.lines), calls(file)) == (1 + 2, 10)


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


def test_with_schedule_ctl_there_are_no_lines_until_start(tmp_path):
    with commanded(tmp_path, TPROF_SCHEDULE="ctl") as job:
        job.does("gather", 2)
        job.told("start")
        job.does("gather", 3)
        file = job.ends()
    assert (gathers(file.lines), calls(file)) == (3, 5)


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

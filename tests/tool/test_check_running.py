"""tprof check and report on jobs that run: how far the ranks are, and for how long nobody has called."""

import contextlib
import pathlib
import re
import signal

import pytest
from lib import launch, live
from lib.commanded import commanded
from lib.runs import until
from lib.tool import told


@pytest.fixture(scope="module", params=["off", "events"])
def stands(request, tmp_path_factory):
    """Yields the traces of a job whose rank 1 is in its fifth reduce-scatter, and whose rank 0 waits for it."""
    folder = tmp_path_factory.mktemp("stands")
    with live.standing_still(folder, TPROF_TIMING=request.param):
        yield folder / "traces"


def running(traces):
    code, found = told("check", traces)
    (note,) = found["findings"]
    assert (note["kind"], note["severity"], code) == ("running", "note", 0), found
    return note["text"]


def test_a_job_in_which_nobody_calls_is_not_called_well(stands):
    """Rank 0 made collectives that rank 1 did not come to: that is known long before the job is said to hang. Nor does
    a device that has not ended them hold it up: the host of rank 1 is inside."""
    text = until(lambda: "no rank has made a call for" in running(stands) and running(stands))
    far = re.fullmatch(
        r"ranks 0,1 are still running: the counts are as of now; no rank has made a call for (\d+)\.\d{3} s, and "
        r"some ranks are behind: rank 1 made (\d+) collectives of (\d+) on communicator [0-9a-f]{16}; it "
        r"counts as a hang after 30\.000 s without a call \(--stuck-after of tprof check\)",
        text,
    )
    assert far and int(far[1]) >= 3, text
    assert [int(far[3]), int(far[2])] == collectives_of(stands.parent)
    verdict = told("report", stands)[1]["verdict"]
    assert verdict["severity"] == "note"
    assert "rank 1 made" in verdict["text"]


def collectives_of(folder):
    """Returns for each rank how many collectives returned, as the stand-in has counted."""
    made = [0, 0]
    for (rank, _, function), amounts in live.counted(folder).items():
        if function.startswith("nccl") and function not in ("ncclSend", "ncclRecv"):
            made[rank] += amounts["calls"]
    return made


def test_a_job_that_goes_on_is_well_so_far(tmp_path):
    with launch.running([*live.TRAINER, "1000000"], tmp_path) as job:
        assert any("3" in step for step in job.stdout)
        text = running(tmp_path / "traces")
        verdict = told("report", tmp_path / "traces")[1]["verdict"]
        assert job.poll() is None
    assert text == "ranks 0,1 are still running: the counts are as of now"
    assert "still running" not in verdict["text"] and verdict["severity"] in ("ok", "note")


def test_where_all_came_the_last_collective_is_told(tmp_path):
    """After --stuck-after, and as a note: a long checkpoint looks alike."""

    def text(*options):
        code, found = told("check", job.traces, *options)
        (note,) = [f for f in found["findings"] if f["kind"] == "running"]
        assert (code, note["severity"]) == (0, "note")
        assert ("py-spy dump --native --pid" in (note["next"] or "")) == ("every rank reached" in note["text"])
        return note["text"]

    with commanded(tmp_path) as job:
        job.does("gather", 5)
        long = until(lambda: "no rank has made a call" in text("--stuck-after", "1") and text("--stuck-after", "1"))
        assert re.search(
            r"no rank has made a call for \d+\.\d{3} s, and every rank reached the last collective, ncclAllGather, "
            r"collective 4 of communicator [0-9a-f]{16}: the program does something else \(a checkpoint, an ",
            long,
        )
        assert "every rank reached" not in text("--stuck-after", "100000")
        verdict = told("report", job.traces)[1]["verdict"]
        assert (verdict["severity"], verdict["text"][:17]) == ("note", "Rank 0 is still r")


PF_EXITING = 0x4  # among the flags of /proc/PID/stat


def main_thread_ended(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def every_thread_exits(pid):
    threads = []
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # the thread has gone since it was listed
            threads.append(stat.read_text().rpartition(")")[2].split())
    return threads and all(int(fields[6]) & PF_EXITING for fields in threads)


@pytest.mark.parametrize("held_mib", [0, 1000])
def test_a_process_that_was_killed_does_not_run_until_somebody_waits_for_it(tmp_path, held_mib):
    """It is a zombie, and with much memory not even that: its last thread gives back the memory first, and then its
    files and locks."""
    with commanded(tmp_path) as job:
        job.does("gather", 5)
        job.does("hold", held_mib)
        assert running(job.traces).startswith("rank 0 is still running: the counts are as of now")
        job.process.kill()
        until(lambda: every_thread_exits(job.process.pid))
        code, found = told("check", job.traces)
        assert [f["kind"] for f in found["findings"]] == ["not_closed"] and code == 0
        assert every_thread_exits(job.process.pid)  # nobody has waited for it


def test_a_process_runs_also_when_its_main_thread_has_ended(tmp_path):
    """Its main thread is a zombie then, too."""
    with commanded(tmp_path) as job:
        job.does("leave")
        until(lambda: main_thread_ended(job.process.pid))
        assert running(job.traces) == "rank 0 is still running: the counts are as of now"


def test_a_stopped_process_is_named(tmp_path):
    with commanded(tmp_path) as job:
        job.does("gather", 5)

        def hangs():
            _, found = told("check", job.traces, "--stuck-after", "1")
            return [f for f in found["findings"] if f["kind"] == "hang"]

        job.process.send_signal(signal.SIGSTOP)
        (stopped,) = until(hangs)
        assert stopped["ranks"] == [0] and stopped["severity"] == "error"
        assert stopped["next"].startswith(f"let it go on: kill -CONT {job.process.pid} on ")
        job.process.send_signal(signal.SIGCONT)
        job.does("gather", 1)
        until(lambda: not hangs())

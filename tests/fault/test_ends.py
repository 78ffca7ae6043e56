"""However a process ends, every call that returned is counted once, and every open one is reported.

Where exit handlers run, the library closes the file itself. Otherwise the ring file stays behind,
and `tprof recover` closes it. The program's own counts say what must be there.
"""

import dataclasses
import os
import pathlib
import platform
import signal
import subprocess
import time

import pytest
from lib import counted, runs
from lib.tool import merged, told, tprof


@dataclasses.dataclass(frozen=True)
class End:
    code: int
    closes: bool  # the library closes the file itself


ENDS = {
    "return": End(6, True),
    "exit": End(3, True),
    "handled": End(4, True),  # exit() in the handler of SIGTERM
    "pthread_exit": End(3, True),  # of the main thread, long before the others
    "_exit": End(3, True),
    "_Exit": End(3, True),
    "quick_exit": End(3, False),
    "handled by _exit": End(4, True),
    "handled by quick_exit": End(4, False),
    "exec": End(3, False),
    "raw": End(3, False),  # the system call itself
    "abort": End(-signal.SIGABRT, False),
    "throw": End(-signal.SIGABRT, False),
    "segv": End(-signal.SIGSEGV, False),
    "term": End(-signal.SIGTERM, False),
    "kill": End(-signal.SIGKILL, False),
}
GROUP_CALLS = 4


def check(traced: runs.Run, closes: bool, unfinished: int = 0) -> list[dict]:
    rings = list(traced.traces.glob(".*.ring"))
    assert len(rings) == (0 if closes else 1)
    runs.recover(traced.traces)
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts, unfinished)
    return lines


@pytest.mark.parametrize("how", ENDS)
def test_end(how, tmp_path):
    plain = runs.run(tmp_path / "plain", runs.client("end", how), preload=False)
    traced = runs.run(tmp_path / "traced", runs.client("end", how))
    assert traced.outcome() == plain.outcome() == (ENDS[how].code, "")
    assert traced.stderr == plain.stderr
    lines = check(traced, ENDS[how].closes)
    footer = runs.footer(lines)
    assert footer["dropped"] == {}
    assert footer.get("exit_status") == (ENDS[how].code if ENDS[how].closes else None)


# "return" with "late": static destructors, and an atexit handler that was registered before all
# others, make calls after the file was closed.
@pytest.mark.parametrize("how", ["return", "exit", "handled"])
def test_calls_after_the_file_was_closed(how, tmp_path):
    traced = runs.run(tmp_path, runs.client("end", how, "late"))
    assert (traced.code, traced.stderr) == (ENDS[how].code, "")
    lines = check(traced, closes=True)
    assert len(runs.named(lines, "tprof_footer")) == 1


@pytest.mark.parametrize("how", ENDS)
def test_end_inside_a_group(how, tmp_path):
    """None of the group's calls was issued, so they are unfinished."""
    traced = runs.run(tmp_path, runs.client("end", how, "group"))
    assert traced.code == ENDS[how].code
    check(traced, ENDS[how].closes, unfinished=GROUP_CALLS)


@pytest.mark.parametrize("how", ENDS)
def test_end_inside_a_group_that_fills_the_ring(how, tmp_path):
    traced = runs.run(tmp_path, runs.client("end", how, "large group"), TPROF_RING="64")
    assert traced.code == ENDS[how].code
    lines = check(traced, ENDS[how].closes, unfinished=25 * GROUP_CALLS)
    assert len([line for line in lines if line["ph"] == "B"]) <= 64


def test_a_program_that_closes_all_descriptors(tmp_path, monkeypatch):
    """The program's next file gets our number, and nothing of ours is written there. The ring file has the rest."""
    monkeypatch.chdir(tmp_path)
    traced = runs.run(tmp_path, runs.client("end", "return", "closed"))
    assert traced.code == 6 and (tmp_path / "own-file").stat().st_size == 0
    assert any("closed the trace's descriptor" in line for line in traced.complaints())
    check(traced, closes=False)


@pytest.mark.parametrize("how", ["return", "kill", "_exit"])
def test_the_end_of_a_child_that_shares_our_memory_changes_nothing(how, tmp_path):
    traced = runs.run(tmp_path, runs.client("end", how, "vfork"))
    assert (traced.code, traced.stderr) == (ENDS[how].code, "")
    check(traced, ENDS[how].closes)


def test_a_file_that_cannot_be_written_does_not_keep_the_process(tmp_path):
    """exit() waits as any write does; _exit, which a signal handler may call, gives up."""
    traced = runs.run(tmp_path, runs.client("end", "handled by _exit"), TROUBLE="stall")
    assert (traced.code, traced.stderr) == (4, "")
    check(traced, closes=False)


STATX, FSTATAT = {"x86_64": ("332", "262"), "aarch64": ("291", "79")}[platform.machine()]


@pytest.mark.parametrize("refused", [[STATX], [STATX, FSTATAT]])
def test_a_program_that_closes_all_descriptors_where_no_one_may_ask_whose_they_are(
    refused, tmp_path, monkeypatch
):
    """A container whose profile is older than statx refuses it. A descriptor that is not known is not ours."""
    monkeypatch.chdir(tmp_path)
    limits = [argument for call in refused for argument in ("--refuse", call)]
    traced = runs.run(tmp_path, runs.client(*limits, "end", "return", "closed"))
    assert traced.code == 6 and (tmp_path / "own-file").stat().st_size == 0
    assert "closed the trace's descriptor" in traced.stderr


# The client's calls are the same each time: its two threads make 19 all-reduces, then the last.
LAST_ALL_REDUCE = "20"


class Waiting:
    """A client that waits: inside a call that does not return, or in pause()."""

    def __init__(self, folder: pathlib.Path, *mode: str, **env: str):
        self.folder = folder
        self.process = subprocess.Popen(
            runs.client("end", *mode),
            env=runs.environment(folder, **env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        return self.process.stdout.readline().strip()

    def ends(self, text: str = "") -> runs.Run:
        stdout, stderr = self.process.communicate(text, timeout=runs.TIME_LIMIT_S)
        code = self.process.returncode
        return runs.Run(code, stdout, stderr, self.folder / "traces", self.folder / "counts")


def test_a_call_that_returns_after_all(tmp_path):
    client = Waiting(tmp_path, "return", "call", INSTANT_GATE=LAST_ALL_REDUCE)
    assert client.says() == "inside"
    traced = client.ends("x")
    assert (traced.code, traced.stderr) == (6, "")
    check(traced, closes=True)


@pytest.mark.parametrize(("how", "signals", "code"), [
    ("return", [signal.SIGKILL], -signal.SIGKILL),
    ("return", [signal.SIGTERM], -signal.SIGTERM),
    ("return", [signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM], -signal.SIGTERM),
    ("handled", [signal.SIGTERM], 4),  # exit() in a handler that interrupts the call
    ("handled by _exit", [signal.SIGTERM], 4),
])
def test_hang_inside_a_call(how, signals, code, tmp_path):
    """The library never returns, so the call is reported as begun and unfinished."""
    client = Waiting(tmp_path, how, "call", INSTANT_GATE=LAST_ALL_REDUCE)
    assert client.says() == "inside"
    for number in signals:
        client.process.send_signal(number)
    traced = client.ends()
    assert (traced.code, traced.stderr) == (code, "")
    lines = check(traced, closes=how.startswith("handled"), unfinished=1)
    (begun,) = [line for line in lines if line["ph"] == "B"]
    assert begun["name"] == "ncclAllReduce"


def test_a_running_process_that_hangs_shows_its_call(tmp_path):
    client = Waiting(tmp_path, "return", "call", INSTANT_GATE=LAST_ALL_REDUCE)
    assert client.says() == "inside"
    lines = merged(tmp_path / "traces", tmp_path / "merged.json")
    client.process.kill()
    client.ends()
    begun = [event["name"] for event in lines if event["ph"] == "B"]
    assert begun == ["ncclAllReduce"]


def test_a_process_that_became_another_program_does_not_run_any_more(tmp_path):
    """The process still has the pid, and the time of its start."""
    client = Waiting(tmp_path, "becomes cat")
    client.process.stdin.write("cat\n")
    client.process.stdin.flush()
    assert client.says() == "cat"
    runs.recover(tmp_path / "traces")
    traced = client.ends()
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)


def writers_cores(process: subprocess.Popen) -> set[int]:
    """Returns the cores on which the library's thread may run, once it has settled: then it has its name."""
    until = time.monotonic() + runs.TIME_LIMIT_S
    while time.monotonic() < until:
        for thread, name in runs.threads(process.pid).items():
            if name == "tprof":
                return os.sched_getaffinity(thread)
    raise AssertionError("no thread of the library")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("where", ["", "pinned"])
@pytest.mark.parametrize("bound", [False, True])
def test_the_writer_has_the_cores_that_the_launcher_gave(where, bound, tmp_path, monkeypatch):
    """The thread has the launcher's cores and no more, as Slurm binds tasks, also if the program
    pins its own thread."""
    cores = set(sorted(os.sched_getaffinity(0))[: 1 if bound else 2])
    all_of_ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        client = Waiting(tmp_path, "wait", where)
    finally:
        os.sched_setaffinity(0, all_of_ours)
    assert client.says() == "ready"
    assert writers_cores(client.process) == cores
    client.process.kill()
    client.ends()


def test_a_scheduler_that_warns_and_then_kills(tmp_path):
    """Slurm sends SIGTERM, the handler is not done in time, and SIGKILL follows."""
    client = Waiting(tmp_path, "stubborn", "")
    assert client.says() == "ready"
    client.process.terminate()
    assert client.says() == "terminating"
    client.process.kill()
    traced = client.ends()
    assert (traced.code, traced.stderr) == (-signal.SIGKILL, "")
    check(traced, closes=False)


def test_stopped_and_continued(tmp_path):
    client = Waiting(tmp_path, "stop", "")
    pid, status = os.waitpid(client.process.pid, os.WUNTRACED)
    assert pid == client.process.pid and os.WIFSTOPPED(status)
    client.process.send_signal(signal.SIGCONT)
    traced = client.ends()
    assert (traced.code, traced.stderr) == (6, "")
    check(traced, closes=True)


def test_the_wall_clock_is_set(tmp_path):
    """Times are on the monotonic clock, and the anchors tell of the step."""
    hour = 3_600_000_000_000
    started = time.monotonic_ns()
    traced = runs.run(tmp_path, runs.client("end", "return", "step"), TROUBLE="clock")
    took = time.monotonic_ns() - started
    assert (traced.code, traced.stderr) == (6, "")
    lines = check(traced, closes=True)
    (header,) = runs.named(lines, "tprof_header")
    assert all(event["ts"] * 1000 < took for event in runs.events(lines))
    ts, realtime, bracket = runs.named(lines, "tprof_clock")[-1]["clock"]
    step = realtime - ts - header["base_time_ns"]
    assert abs(step - hour) < 50_000_000 + bracket


def test_the_host_dies(tmp_path):
    """The ring file is gone: the last ledger line is the answer, and the reader says until when it is true."""
    client = Waiting(tmp_path, "wait", "11 s later", TROUBLE="clock")
    assert client.says() == "ready"
    rank_file = runs.rank_file(tmp_path / "traces")
    while '"interval"' not in rank_file.read_text().rpartition("\n")[0]:  # in a whole line
        assert client.process.poll() is None
    client.process.kill()
    traced = client.ends()
    (ring,) = traced.traces.glob(".*.ring")
    ring.unlink()
    code, report = told("summary", traced.traces)
    (counts,) = traced.counted()
    assert code == 1 and report["complete"] is False
    for kind in ("h2d", "d2h", "all_reduce"):
        assert report["buckets"][counted.bucket(kind)]["calls"] == counts[kind][1]
    assert list(report["known_until"].values()) != [None]
    assert "exact until" in tprof("summary", traced.traces).stdout


# Kills one process at every moment of a short life, until no moment is left.
def test_killed_at_every_moment_of_its_files_lives(tmp_path):
    """The kill comes while starting, inside a write or while closing: the file is readable, nothing is there twice."""
    for moment in range(1, 1000):
        folder = tmp_path / str(moment)
        traced = runs.run(folder, runs.client("end", "return"), TROUBLE=f"kill:{moment}")
        if traced.code == 6:
            break
        assert (traced.code, traced.stderr) == (-signal.SIGKILL, "")
        check_killed(traced)
    assert moment > 20
    check(traced, closes=True)


def complete_lines(file: pathlib.Path) -> list[str]:
    return [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def check_killed(traced: runs.Run) -> None:
    rank_files = list(traced.traces.glob("*.json"))
    if not any('"tprof_header"' in line for file in rank_files for line in complete_lines(file)):
        tprof("recover", traced.traces)  # a rank file that has no line yet is the one that gets them
        assert len(list(traced.traces.glob("*.json"))) <= 1
        return  # before its first call was made
    code, summary = told("summary", traced.traces)
    assert code in (0, 1)
    (counts,) = traced.counted()
    report = summary["buckets"]
    for kind in counts:
        if sum(counted.bucket(other) == counted.bucket(kind) for other in counts) > 1:
            continue
        entered, returned, failed = counts[kind]
        bucket = report.get(counted.bucket(kind), {"calls": 0, "unfinished": 0})
        assert returned <= bucket["calls"] <= bucket["calls"] + bucket["unfinished"] <= entered, kind
    runs.recover(traced.traces)
    (lines,) = traced.rank_files()
    runs.assert_no_line_twice(runs.events(lines))
    dropped = sum(runs.footer(lines)["dropped"].values())
    finished = sum(r + f for kind, (_, r, f) in counts.items() if kind not in counted.WITHOUT_LINES)
    assert len(runs.events(lines)) + dropped >= finished

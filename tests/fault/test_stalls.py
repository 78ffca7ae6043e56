"""A file system that stops answering: no call of the program waits for it, its end waits 5 s at most, and every
finished call is in the ring file, from which the rank file is made when it answers again."""

import contextlib
import pathlib
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from lib import counted, runs
from lib.build import BUILD, LIBTPROF
from lib.tool import told, tprof

ON_DISK = True
STALLING = BUILD / "libfault_stalling.so"
AT_FIRST = ["mkdir", "open", "pwrite", "fallocate", "ftruncate", "statfs", "stat", "all"]
LATER = ["open", "pwrite", "fallocate", "ftruncate", "unlink", "stat", "close", "all"]
PATIENCE_S = 5
ENDS = {"return": 6, "_exit": 3, "handled": 4}  # and the program's exit code
SLACK_S = 4  # for a busy machine


def stalling(folder: pathlib.Path, what: str, at_first: bool = True, **more: str) -> dict[str, str]:
    """Rings are in memory unless said otherwise."""
    traces = folder / "traces"
    env = {"TPROF_RING_DIR": "", "STALL": what, "STALL_DIR": str(traces), "RANK": "0", "WORLD_SIZE": "1", **more}
    if not at_first:
        env["STALL_FROM"] = str(folder / "stalls")
    return env | {"LD_PRELOAD": f"{LIBTPROF}:{STALLING}"}


def check(folder: pathlib.Path, unfinished: bool) -> dict:
    """Checks what the readers say while there may be no rank file, and the exact counts after recovery. Returns
    the footer."""
    traces = folder / "traces"
    (counts,) = [counted.totals(path) for path in (folder / "counts").iterdir()]
    report = told("summary", traces)[1]
    assert len(report["ranks"]) == 1
    done = tprof("recover", traces)
    assert done.stderr == "", done.stderr
    (file,) = (p for p in traces.glob("*.json") if p.stat().st_size)  # killed as it made it, it left an empty one
    lines = runs.closed(file)
    ledger = runs.ledger(lines)
    for kind, (entered, returned, failed) in counts.items():
        if entered:
            calls, count, lost, open_calls = ledger[counted.key(kind)]
            assert returned <= calls <= entered and lost >= failed and count == calls * counted.KINDS[kind][2]
            assert unfinished or (calls, lost, open_calls) == (returned, failed, 0)
    return runs.footer(lines)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("ring", "end"), [("", signal.SIGTERM), ("traces", signal.SIGKILL)])
@pytest.mark.parametrize(("what", "at_first"), [(w, True) for w in AT_FIRST] + [(w, False) for w in LATER])
def test_calls_go_on_and_a_signal_ends_the_program(what, at_first, ring, end, tmp_path):
    # Else the ring file stands too, and gets no more room: that is said, and a kill loses counts.
    if what == "ftruncate" or (not at_first and what in ("stat", "fallocate", "all")):
        ring, end = "", signal.SIGTERM
    env = stalling(tmp_path, what, at_first, TPROF_RING_DIR=str(tmp_path / ring) if ring else "")
    began = time.monotonic()
    with runs.standing(tmp_path, runs.client("storm", 1000), **env) as process:
        assert time.monotonic() - began < SLACK_S
        (tmp_path / "stalls").touch()
        time.sleep(0.2)  # many calls
        began = time.monotonic()
        process.send_signal(end)
        assert process.wait(timeout=runs.TIME_LIMIT_S) == -end and time.monotonic() - began < SLACK_S
    check(tmp_path, unfinished=True)


def all_at_once(folder: pathlib.Path, clients: dict[str, tuple[list, dict]], most_s: float) -> Iterator[tuple[pathlib.Path, int]]:
    """Starts the clients, all of which wait for their file system, and yields the folder and exit code of each, which
    comes in time."""
    began, processes = {}, {}
    with contextlib.ExitStack() as stack:
        for name, (words, env) in clients.items():
            env = runs.environment(folder / name, **stalling(folder / name, **env))
            (folder / name / "stalls").touch()
            began[name] = time.monotonic()
            processes[name] = stack.enter_context(subprocess.Popen(runs.client(*words), env=env))
        for name, process in processes.items():
            assert process.wait(timeout=runs.TIME_LIMIT_S) is not None and time.monotonic() - began[name] < most_s, name
    yield from ((folder / name, process.returncode) for name, process in processes.items())


def test_the_end_waits_for_5_s_at_most(tmp_path):
    stalls = [("mkdir", True), ("pwrite", True), ("open", True), ("unlink", False), ("pwrite", False)]
    clients = {
        f"{what}-{at_first}-{how}": (("end", how, "late" if how == "return" else ""), {"what": what, "at_first": at_first})
        for what, at_first in stalls for how in ENDS
    }  # fmt: skip
    for folder, code in all_at_once(tmp_path, clients, PATIENCE_S + SLACK_S):
        what, _, how = folder.name.split("-")
        assert code == ENDS[how], folder.name
        footer = check(folder, unfinished=False)
        if what != "unlink":  # else the file is whole
            assert footer.get("exit_status") == (code if how in ("return", "_exit", "handled") else None)


def test_a_child_is_not_held_up_either(tmp_path):
    clients = {how: (("child", how), {"what": "all"}) for how in ("fork", "exec", "spawn", "bare", "_exit")}
    for folder, code in all_at_once(tmp_path, clients, 2 * PATIENCE_S + SLACK_S):
        assert code == 0
        tprof("recover", folder / "traces")
        files = [runs.closed(path) for path in sorted((folder / "traces").iterdir()) if path.stat().st_size]
        of_pid = {lines_of["pid"]: lines for lines in files for lines_of in runs.named(lines, "tprof_header")}
        counts = {int(p.name.removeprefix("counts-")): counted.totals(p) for p in (folder / "counts").iterdir()}
        assert set(of_pid) == set(counts)
        for pid, lines in of_pid.items():
            runs.assert_exact(lines, counts[pid])


def test_the_next_process_makes_the_rank_file(tmp_path):
    """It finds the ring file of one that was killed hours ago, before its folder answered."""
    node = tmp_path / "node"
    node.mkdir()
    places = {"TPROF_RING_DIR": str(node), "TROUBLE": "hours:2"}
    for name in ("old", "decoy"):  # the second, when it is gone, tells that the first was looked at
        env = stalling(tmp_path / name, "mkdir" if name == "old" else "none", **places)
        env["LD_PRELOAD"] += f":{runs.TROUBLE}"
        with runs.standing(tmp_path / name, runs.client("storm", 1000), **env):
            pass
    assert len(list(node.iterdir())) == 2
    env = {"TPROF_RING_DIR": str(node), "INSTANT_GATE": "3"}
    with runs.standing(tmp_path / "new", runs.client("calls", 400, 1), "inside", **env):
        runs.until(lambda: len(list(node.iterdir())) == 1)
    check(tmp_path / "old", unfinished=True)


@pytest.mark.parametrize("folder", ["traces", "a/%r/traces", "%h"])
def test_a_relative_folder_is_one_of_where_the_process_started(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    env = runs.environment(tmp_path, TPROF_OUTPUT_DIR=folder, TPROF_RING_DIR="", RANK="0", WORLD_SIZE="1")
    done = subprocess.run(runs.client("calls", 20, 1), env=env | {"FAULT_CHDIR": "elsewhere"}, cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert len(list(tmp_path.rglob("rank-00000.json"))) == 1

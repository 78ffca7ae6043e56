"""However a process ends: every call that returned is counted once, every open one is told.

Where exit handlers run the library closes the file itself; else the ring file stays behind, and
`tprof recover` closes it. The program's own counts say what must be there.
"""

import dataclasses
import signal
import subprocess

import counted
import pytest
import runs


@dataclasses.dataclass(frozen=True)
class End:
    code: int
    closes: bool  # by itself


ENDS = {
    "return": End(6, True),
    "exit": End(3, True),
    "handled": End(4, True),  # exit() in the handler of SIGTERM
    "pthread_exit": End(3, True),  # of the main thread, long before the others
    "_exit": End(3, False),
    "quick_exit": End(3, False),
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
def test_end(how, tmp_path, built):
    plain = runs.run(tmp_path / "plain", runs.client("end", how), preload=False)
    traced = runs.run(tmp_path / "traced", runs.client("end", how))
    assert traced.outcome() == plain.outcome() == (ENDS[how].code, "")
    assert traced.stderr == plain.stderr
    lines = check(traced, ENDS[how].closes)
    assert runs.footer(lines)["dropped"] == {}


# "return" and "late": static destructors and an atexit handler that was registered first of all
# handlers make calls after the file was closed.
@pytest.mark.parametrize("how", ["return", "exit", "handled"])
def test_calls_after_the_file_was_closed(how, tmp_path, built):
    traced = runs.run(tmp_path, runs.client("end", how, "late"))
    assert (traced.code, traced.stderr) == (ENDS[how].code, "")
    lines = check(traced, closes=True)
    assert len(runs.named(lines, "tprof_footer")) == 1


@pytest.mark.parametrize("how", ENDS)
def test_end_inside_a_group(how, tmp_path, built):
    """None of its calls was issued: they are unfinished."""
    traced = runs.run(tmp_path, runs.client("end", how, "group"))
    assert traced.code == ENDS[how].code
    check(traced, ENDS[how].closes, unfinished=GROUP_CALLS)


@pytest.mark.parametrize("how", ENDS)
def test_end_inside_a_group_that_fills_the_ring(how, tmp_path, built):
    traced = runs.run(tmp_path, runs.client("end", how, "large group"), TPROF_RING="64")
    assert traced.code == ENDS[how].code
    lines = check(traced, ENDS[how].closes, unfinished=25 * GROUP_CALLS)
    assert len([line for line in lines if line["ph"] == "B"]) <= 64


def inside_a_call(tmp_path, how: str) -> subprocess.Popen:
    """A client whose last call does not return; stdin is the gate's."""
    process = subprocess.Popen(
        runs.client("end", how, "call"),
        env=runs.environment(tmp_path, True, "instant", INSTANT_GATE=str(all_reduces())),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "inside\n"
    return process


def all_reduces() -> int:
    """How many a client makes before the one that it is to hang in: its calls are the same always."""
    return 1


def finish(process: subprocess.Popen, tmp_path) -> runs.Run:
    stdout, stderr = process.communicate(timeout=runs.TIME_LIMIT_S)
    return runs.Run(process.returncode, stdout, stderr, tmp_path / "traces", tmp_path / "counts")

"""Calls that make and end communicators: a rank that does not come to one, or does not come back, is told, and the
time that they took."""

import contextlib
import os
import re
import time

import pytest
from lib import launch, rankfile
from lib.build import BUILD
from lib.runs import until
from lib.tool import told, tprof

RANKS = 4
# Each job stands for two seconds, while nobody else needs the machine.
pytestmark = [pytest.mark.xdist_group("setup"), pytest.mark.timed]


@contextlib.contextmanager
def job(folder, mode, **env):
    """The ranks of tests/clients/setup.cpp, each of which has made a copy before. Yields their processes."""
    with contextlib.ExitStack() as stack:
        # The stand-in keeps what killed ranks had of a communicator: no two jobs have one name.
        command = [BUILD / "setup", mode, f"{os.getpid()}-{time.monotonic_ns()}"]
        yield [
            stack.enter_context(launch.running(command, folder, RANK=str(rank), WORLD_SIZE=str(RANKS), TPROF_RING_DIR=str(folder / "traces"), **env))
            for rank in range(RANKS)
        ]


def errors(traces):
    """Returns the errors that check finds. There is none before there is a trace."""
    if not traces.exists() or not tprof("check", traces, "--json").stdout:
        return []
    _, found = told("check", traces, "--stuck-after", "2")
    return [f for f in found["findings"] if f["severity"] == "error"]


def found_with(traces, ranks, pattern):
    """The only error, if it is about these ranks and says that."""
    found = errors(traces)
    return found[0] if len(found) == 1 and found[0]["ranks"] == ranks and re.search(pattern, found[0]["text"]) else None


# For each place at which the last rank stays away: the call that the others are inside.
PLACES = {
    "init": "ncclCommInitRank",
    "config": "ncclCommInitRankConfig",
    "scalable": "ncclCommInitRankScalable",
    "nonblocking": "ncclCommInitRankConfig",
    "group": "ncclGroupEnd with ncclCommInitRank",
    "split": "ncclCommSplit",
    "shrink": "ncclCommShrink",  # which leaves out rank 0, and nobody knows that
}


@pytest.mark.parametrize("mode", PLACES)
def test_a_rank_that_does_not_come_is_told_with_those_that_wait(tmp_path, mode):
    left_out = [0] if mode == "shrink" else []
    absent = [*left_out, RANKS - 1]
    waiting = "ranks 1,2" if left_out else "ranks 0-2"
    text = f"never came to {PLACES[mode]} of communicator .*, which {waiting} (are|were) inside since "
    traces = tmp_path / "traces"
    with job(tmp_path, mode):
        # While it runs, and from what is left of it.
        until(lambda: found_with(traces, absent, text))
        shown = told("top", traces)[1]["ranks"]
        assert [len(rank["open"]) for rank in shown] == [int(rank not in absent) for rank in range(RANKS)]
    assert found_with(traces, absent, text)["kind"] == "hang"
    assert tprof("check", traces).returncode == 1


def test_a_rank_that_does_not_come_to_its_groups_first_collective(tmp_path):
    text = "^rank 3 never came to collective 0 .ncclAllReduce. of communicator .*, which rank 2 called"
    with job(tmp_path, "sub"):
        until(lambda: found_with(tmp_path / "traces", [RANKS - 1], text))


@pytest.mark.parametrize("mode, call", [
    ("healthy", "ncclCommDestroy"), ("finalize", "ncclCommFinalize"), ("revoke", "ncclCommRevoke"),
    ("abort", "ncclCommAbort")])
def test_a_rank_that_does_not_come_back_from_an_end_is_told(tmp_path, mode, call):
    with job(tmp_path, mode, STANDIN_HANG=f"0:{call}:1"):
        until(lambda: found_with(tmp_path / "traces", [0], f"^rank 0 is inside {call} of communicator .* since "))
    found = found_with(tmp_path / "traces", [0], f"^rank 0 was inside {call} .* and did not return")
    # A revoke or an abort waits for no other rank.
    returned = any("called it too, and it returned" in line for line in found["evidence"])
    assert found["kind"] == "hang" and returned == (mode in ("healthy", "finalize"))


def test_what_nccl_answers_to_a_call_that_it_refuses_is_told(tmp_path):
    text = "^rank 1: ncclCommInitRank of communicator .* returned ncclInvalidArgument .4., at "
    with job(tmp_path, "fail"):
        refused = until(lambda: (f := found_with(tmp_path / "traces", [1], text)) and f["evidence"] and f)
    assert refused["kind"] == "refused"
    assert any("got ncclInvalidArgument (4) back, and " in line for line in refused["evidence"])


def test_a_healthy_job_says_how_long_it_took_to_make_its_communicators(tmp_path):
    with job(tmp_path, "healthy") as ranks:
        assert [rank.wait(launch.TIME_LIMIT_S) for rank in ranks] == [0] * RANKS
    assert tprof("check", tmp_path / "traces").returncode == 0
    assert " were spent on creating and ending them (ncclCommInitRank: " in tprof("summary", tmp_path / "traces").stdout
    for rank in rankfile.read_folder(tmp_path / "traces"):
        calls = {line["name"]: line["dur"] for line in rank.lines if line.get("cat") == "COMM" and line["ph"] == "X"}
        life = {row["name"]: row for row in rank.ledgers[-1]["life"]}
        assert set(life) == set(calls) == {"ncclCommInitRank", "ncclCommDestroy"}
        assert all(round(calls[name] * 1000) == row["host_ns"] == row["host_ns_max"] for name, row in life.items())
        assert [(row["calls"], row["failed"], row["unfinished"]) for row in life.values()] == [(1, 0, 0)] * 2
        assert rank.comms[0]["ended"] == "ncclCommDestroy"

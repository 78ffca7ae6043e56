"""tprof check on real PyTorch in which one rank goes wrong: it names the rank and the operation.

The expected results come from the script, which counts its own collectives, and from the stand-in's
faults, which are requested by function and number.
"""

import re

import pytest
from lib.launch import ending_together, running, start, torchrun, without_agent
from lib.runs import until
from lib.tool import told, worse_than_notes

# Ranks that wait for another give up soon, and PyTorch's watchdog keeps none alive to dump its
# state.
SOON = {
    "STANDIN_TIMEOUT_S": "2",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
}


@pytest.fixture
def diverge(pair_of, tmp_path):  # pair_of: PyTorch and the builds are there
    """Returns diverge(ranks, what, ...), which gives (what the script printed, what check found in its traces).
    Where all ranks wait in a call, PyTorch needs a minute to give up unless torchrun's agent has the store."""

    def call(ranks, what, *arguments, launcher=ending_together, **variables):
        command = launcher("diverge.py", ranks, ("--what", what, *arguments))
        run = start(command, tmp_path / "run", **(SOON | variables))
        assert run.traces.is_dir(), run.stderr
        return run.stdout, check(run.traces)

    return call


def check(traces):
    return told("check", traces)[1], worse_than_notes(traces)


def told_by(script, what):
    """Returns the number of the collective at which the odd rank says that it was odd."""
    return int(re.search(rf"{what} at collective (\d+)", script)[1])


def test_ranks_that_do_the_same_are_healthy(pair_of):
    for case in ("fsdp2-4-padded", "fsdp2-2-offload", "point-to-point-4", "split-groups-4"):
        found, worse = check(pair_of(case).traced.traces)
        assert found["healthy"] and not worse
        assert found["communicators"] and all(c["same"] for c in found["communicators"])


def test_a_rank_that_sends_another_size(diverge):
    script, (found, worse) = diverge(3, "size", "--rank", "2")
    (finding,) = worse
    assert (finding["kind"], finding["ranks"]) == ("mismatch", [2])
    assert (finding["seq"], finding["function"]) == (told_by(script, "size"), "ncclAllGather")
    told = "\n".join(finding["evidence"])
    assert "ncclAllGather of 65 float32" in told and "ncclAllGather of 64 float32" in told


def test_a_rank_that_stops_between_two_calls(diverge):
    script, (found, worse) = diverge(3, "leave")
    (finding,) = worse
    assert (finding["kind"], finding["ranks"]) == ("stopped", [1])
    assert (finding["seq"], finding["function"]) == (told_by(script, "leave"), "ncclAllGather")
    assert "exited with status 1 before it" in finding["text"]


def test_a_script_that_crashes_on_all_ranks_names_who_failed_first(diverge):
    """Ranks 0 and 1 raise; the launcher then ends 2 and 3, which had not come so far. On a busy machine
    the first of the two has left, and the launcher sent its signals, before the other closed."""
    _, (found, worse) = diverge(4, "crash")
    (finding,) = worse
    assert finding["kind"] == "stopped"
    assert finding["text"].startswith(("ranks 0,1 ", "rank 0 ", "rank 1 "))
    assert "exited with status 1 at" in finding["text"]


def test_a_rank_that_hangs_inside_a_call(diverge):
    """The 10th gather is the script's collective 18: nine steps of two come before it."""
    _, (found, worse) = diverge(2, "nothing", launcher=torchrun, STANDIN_HANG="1:ncclAllGather:10")
    (finding,) = worse
    assert (finding["kind"], finding["ranks"]) == ("hang", [1])
    assert (finding["seq"], finding["function"]) == (18, "ncclAllGather")
    assert "rank 1 was inside ncclAllGather, collective 18" in finding["text"]


def test_a_rank_that_is_killed_inside_a_call(diverge):
    _, (found, worse) = diverge(2, "nothing", STANDIN_DIE="1:ncclAllReduce:4")
    (finding,) = worse
    assert (finding["kind"], finding["ranks"]) == ("stopped", [1])
    assert (finding["seq"], finding["function"]) == (7, "ncclAllReduce")
    assert "rank 1 was inside ncclAllReduce, collective 7" in finding["text"]


def test_a_rank_that_calls_on_two_communicators_in_the_other_order(pair_of, tmp_path):
    """Nobody goes on. In the tenth step the world's all-reduce is its collective 19: nine steps of two come before it,
    and a gather; the other communicator's is 9."""
    traces = tmp_path / "run" / "traces"
    with running(without_agent("diverge.py", 2, ("--what", "swap")), tmp_path / "run"):
        # A rank's file is empty until its head is written, and `check` says so of a folder with empty files alone.
        until(lambda: len([file for file in traces.glob("*.json") if file.stat().st_size]) == 2)
        while_it_runs = until(lambda: told_of_order(traces, "--stuck-after", "1"))
    after = until(lambda: told_of_order(traces))  # its processes may take a moment to end
    assert while_it_runs["evidence"][-1].endswith(" s") and after["evidence"][-1].endswith(" before their traces end")
    for finding in (while_it_runs, after):
        assert finding["severity"] == "error"


def test_a_message_that_does_not_meet_its_other_end(pair_of, tmp_path):
    """A batch of isend and irecv has a receive too many, for which rank 1 waits while the others go on."""
    traces = tmp_path / "run" / "traces"

    def errors():
        found = told("check", traces, "--stuck-after", "1")[1].get("findings", [])
        found = [f for f in found if (f["kind"], f["severity"], f["ranks"]) == ("hang", "error", [1])]
        return [f for f in found if "rank 1 stood still before it" in str(f)]

    with running(without_agent("diverge.py", 3, ("--what", "lone")), tmp_path / "run"):
        until(lambda: len([file for file in traces.glob("*.json") if file.stat().st_size]) == 3)
        assert until(errors)  # at first, ranks may be on their way


def told_of_order(traces, *options):
    code, found = told("check", traces, *options)
    of_order = [f for f in found.get("findings", []) if f["kind"] == "group_order"]
    assert not of_order or (code == 1 and "every rank reached" not in str(found))
    return of_order and of_order[0]


def test_a_rank_that_slept_is_named_with_its_collective(diverge):
    """A rank sleeps for two seconds in the tenth step: nothing is wrong, and all the others wait."""
    script, (found, worse) = diverge(4, "sleep", "--rank", "2", STANDIN_TIMEOUT_S="30")
    assert not worse
    (note,) = [finding for finding in found["findings"] if finding["kind"] == "late"]
    assert (note["ranks"], note["severity"]) == ([2], "note")
    assert (note["seq"], note["function"]) == (told_by(script, "sleep"), "ncclAllGather")

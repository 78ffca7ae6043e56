"""Threads in numbers: the ledger is exact, areas are reused, and memory stays bounded."""

from lib import runs
from lib.build import BUILD

GATHER = ("ALLGATHER", "ncclAllGather", "float32")
MANY = str(BUILD / "many_threads")
CANCELLED = str(BUILD / "cancelled")


def run(folder, mode, n, program=MANY, **env):
    traced = runs.run(folder, [program, mode, str(n)], **env)
    assert (traced.code, traced.stderr) == (0, "")
    said = dict(line.split() for line in traced.stdout.splitlines())
    return traced.only_rank_file(), {key: int(value) for key, value in said.items()}


def assert_all_counted(lines, calls, at_once=True):
    """`at_once`: the threads call at once, which NCCL forbids on one communicator: everything is
    counted all the same, but two calls may have one number."""
    assert runs.ledger(lines) == {GATHER: (calls, calls * 8, 0, 0)}
    dropped = sum(runs.footer(lines)["dropped"].values())
    events = runs.events(lines)
    assert len(events) + dropped == calls
    seqs = [event["args"]["seq"] for event in events]
    assert all(0 <= seq < calls for seq in seqs)
    assert at_once or len(set(seqs)) == len(seqs)
    (comm,) = runs.named(lines, "tprof_ledger")[-1]["comms"]
    assert comm["collectives"] == calls


def test_sixteen_threads_on_one_communicator(tmp_path):
    """Runs also with rings so small that most calls find them full."""
    for ring in ("16384", "64"):
        lines, said = run(tmp_path / ring, "shared", 2000, TPROF_RING=ring)
        assert said["calls"] == 16 * 2000
        assert_all_counted(lines, said["calls"])


def test_ten_thousand_short_threads_use_the_areas_of_those_that_ended(tmp_path):
    lines, said = run(tmp_path, "short", 10_000)
    assert said["calls"] == 10_000
    assert_all_counted(lines, said["calls"])
    assert runs.footer(lines)["dropped"] == {}
    # The ring file has 1 MiB for each thread that was there at the same time, as the README says,
    # and 4 MiB besides. A thread that has been joined may still be giving its area back.
    assert 0 < said["ring"] < (4 + 2 * 16) * 1.1 * 2**20


def test_calls_in_the_destructors_of_a_thread(tmp_path):
    """The keys are older and younger than ours, so calls come before and after the thread's area is given back."""
    lines, said = run(tmp_path, "destructor", 200)
    assert said["calls"] == 3 * 200
    assert_all_counted(lines, said["calls"])


def test_threads_that_end_within_a_group(tmp_path):
    """The calls that they issued are neither executed nor forgotten."""
    lines, said = run(tmp_path, "exit", 10)
    assert said["calls"] == 2 * 10 + 1
    assert runs.ledger(lines) == {GATHER: (1, 8, 0, 20)}


def test_a_thread_that_used_a_group_leaves_no_memory_behind(tmp_path):
    lines, said = run(tmp_path, "groups", 2100)
    assert runs.ledger(lines) == {GATHER: (2 * 2100, 2 * 2100 * 8, 0, 0)}
    assert said["pages"] < 2000 / 2  # it used to be one each


def test_a_call_is_no_cancellation_point_and_a_cancelled_thread_leaves_no_lock(tmp_path):
    """This holds also where the call is the first of its thread or of the process, which makes files."""
    lines, said = run(tmp_path, "waiting", 20, CANCELLED)
    assert said["calls"] == 2 * 20
    assert_all_counted(lines, said["calls"])


def test_threads_cancelled_anywhere_leave_no_lock(tmp_path):
    lines, said = run(tmp_path, "anywhere", 300, CANCELLED)
    assert said["calls"] == 300
    assert_all_counted(lines, said["calls"])


def test_lines_are_of_the_thread_that_made_the_call_also_where_the_one_before_left_a_full_ring(
    tmp_path
):
    lines, said = run(tmp_path, "turns", 60, TPROF_RING="64")
    dropped = runs.footer(lines)["dropped"]
    assert said["calls"] == 60 * 3000 == len(runs.events(lines)) + dropped["ring"]
    threads: dict[int, set[int]] = {}  # count -> thread ids
    for event in runs.events(lines):
        threads.setdefault(event["args"]["count"], set()).add(event["tid"])
    assert len(threads) > 1 and all(len(tids) == 1 for tids in threads.values())
    assert len(set.union(*threads.values())) == len(threads)

"""How processes and threads begin and end: fork, exec, exit in the middle, short threads."""

import pathlib

import pytest
from lib import counted, runs
from lib.build import BUILD


def by_pid(folder: pathlib.Path) -> dict[int, dict]:
    return {int(p.name.removeprefix("counts-")): counted.totals(p) for p in folder.iterdir()}


def check_each_process(traced: runs.Run, processes: int) -> None:
    """Each process has one file, which holds its own calls and no others."""
    files = {runs.named(lines, "tprof_header")[0]["pid"]: lines for lines in traced.rank_files()}
    counts = by_pid(traced.counts)
    assert len(traced.rank_files()) == len(files) == processes and set(files) == set(counts)
    for pid, lines in files.items():
        runs.assert_exact(lines, counts[pid])
        assert runs.footer(lines)["dropped"] == {}


# How the child is made -> its exit code, its own or that of the program that it executes.
CHILDREN = {"fork": 5, "_exit": 5, "bare": 5, "grandchild": 5, "exec": 7, "vfork": 7, "spawn": 7}


@pytest.mark.parametrize("how", CHILDREN)
def test_child(how, tmp_path):
    traced = runs.run(tmp_path, runs.client("child", how))
    assert (traced.code, traced.stderr) == (0, "")
    assert traced.stdout.endswith(f"child exited with {CHILDREN[how]}\n")
    check_each_process(traced, processes=3 if how == "grandchild" else 2)


def test_a_child_tells_of_whom_it_was_forked(tmp_path):
    """The child's file can be told from that of a restart or of another job. A program that was
    executed is nobody's child."""
    for how, forked in (("fork", True), ("grandchild", True), ("spawn", False)):
        traced = runs.run(tmp_path / how, runs.client("child", how), RANK="0", WORLD_SIZE="1")
        headers = [runs.named(lines, "tprof_header")[0] for lines in traced.rank_files()]
        parent, *children = sorted(headers, key=lambda header: header["base_time_ns"])
        identity = {key: parent[key] for key in ("pid", "start_ns")}
        assert children and "forked_from" not in parent
        assert all(h.get("forked_from") == (identity if forked else None) for h in children)


def test_a_child_that_only_destroys_what_its_parent_made_leaves_no_file(tmp_path):
    """The exit handlers of PyTorch do so in a child that was forked from a trainer."""
    traced = runs.run(tmp_path, runs.client("child", "destroys"))
    assert (traced.outcome(), traced.stderr) == ((0, "child exited with 5\n"), "")
    check_each_process(traced, processes=1)


def test_bare_fork_that_makes_no_call_leaves_the_parent_alone(tmp_path):
    """The child's exit handlers run, ours too, and no handler of pthread_atfork has told us of the fork."""
    traced = runs.run(tmp_path, runs.client("child", "bare-silent"))
    assert (traced.outcome(), traced.stderr) == ((0, "child exited with 5\n"), "")
    check_each_process(traced, processes=1)


def test_daemon(tmp_path):
    """The process that was started leaves by _exit, and the child goes on without it."""
    traced = runs.run(tmp_path, runs.client("child", "daemon"))
    assert (traced.outcome(), traced.stderr) == ((0, "the daemon is done\n"), "")
    runs.recover(traced.traces)
    check_each_process(traced, processes=2)


@pytest.mark.parametrize("how", ["return", "_exit"])
def test_exit_while_other_threads_call(how, tmp_path):
    """The file is closed and holds at most what was entered, at least what had returned."""
    for n in range(3):
        traced = runs.run(tmp_path / str(n), runs.client("leave", how), TPROF_RING="1024")
        assert (traced.outcome(), traced.stderr) == ((3, "leaving\n"), "")
        (counts,) = traced.counted()
        lines = traced.only_rank_file()
        for kind in counts:
            calls, count, failed, unfinished = runs.ledger(lines)[counted.key(kind)]
            assert count == calls * counted.KINDS[kind][2]
            assert 0 < calls + failed + unfinished <= counts[kind][0]
        runs.assert_no_line_twice(runs.events(lines))


def test_two_thousand_short_threads(tmp_path):
    traced = runs.run(tmp_path, runs.client("threads", 2000))
    assert (traced.outcome(), traced.stderr) == ((0, "all threads are gone\n"), "")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    # There are areas for 1,023 threads; without one of its own a thread would have no line.
    assert runs.footer(lines)["dropped"] == {}
    (process,) = traced.counts.iterdir()
    threads = {tid for tid, _ in counted.read(process)}
    assert {event["tid"] for event in runs.events(lines)} == threads


def test_nccl_is_closed_and_opened_again(tmp_path):
    command = [str(BUILD / "unloading"), str(BUILD / "libfault_plugin.so")]
    plain = runs.run(tmp_path / "plain", command, preload=False)
    traced = runs.run(tmp_path / "traced", command)
    assert traced.outcome() == plain.outcome() == (0, "5 calls\n5 calls\n")
    lines = traced.only_rank_file()
    assert runs.ledger(lines) == {("ALLREDUCE", "ncclAllReduce", "float32"): (10, 160, 0, 0)}
    assert {comm["comm"] for comm in runs.named(lines, "tprof_comm")} == {1, 2}


def test_calls_of_a_librarys_constructor_while_another_thread_starts_tracing(tmp_path):
    """The constructor holds the loader's lock, for which the other thread waits."""
    command = [str(BUILD / "loading"), str(BUILD / "libfault_constructor.so")]
    traced = runs.run(tmp_path, command)
    assert (traced.outcome(), traced.stderr) == ((0, "child exited with 5\n"), "")
    gather = ("ALLGATHER", "ncclAllGather", "int8")
    calls = sorted(runs.ledger(lines)[gather][0] for lines in traced.rank_files())
    assert calls == [1, 3]


def test_two_jobs_in_one_folder(tmp_path):
    """The jobs run at the same time and with the same ranks: the later one's files get other names."""
    rank = {"RANK": "0", "WORLD_SIZE": "1", "INSTANT_GATE": "9"}
    calls = runs.client("calls", 500, 2)
    with (
        runs.standing(tmp_path, calls, "inside", **rank, TPROF_RUN_ID="a") as a,
        runs.standing(tmp_path, calls, "inside", **rank, TPROF_RUN_ID="b") as b,
    ):
        jobs = (a, b)
        for job in jobs:
            job.communicate("x", timeout=runs.TIME_LIMIT_S)
            assert job.returncode == 7
    traces = tmp_path / "traces"
    assert {path.name for path in traces.iterdir()} == {"rank-00000.json", "rank-00000.r1.json"}
    counts = by_pid(tmp_path / "counts")
    for path, job, run_id in zip(sorted(traces.iterdir()), jobs, "ab", strict=True):
        lines = runs.closed(path)
        (header,) = runs.named(lines, "tprof_header")
        assert (header["pid"], header["run_id"]) == (job.pid, run_id)
        runs.assert_exact(lines, counts[job.pid])

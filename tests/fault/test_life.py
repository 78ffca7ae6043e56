"""How processes and threads begin and end: fork, exec, exit in the middle, short threads."""

import pathlib

import counted
import runs


def by_pid(folder: pathlib.Path) -> dict[int, dict]:
    return {int(p.name.removeprefix("counts-")): counted.totals(p) for p in folder.iterdir()}


def check_parent_and_child(traced: runs.Run) -> None:
    """Each process has one file, which holds its own calls and no others."""
    files = {runs.named(lines, "tprof_header")[0]["pid"]: lines for lines in traced.rank_files()}
    counts = by_pid(traced.counts)
    assert len(files) == 2 and set(files) == set(counts)
    for pid, lines in files.items():
        runs.assert_exact(lines, counts[pid])
        assert runs.footer(lines)["dropped"] == {}


def test_fork(tmp_path, built):
    traced = runs.run(tmp_path, runs.client("fork"))
    assert (traced.outcome(), traced.stderr) == ((0, "child exited with 5\n"), "")
    check_parent_and_child(traced)


def test_fork_and_exec(tmp_path, built):
    traced = runs.run(tmp_path, runs.client("exec"))
    assert (traced.code, traced.stderr) == (0, "")
    assert traced.stdout.endswith("child exited with 7\n")
    check_parent_and_child(traced)


def test_exit_while_other_threads_call(tmp_path, built):
    """The file is closed and holds at most what was entered, at least what had returned."""
    for n in range(3):
        traced = runs.run(tmp_path / str(n), runs.client("leave"), TPROF_RING="1024")
        assert (traced.outcome(), traced.stderr) == ((3, "leaving\n"), "")
        (counts,) = traced.counted()
        lines = traced.only_rank_file()
        for kind in counts:
            calls, count, failed, unfinished = runs.ledger(lines)[counted.key(kind)]
            assert count == calls * counted.KINDS[kind][2]
            assert 0 < calls + failed + unfinished <= counts[kind][0]
        runs.assert_no_line_twice(runs.events(lines))


def test_two_thousand_short_threads(tmp_path, built):
    traced = runs.run(tmp_path, runs.client("threads", 2000))
    assert (traced.outcome(), traced.stderr) == ((0, "all threads are gone\n"), "")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    # There are areas for 1,023; without one of its own a thread would have no line.
    assert runs.footer(lines)["dropped"] == {}
    (process,) = traced.counts.iterdir()
    threads = {tid for tid, _ in counted.read(process)}
    assert {event["tid"] for event in runs.events(lines)} == threads

"""Lines may be missing, and then they are counted; the ledger never misses a call."""

import collections
import itertools

from lib import runs
from lib.rankfile import named


def test_a_million_calls_through_the_smallest_ring(tmp_path):
    traced = runs.run(tmp_path, runs.client("calls", 400_000, 2), TPROF_RING="64")
    assert (traced.code, traced.stderr) == (7, "")
    (counts,) = traced.counted()
    assert sum(entered for entered, _, _ in counts.values()) > 1_000_000
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    assert set(runs.footer(lines)["dropped"]) == {"ring"}


def test_a_step_from_which_calls_are_missing_says_so(tmp_path):
    """Missing calls show in the numbers of the collectives that have lines."""
    steps = {"TPROF_RING": "64", "TPROF_STEP": "call:ncclReduceScatter@512"}
    traced = runs.run(tmp_path, runs.client("calls", 1_000_000, 1), **steps)
    lines = traced.only_rank_file()
    assert runs.footer(lines)["dropped"]["ring"] > 1000
    numbered = collections.defaultdict(list)
    for event in runs.events(lines):
        if event["cat"] != "P2P" and event["args"].get("seq") is not None:
            numbered[event["args"]["comm"]].append((event["ts"], event["args"]["seq"]))
    gaps = [
        (before, after)
        for calls in numbered.values()
        for (before, n), (after, m) in itertools.pairwise(sorted(calls))
        if m > n + 1
    ]
    found = named(lines, "tprof_step")
    within = [
        sum(step["ts"] <= before and after < step["ts"] + step["dur"] for before, after in gaps) for step in found
    ]
    assert any(within)
    assert all(step.get("lost") for step, missing in zip(found, within) if missing)


def test_more_threads_than_areas(tmp_path):
    """There are 1,100 threads at once and 1,024 areas: calls of the others pass, and that is said."""
    traced = runs.run(tmp_path, runs.client("calls", 12, 1100), TPROF_RING="64")
    assert (traced.code, traced.stderr) == (7, "")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    assert 0 < sum(calls for calls, *_ in runs.ledger(lines).values()) < sum(entered for entered, *_ in counts.values())
    assert {"threads"} == {entry["kind"] for entry in runs.footer(lines)["coverage"]["unseen"]}


def test_small_quota(tmp_path):
    traced = runs.run(tmp_path, runs.client("calls", 2000, 2), TPROF_QUOTA="64KiB")
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    assert set(runs.footer(lines)["dropped"]) == {"quota"}
    (rank_file,) = traced.traces.iterdir()
    quota = sum(
        len(line) + 1
        for line in rank_file.read_text().splitlines()
        if '"ph":"X"' in line or '"tprof_group"' in line
    )
    assert 60_000 < quota <= 64 << 10


def test_no_quota(tmp_path):
    traced = runs.run(tmp_path, runs.client("calls", 2000, 2), TPROF_QUOTA="0")
    lines = traced.only_rank_file()
    assert runs.footer(lines)["dropped"] == {}


def test_a_ring_of_no_size_at_all_is_refused(tmp_path):
    traced = runs.run(tmp_path, runs.client("calls", 20, 1), TPROF_RING="63")
    assert traced.code == 7 and len(traced.complaints()) == 1
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)

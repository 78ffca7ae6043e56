"""Puts hosts whose clocks differ on one axis, and compares this with the clocks that they really had."""

import json

from lib.clocks import clock_job, errors, left
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of
from lib.tool import tprof

HOSTS, RANKS = 3, 2


def merged(tmp_path, *options):
    """Returns the merged trace, and what the command says of the clocks."""
    to = tmp_path / "merged.json"
    done = tprof("merge", tmp_path / "run", "-o", to, *options)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "clocks" in line]
    return to, said[0] if said else ""


def clocks_of(trace):
    return json.loads(lines_of(trace)[0])["args"].get("clocks")


def test_the_files_follow_the_schema(tmp_path):
    clock_job(tmp_path / "run", HOSTS, RANKS, 20)
    for file in (tmp_path / "run").iterdir():
        assert not_as_the_contract_says(lines_of(file)) == []
    assert not_as_the_contract_says(lines_of(merged(tmp_path)[0])) == []


def test_hosts_are_on_one_axis_to_a_microsecond(tmp_path):
    truth = clock_job(tmp_path / "run", HOSTS, RANKS, 1000)
    trace, said = merged(tmp_path)
    off = sorted(errors(trace, truth, RANKS))
    assert off[len(off) // 2] < 1000 and off[-1] < 4000
    assert "3 hosts are aligned by 1,000 collectives" in said
    assert [clock["ranks"] for clock in clocks_of(trace)] == [[0, 1], [2, 3], [4, 5]]
    # Clocks are off by no more than is said; nobody leaves before the last has come.
    assert off[-1] <= max(clock["at_most_ns"] for clock in clocks_of(trace))


def test_wall_clocks_where_they_are_asked_for(tmp_path):
    truth = clock_job(tmp_path / "run", HOSTS, RANKS, 200)
    trace, said = merged(tmp_path, "--clock", "realtime")
    assert max(errors(trace, truth, RANKS)) > 50_000
    assert "wall clocks, whose error is unknown" in said
    assert clocks_of(trace) is None


def test_calls_that_return_at_once_prove_nothing_of_clocks(tmp_path):
    clock_job(tmp_path / "run", HOSTS, RANKS, 200, seen="host")
    trace, said = merged(tmp_path)
    assert "wall clocks, whose error is unknown" in said and "TPROF_TIMING=events" in said
    assert clocks_of(trace) is None


def test_ranks_of_one_host_have_one_clock_whatever_their_wall_clocks_said(tmp_path):
    """The job's wall clock goes on by 700 ns between the starts of two ranks."""
    truth = clock_job(tmp_path / "run", 1, 4, 50)
    trace, said = merged(tmp_path)
    assert said == ""
    # Drift within a collective, and rounding, make no more.
    assert max(errors(trace, truth, 1)) <= 2
    assert len(left(trace)) == 50


def test_merging_what_was_aligned_changes_nothing(tmp_path):
    clock_job(tmp_path / "run", HOSTS, RANKS, 100)
    once, _ = merged(tmp_path)
    assert tprof("merge", once, "-o", tmp_path / "twice.json").returncode == 0
    assert lines_of(once)[1:] == lines_of(tmp_path / "twice.json")[1:]


def test_two_hosts_are_aligned_by_the_one_rank_that_is_left_of_each(tmp_path):
    """Only the files of ranks 0 and 2 are left."""
    clock_job(tmp_path / "run", HOSTS, RANKS, 100)
    for rank in (1, 3, 4, 5):
        (tmp_path / f"run/rank-0000{rank}.json").unlink()
    trace, said = merged(tmp_path)
    assert "2 hosts are aligned by 100 collectives" in said
    assert len(clocks_of(trace)) == 2

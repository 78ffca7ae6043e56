"""Compares who came last to collectives with when ranks of a simulated job truly came."""

import dataclasses
import re

import pytest
from lib import handmade
from lib.clocks import clock_job, made
from lib.rankfile import named, parsed
from lib.tool import told, tprof

SECOND = 10**9


def lateness(folder):
    code, found = told("summary", folder, "--by", "rank")
    assert code == 0
    return found["lateness"]


def notes(folder):
    """Returns the findings of kind `late`; the exit code must be that of a healthy job."""
    code, found = told("check", folder)
    assert code == 0 and found["healthy"]
    return [finding for finding in found["findings"] if finding["kind"] == "late"]


def last_arrivals(truth, ranks):
    """Yields who of these ranks came last to each collective, and by how much."""
    for came in truth["came"]:
        order = sorted(ranks, key=lambda rank: came[rank])
        yield order[-1], came[order[-1]] - came[order[-2]]


@pytest.mark.parametrize(("hosts", "rank"), [(1, 1), (2, 1), (2, 2)])
def test_behind_the_first_difference_nobody_is_late(hosts, rank, tmp_path):
    """From there on the numbers of one rank's collectives are those of others: it is one ahead, and seems early."""
    job, _ = made(hosts, 4 // hosts, 300, sleeps=[(0, seq, SECOND // 5) for seq in range(150, 300, 10)])
    ops = job.ranks[rank].ops
    ops[100] = dataclasses.replace(ops[100], function="ncclAllGather", reduce=None)
    found = lateness(job.write(tmp_path / "run"))
    assert found["compared"] == 100
    assert all(rank["sum_ns"] < SECOND // 10 for rank in found["ranks"])


@pytest.mark.parametrize("often", [1, 12])
def test_a_checkpoint_of_one_rank_does_not_hide_another_that_is_late(often, tmp_path):
    """Rank 0 stops once for 1.5 s. Rank 1 does so once for 3 s, or for 0.4 s again and again."""
    sleeps = [(1, 10 + 20 * i, 3 * SECOND if often == 1 else 4 * SECOND // 10) for i in range(often)]
    clock_job(tmp_path / "run", 1, 2, 300, sleeps=[(0, 45, 15 * SECOND // 10), *sleeps])
    assert [note["ranks"] for note in notes(tmp_path / "run")] == ([[1], [0]] if often == 1 else [[1]])


@pytest.mark.parametrize("seen", ["device", "host"])
def test_on_one_host_every_arrival_is_told_exactly(tmp_path, seen):
    truth = clock_job(tmp_path / "run", 1, 4, 300, seen=seen)
    found = lateness(tmp_path / "run")
    assert (found["from"], found["compared"], found["one_in"]) == (seen, 300, 1)
    assert found["clocks_at_most_ns"] == 0
    expected = {rank: [] for rank in range(4)}
    for rank, late in last_arrivals(truth, range(4)):
        expected[rank].append(late)
    for rank in found["ranks"]:
        late = sorted(expected[rank["rank"]])
        assert (rank["collectives"], rank["last"]) == (300, len(late))
        # The clock drifts, and is read in whole nanoseconds.
        assert rank["sum_ns"] == pytest.approx(sum(late), abs=3 * len(late))
        assert rank["max_ns"] == pytest.approx(late[-1], abs=5)
        assert rank["median_ns"] == pytest.approx(late[(len(late) - 1) // 2], abs=5)


def test_nothing_is_said_that_the_clocks_do_not_prove(tmp_path):
    """A rank that is said to have come last did so. Among arrivals that are closer than the clocks'
    error, none is said to be the last."""
    truth = clock_job(tmp_path / "run", 4, 1, 500)
    found = lateness(tmp_path / "run")
    true = list(last_arrivals(truth, range(4)))
    assert found["clocks_at_most_ns"] > 0
    told_last = {rank["rank"]: rank["last"] for rank in found["ranks"]}
    for rank in range(4):
        provable = [late for who, late in true if who == rank]
        assert told_last[rank] <= len(provable)
        assert told_last[rank] >= sum(late > 2 * found["clocks_at_most_ns"] for late in provable)
    for worst in found["worst"]:
        assert true[worst["seq"]][0] == worst["rank"]


def test_without_device_times_only_ranks_of_one_host_are_compared(tmp_path):
    truth = clock_job(tmp_path / "run", 2, 3, 100, seen="host", sleeps=[(4, 50, SECOND)])
    found = lateness(tmp_path / "run")
    assert not found["across_hosts"]
    assert (found["collectives"], found["compared"]) == (100, 100)
    expected = {rank: 0 for rank in range(6)}
    for ranks in (range(3), range(3, 6)):
        for rank, late in last_arrivals(truth, ranks):
            expected[rank] += late
    for rank in found["ranks"]:
        assert rank["sum_ns"] == pytest.approx(expected[rank["rank"]], abs=1000, rel=1e-4)
    text = tprof("summary", tmp_path / "run", "--by", "rank").stdout
    assert "Only ranks of one host were compared" in text and "Latest arrivals" in text


def test_the_time_that_two_communicators_wait_counts_once(tmp_path):
    """Each rank calls all of it on a second communicator too, at the same moments."""
    job, _ = made(1, 3, 200, seen="host", sleeps=[(2, 50, SECOND)])
    alone = lateness(job.write(tmp_path / "alone"))
    job.comms *= 2
    for rank in job.ranks:
        rank.order = [0, 1]
        rank.ops = [dataclasses.replace(op, comm=comm) for op in rank.ops for comm in (0, 1)]
    job.write(tmp_path / "run")
    both = lateness(tmp_path / "run")
    assert both["compared"] == 2 * alone["compared"] == 400
    assert {r["rank"]: r["sum_ns"] for r in both["ranks"]} == {r["rank"]: 2 * r["sum_ns"] for r in alone["ranks"]}
    # On one communicator the times follow each other.
    assert {r["rank"]: r["waited_ns"] for r in both["ranks"]} == {r["rank"]: r["sum_ns"] for r in alone["ranks"]}
    shares = [re.findall(r"([\d.]+)%$", tprof("summary", tmp_path / "run", "--by", "rank").stdout, re.M)]
    assert [float(share) for share in shares[0]] == [
        pytest.approx(100 * r["sum_ns"] / alone["span_ns"], abs=0.06) for r in alone["ranks"] if r["last"]
    ]


def test_a_late_rank_has_its_time_and_steps(tmp_path):
    """A step of ten collectives begins where the rank calls the first of them."""
    sleeps = [(1, 104, 2 * SECOND), (1, 287, 2 * SECOND)]
    truth = clock_job(tmp_path / "run", 1, 3, 400, seen="host", sleeps=sleeps)
    last = [seq for seq, (rank, _) in enumerate(last_arrivals(truth, range(3))) if rank == 1]
    file = tmp_path / "run/rank-00001.json"
    called = {line["args"]["seq"]: line["ts"] for line in parsed(file) if line["ph"] == "X"}
    (header,) = named(parsed(file), "tprof_header")
    times = [header["base_time_ns"] + 1000 * called[seq] for seq in (last[0], last[-1])]
    (note,) = notes(tmp_path / "run")
    assert note["time"] == [pytest.approx(ns, abs=2000) for ns in times]
    assert note["steps"] is None and "cost" not in note  # the others may have computed meanwhile
    for step in range(40):
        begin, end = called[10 * step], called.get(10 * step + 10, called[399] + 1e6)
        args = {"step": 7 + step, "ts": begin, "dur": end - begin, "lost": False, "rows": []}
        handmade.insert(file, handmade.metadata("tprof_step", **args) | {"pid": 1})
    (note,) = notes(tmp_path / "run")
    assert note["steps"] == [7 + last[0] // 10, 7 + last[-1] // 10]


@pytest.mark.parametrize("seen", ["device", "host"])
def test_jitter_is_nobodys_fault(tmp_path, seen):
    clock_job(tmp_path / "run", 2, 2, 400, seen=seen)
    assert notes(tmp_path / "run") == []


def test_ranks_that_are_late_in_turn_are_not_noted(tmp_path):
    """Batches of different lengths do this: somebody is always late, by a lot, and it is not always the same rank."""
    sleeps = [(n % 4, n, SECOND // 2) for n in range(0, 200, 5)]
    clock_job(tmp_path / "run", 1, 4, 200, sleeps=sleeps)
    assert notes(tmp_path / "run") == []


def test_a_rank_without_lines_is_not_taken_for_one_that_came_early(tmp_path):
    job, _ = made(1, 3, 50)
    job.ranks[1].lines = False
    found = lateness(job.write(tmp_path / "run"))
    assert [rank["rank"] for rank in found["ranks"] if rank["collectives"]] != []
    assert 1 not in [rank["rank"] for rank in found["ranks"]]


def test_sums_of_device_time_alone_do_not_say_who_came_when(tmp_path):
    """Ledgers count device time, but lines have none: the hosts' calls tell."""
    clock_job(tmp_path / "run", 1, 3, 50)
    for file in (tmp_path / "run").iterdir():
        file.write_text(re.sub(r'{"cat":"DEVICE".*\n', "", file.read_text()))
    found = lateness(tmp_path / "run")
    assert (found["from"], found["compared"]) == ("host", 50)


def test_device_times_that_were_asked_for_late_are_used(tmp_path):
    """`tprof ctl timing` comes after some megabytes: calls before it are not compared, those after it exactly."""
    job, truth = made(2, 1, 24_000)
    for rank in job.ranks:
        rank.ops[:21_000] = [dataclasses.replace(op, device=None) for op in rank.ops[:21_000]]
    for file in job.write(tmp_path / "run").iterdir():
        assert file.read_text().index('{"cat":"DEVICE"') > 3 << 20
    found = lateness(tmp_path / "run")
    assert (found["from"], found["across_hosts"], found["compared"]) == ("device", True, 3000)
    last = list(last_arrivals(truth, range(2)))
    assert found["worst"] and all(last[worst["seq"]][0] == worst["rank"] for worst in found["worst"])
    assert found["untimed"] == 2 * 21_000
    assert "42,000 calls without a device time" in tprof("summary", tmp_path / "run", "--by", "rank").stdout

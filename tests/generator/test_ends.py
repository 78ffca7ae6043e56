"""The verdict on jobs that did not run to their end: that nobody could go on comes before what only costs time."""

import random

import pytest
from generator.ends import DEADLOCK, TWO_GROUPS, S, given_up, killed_at
from generator.habits import run
from generator.rank_files import write
from lib.tool import told, tprof, worse_than_notes


def written(case, folder):
    write(case, folder)
    return folder


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("after_s", [5, 12, 80])
def test_a_deadlock_on_two_communicators_is_the_verdict(tmp_path, after_s, ranks):
    folder = written(given_up(run(DEADLOCK.but(ranks=ranks)), after_s * S), tmp_path / "job")
    report = told("report", folder)[1]
    first, *others = report["findings"]
    assert (report["verdict"]["finding"], report["verdict"]["severity"]) == (0, "error")
    assert report["verdict"]["text"].startswith(f"Ranks 0{',' if ranks == 2 else '-'}{ranks - 1} wait for each other: ")
    assert (first["kind"], first["ranks"]) == ("hang", "0,1" if ranks == 2 else "1")  # one of two is nobody's fault
    assert "slow_gpu" in [f["kind"] for f in others]  # a cost, and true
    shown = tprof("report", folder).stdout
    assert shown.index(" wait for each other: ") < shown.index("note: rank 0 computes longer than the others")
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["severity"]) == ("hang", "error")


@pytest.mark.parametrize("first_to_go", range(4))
def test_in_which_order_the_ranks_of_a_deadlock_were_ended_is_not_why_they_stood(tmp_path, first_to_go):
    case = given_up(run(DEADLOCK), 12 * S)
    for rank, trace in case.traces.items():
        trace.end += 0 if rank == first_to_go else 2 * S
    verdict = told("report", written(case, tmp_path / "job"))[1]["verdict"]
    assert " wait for each other: " in verdict["text"]


@pytest.mark.parametrize("seed", range(12))
def test_a_healthy_job_that_is_killed_between_two_calls_keeps_its_verdict(tmp_path, seed):
    case = run(TWO_GROUPS)
    rng = random.Random(seed)
    begin, end = case.traces[0].steps[10].begin, case.traces[0].end
    folder = written(killed_at(case, rng.randrange(begin, end)), tmp_path / "job")
    report = told("report", folder)[1]
    assert report["verdict"]["text"].startswith("Rank 0 computes longer than the others: ")
    assert "wait for each other" not in tprof("check", folder).stdout
    assert all(f["severity"] != "error" for f in report["findings"])

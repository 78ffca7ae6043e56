"""tprof check on ranks that are known by a snapshot: what they did after it is not known."""

import pytest
from lib import jobs
from lib.tool import worse_than_notes

SECOND = 10**9 // jobs.STEP_NS
LATER = 60 * SECOND  # the collective after a long pause, which all ranks made
STUCK_S = 30  # the default


def job_of(ranks):
    """Returns a job whose ranks all make three collectives and one a minute later, and that last one."""
    job = jobs.Job([list(range(ranks))], [], 11)
    ops = [jobs.Op("ncclAllReduce", at, 64, 0, "float32", "sum") for at in (1, 2, 3, LATER)]
    job.ranks = [jobs.Rank(list(ops), [0]) for _ in range(ranks)]
    return job, ops[-1]


def known_until(rank, seconds, ops=3):
    rank.ops, rank.end, rank.until = rank.ops[:ops], "snapshot", round(seconds * SECOND)


def stand_in(rank, op, until_s, end="recovered"):
    rank.ops, rank.inside = rank.ops[: rank.ops.index(op)], [op]
    rank.end, rank.until = end, until_s * SECOND


def not_known(rank, time):
    return f"it is unknown what rank {rank} did after 2025-11-21 {time}"


@pytest.mark.parametrize("others", ["closed", "recovered", "snapshot"])
@pytest.mark.parametrize("lines", [True, False])
def test_a_snapshot_older_than_what_the_others_called_blames_nobody(tmp_path, others, lines):
    """Rank 1's last snapshot is 40 s into the pause; the others, seen later, went on."""
    job, _ = job_of(3)
    known_until(job.ranks[1], 40)
    for rank in job.ranks[::2]:
        rank.end, rank.until = others, 100 * SECOND
    findings = worse_than_notes(job.write(tmp_path / "job"), *([] if lines else ["--no-lines"]))
    kinds = {"closed": [], "recovered": ["not_closed"], "snapshot": []}[others]
    assert sorted(f["kind"] for f in findings) == sorted([*kinds, "snapshot"]), findings


@pytest.mark.parametrize("clock_s", [0, -3600, 3600])
def test_ranks_that_stand_are_named_and_not_whom_an_old_snapshot_leaves_behind(tmp_path, clock_s):
    job, op = job_of(3)
    for rank in job.ranks[::2]:
        stand_in(rank, op, 100)
    known_until(job.ranks[1], 40)
    if clock_s:
        job.ranks[1].host, job.ranks[1].clock_ns = 1, clock_s * 10**9
    (hang,) = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "snapshot"]
    assert (hang["kind"], hang["ranks"]) == ("hang", [0, 2])
    hour = {0: "00:00:40", 3600: "01:00:40", -3600: None}[clock_s]
    if hour:
        assert not_known(1, f"{hour}.000 UTC") in hang["evidence"]


@pytest.mark.parametrize("beyond_s, blamed", [(-1, False), (STUCK_S - 1, False), (STUCK_S + 1, True)])
@pytest.mark.parametrize("others", ["recovered", "snapshot"])
def test_a_rank_that_did_not_come_for_long_before_its_snapshot_is_named(
    tmp_path, others, beyond_s, blamed
):
    job, op = job_of(3)
    for rank in job.ranks[::2]:
        stand_in(rank, op, 200, others)
    known_until(job.ranks[1], 60 + beyond_s)
    (hang,) = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "snapshot"]
    assert (hang["kind"], hang["ranks"]) == ("hang", [1] if blamed else [0, 2])
    if blamed:
        assert hang["text"].startswith("rank 1 had not come by 2025-11-21 00:01:31.000 UTC to collective 3")
        assert "running" not in hang["text"]
    when = {-1: "00:00:59", STUCK_S - 1: "00:01:29", STUCK_S + 1: "00:01:31"}[beyond_s]
    if others == "recovered":
        assert not_known(1, f"{when}.000 UTC") in hang["evidence"]
    else:
        assert any(e.startswith("it is unknown what ranks 0-2 did after their snapshots") for e in hang["evidence"])


@pytest.mark.parametrize("next_s, blamed", [(1, True), (50, False)])
def test_a_call_that_stood_in_a_snapshot_may_have_returned_where_others_went_on(
    tmp_path, next_s, blamed
):
    """It stood for 40 s then; whether the others had gone on by then, or only later, decides."""
    job, op = job_of(3)
    after = jobs.Op("ncclAllReduce", LATER + next_s * SECOND, 32, 0, "float32", "sum")
    for rank in job.ranks:
        rank.ops.append(after)
        rank.end, rank.until = "recovered", 200 * SECOND
    stand_in(job.ranks[1], op, 100, "snapshot")
    findings = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "snapshot"]
    if blamed:
        assert [(f["kind"], f["ranks"], f["seq"]) for f in findings] == [("hang", [1], 3)]
    else:
        assert [f["kind"] for f in findings] == ["not_closed"]


@pytest.mark.parametrize("until_s, blamed", [(40, False), (100, True)])
def test_the_other_end_of_a_send_may_have_come_after_its_snapshot(tmp_path, until_s, blamed):
    job, _ = job_of(2)
    send = jobs.Op("ncclSend", LATER, 64, 0, "float32", peer=1)
    for rank in job.ranks:
        rank.ops[-1] = send
    stand_in(job.ranks[0], send, 200)
    known_until(job.ranks[1], until_s)
    (hang,) = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "snapshot"]
    assert (hang["kind"], hang["ranks"]) == ("hang", [1] if blamed else [0])


@pytest.mark.parametrize("received_s, blamed", [(1, True), (50, False)])
def test_a_send_that_stood_in_a_snapshot_may_have_returned_where_it_was_received(
    tmp_path, received_s, blamed
):
    job, _ = job_of(2)
    send = jobs.Op("ncclSend", LATER, 64, 0, "float32", peer=1)
    receive = jobs.Op("ncclRecv", LATER + received_s * SECOND, 64, 0, "float32", peer=0)
    job.ranks[0].ops[-1], job.ranks[1].ops[-1] = send, receive
    stand_in(job.ranks[0], send, 100, "snapshot")
    job.ranks[1].end, job.ranks[1].until = "recovered", 200 * SECOND
    found = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] == "hang"]
    assert [f["ranks"] for f in found] == ([[0]] if blamed else [])


@pytest.mark.parametrize("until_s, said", [(40, True), (90, False)])
def test_who_ended_first_is_said_of_those_whose_end_is_known(tmp_path, until_s, said):
    job, _ = job_of(3)
    for rank, end_s in ((job.ranks[0], 70), (job.ranks[2], 100)):
        rank.end, rank.until = "recovered", end_s * SECOND
    known_until(job.ranks[1], until_s, ops=3 if until_s < 60 else 4)
    (found,) = [f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "snapshot"]
    assert (found["kind"], found["ranks"]) == ("stopped", [0])
    assert found["text"].startswith(
        "rank 0 ended first of those whose end is known: " if said else "rank 0 ended first: "
    )

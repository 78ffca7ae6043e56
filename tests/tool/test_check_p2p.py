"""tprof check on sends without receives, and on ranks that wait for each other."""

import dataclasses

import pytest
from lib import jobs
from lib.faults import assert_names
from lib.tool import worse_than_notes


def with_talk(healthy, place, count=5):
    """Adds `count` sends and receives of two ranks. Returns the job, the sender, how many sends it
    had made before, and which of the new ones is at that place."""
    written, rank = healthy
    job = written.job.copy()
    members = job.comms[0]
    talk = [
        jobs.Op("ncclSend", 5000 + n, comm=0, count=1000 + n, dtype="float32", peer=0)
        for n in range(count)
    ]
    job.ranks[rank].ops += talk
    sender = members.index(rank)
    mine = [dataclasses.replace(op, function="ncclRecv", peer=sender) for op in talk]
    job.ranks[0].ops += mine
    done = sum(
        (op.function, op.comm, op.peer) == ("ncclSend", 0, 0) for op in written.job.ranks[rank].ops
    )
    return job, rank, done, {"first": 0, "middle": count // 2, "last": count - 1}[place]


def test_a_send_without_a_receive(healthy, place, tmp_path):
    job, rank, done, n = with_talk(healthy, place)
    del job.ranks[0].ops[len(job.ranks[0].ops) - 5 + n]
    folder = job.write(tmp_path / "job", healthy[0])
    (finding,) = worse_than_notes(folder)
    # Which of the sends it was can't be told: the last has no other end.
    assert_names(finding, job, "unmatched_p2p", sorted([0, rank]), done + 4, "ncclSend")
    (finding,) = worse_than_notes(folder, "--no-lines")
    assert (finding["kind"], finding["communicator"]) == ("unmatched_p2p", job.id(0))


def test_a_receive_of_another_size(healthy, place, tmp_path):
    job, rank, _, n = with_talk(healthy, place)
    i = len(job.ranks[0].ops) - 5 + n
    job.ranks[0].ops[i] = dataclasses.replace(job.ranks[0].ops[i], count=7)
    (finding,) = worse_than_notes(job.write(tmp_path / "job", healthy[0]))
    assert (finding["kind"], finding["ranks"]) == ("p2p_sizes", sorted([0, rank]))


def test_two_ranks_that_send_to_each_other(healthy, place, tmp_path):
    job, rank, done, n = with_talk(healthy, place)
    members = job.comms[0]
    for me, other in ((0, rank), (rank, 0)):
        ops = job.ranks[me].ops
        job.ranks[me].ops = ops[: len(ops) - 5 + n]
        peer = members.index(other)
        call = jobs.Op("ncclSend", 5000 + n, comm=0, count=1, dtype="float32", peer=peer)
        job.ranks[me].inside = [call]
    for plan in job.ranks:
        plan.end, plan.until = "recovered", 5000 + 60_000
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"]) == ("hang", sorted([0, rank]))
    assert (finding["communicator"], finding["function"]) == (job.id(0), "ncclSend")
    assert "wait for each other" in finding["text"]


def test_a_send_whose_receive_never_came(healthy, place, tmp_path):
    job, rank, done, n = with_talk(healthy, place)
    sends = job.ranks[rank].ops
    job.ranks[rank].inside = [sends[len(sends) - 5 + n]]
    job.ranks[rank].ops = sends[: len(sends) - 5 + n]
    job.ranks[0].ops = job.ranks[0].ops[: len(job.ranks[0].ops) - 5 + n]
    for plan in job.ranks:
        plan.end, plan.until = "recovered", 5000 + 60_000
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert_names(finding, job, "hang", [0], done + n, "ncclRecv")
    assert "never called the ncclRecv" in finding["text"]


@pytest.mark.parametrize("dropped", [{"ring": 1}, {"quota": 9}])
def test_a_receive_is_not_missed_where_lines_are(tmp_path, dropped):
    """Rank 0 called it, or not: its lines do not tell."""
    job = jobs.healthy(2, 12, 4, [[0, 1]], point_to_point=False)
    job.ranks[1].inside = [jobs.Op("ncclSend", 5000, 64, 0, "float32", peer=0)]
    for rank in job.ranks:
        rank.end, rank.until = "recovered", 65_000
    job.ranks[0].dropped = dropped
    (finding,) = (f for f in worse_than_notes(job.write(tmp_path / "job")) if f["kind"] != "dropped")
    assert (finding["kind"], finding["ranks"]) == ("hang", [1])
    assert "never called" not in finding["text"]


def test_collectives_in_another_order_on_two_communicators_wait_for_each_other(tmp_path):
    """Rank 0 is in A and waits for rank 1, which is in B and waits for rank 0."""
    both = [[0, 1], [0, 1]]
    job = jobs.healthy(2, 20, 4, both, point_to_point=False)
    for me, comm in ((0, 0), (1, 1)):
        job.ranks[me].inside = [jobs.Op("ncclAllReduce", 900, 5, comm, "float32", "sum")]
        job.ranks[me].end, job.ranks[me].until = "recovered", 70_000
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"]) == ("hang", [0, 1])
    assert job.id(0) in finding["text"] and job.id(1) in finding["text"]

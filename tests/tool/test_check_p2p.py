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
    # Each has another size, so it can be told which of the sends it was.
    assert_names(finding, job, "unmatched_p2p", sorted([0, rank]), done + n, "ncclSend")
    (finding,) = worse_than_notes(folder, "--no-lines")
    assert (finding["kind"], finding["communicator"]) == ("unmatched_p2p", job.id(0))


def killed(job, at=5000 + 60_000):
    for plan in job.ranks:
        plan.end, plan.until = "recovered", at
    return job


@pytest.mark.parametrize("inside", [False, True])
def test_a_send_and_a_receive_of_different_sizes_in_a_job_that_hung(healthy, place, tmp_path, inside):
    """The calls return when they are enqueued, so nothing but their sizes tells. The sender goes on to its last
    send; the receiver to the one that differs, from which it may not have returned."""
    job, rank, done, n = with_talk(healthy, place)
    receives = job.ranks[0].ops
    i = len(receives) - 5 + n
    receives[i] = dataclasses.replace(receives[i], count=2 * receives[i].count)
    del receives[i + 1 :]
    if inside:
        job.ranks[0].inside = [receives.pop()]
    finding = worse_than_notes(killed(job).write(tmp_path / "job"))[0]
    assert_names(finding, job, "p2p_sizes", sorted([0, rank]), done + n, "ncclSend")
    assert finding["severity"] == "error"
    size = 4 * (1000 + n)
    assert finding["text"].endswith(
        f"the two ends of message {done + n} from rank {rank} to rank 0 differ: {kib(size)} sent, {kib(2 * size)} to be received"
    )


def kib(size):
    return f"{size / 1024:.2f} KiB"


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

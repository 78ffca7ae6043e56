"""tprof check on jobs whose ranks called collectives of several communicators in different orders: each communicator
by itself is the same on all ranks, and it is the order that lets nobody go on."""

import collections
import dataclasses
import random

import pytest
from lib import jobs
from lib.thorough import some
from lib.tool import told, worse_than_notes

WORLD, PAIR = 0, 1
LONG, SHORT = 300_000, 100  # 30 s and 10 ms, as places in the program


def all_reduce(comm, at, count=16, **more):
    return jobs.Op("ncclAllReduce", at, count, comm, "float32", "sum", **more)


def steps(ranks, number, comms, orders, **of_comm):
    """Returns a job that was killed. `orders`: for each rank, the communicators in its order in each step; those that
    it is not in are left out. `of_comm`: by "c" and the communicator's number, what its calls have beside."""
    job = jobs.Job(comms, [], 7)
    for rank in range(ranks):
        ops = []
        for step in range(number):
            for comm in orders(rank, step):
                if rank in comms[comm]:
                    ops.append(all_reduce(comm, len(ops) + 1, **of_comm.get(f"c{comm}", {})))
        job.ranks.append(jobs.Rank(ops, list(range(len(comms)))))
        job.ranks[-1].order = [comm for comm, members in enumerate(comms) if rank in members]
        job.ranks[-1].end, job.ranks[-1].host = "recovered", 0
    return job


def killed_after(job, places):
    last = max(op.at for rank in job.ranks for op in rank.ops)
    for rank in job.ranks:
        rank.until = last + places
    return job


def swapped_in_the_last_step(number=8, ranks=3, **of_comm):
    """Ranks 0 and 1 of three all-reduce on the world, then on their pair; rank 1 at last the other way round."""

    def order(rank, step):
        return (PAIR, WORLD) if rank == 1 and step == number - 1 else (WORLD, PAIR)

    return steps(ranks, number, [list(range(ranks)), [0, 1]], order, **of_comm)


APART = {"c0": {"stream": 1}, "c1": {"stream": 2}}


def timed(job, through):
    """Says that calls were timed, and gives those for which through(rank, call) is true their time on the device."""
    for number, rank in enumerate(job.ranks):
        rank.header, made = {"config": {"TPROF_TIMING": "events"}}, collections.Counter()
        for n, op in enumerate(rank.ops):
            call = {"comm": rank.order.index(op.comm) + 1, "seq": made[op.comm]}
            made[op.comm] += 1
            if through(number, call):
                rank.ops[n] = dataclasses.replace(op, device=(100, 3500))
    return job


def odd_of_four():
    def order(rank, step):
        return (PAIR, WORLD) if rank == 2 and step == 4 else (WORLD, PAIR)

    return steps(4, 5, [[0, 1, 2, 3], [0, 1, 2, 3]], order)


def behind(job, number):
    """Each rank's host calls more, as hosts run ahead of their devices."""
    for rank in job.ranks:
        for n in range(number):
            if n % 2 in rank.order:
                rank.ops.append(all_reduce(n % 2, rank.ops[-1].at + 1, stream=n % 2 + 1))
    return job


def on_the_world(job, number):
    for rank in job.ranks:
        rank.ops += [all_reduce(WORLD, rank.ops[-1].at + n) for n in range(1, number)]
    return job


def without_the_last():
    """Each rank made the first of two calls."""
    job = swapped_in_the_last_step(ranks=2, **APART)
    for rank in job.ranks:
        rank.ops.pop()
    return job


def from_a_root():
    job = swapped_in_the_last_step()
    for rank in job.ranks:
        rank.ops = [
            jobs.Op("ncclBroadcast", op.at, op.count, op.comm, "float32", peer=0) if op.comm == WORLD else op
            for op in rank.ops
        ]
    return job


def left_out():
    """A rank left out a call of another size: numbers behind it are of other calls, and the orders seem to differ."""
    job = steps(2, 8, [[0, 1], [0, 1]], lambda *_: (WORLD, PAIR))
    for rank in job.ranks:
        rank.ops = [jobs.dataclasses.replace(op, count=8 + n) for n, op in enumerate(rank.ops)]
    del job.ranks[1].ops[8]
    return job


def closed(job):
    for rank in job.ranks:
        rank.end = "closed"
    return job


CIRCLE = [(0, 2), (1, 0), (2, 1)]  # each rank calls on a communicator with the next, then with the one before
ALWAYS = steps(3, 9, [[0, 1, 2], [0, 1]], lambda rank, _: (PAIR, WORLD) if rank == 1 else (WORLD, PAIR), **APART)
# The job, after how many places it was killed, and kind, severity, ranks and number of the only finding.
JOBS = {
    # A stream runs one call after the other, so this is a deadlock, however soon somebody ended the job.
    "on one stream": (swapped_in_the_last_step(), LONG, ("group_order", "error", [0, 1], 7)),
    "on one stream, killed at once": (swapped_in_the_last_step(), SHORT, ("group_order", "error", [0, 1], 7)),
    "one that differs from most": (odd_of_four(), LONG, ("group_order", "error", [2], 4)),
    # The calls behind the deadlock wait too, and the first is the cause.
    "hosts that ran ahead": (on_the_world(swapped_in_the_last_step(4), 20), LONG, ("group_order", "error", [0, 1], 3)),
    "a circle, no two of which differ":
        (steps(3, 1, [[0, 1], [1, 2], [0, 2]], lambda rank, _: CIRCLE[rank]), SHORT, ("group_order", "error", [0, 1, 2], 0)),
    # On several streams they may run at the same time, and then it is no deadlock.
    "on several streams": (swapped_in_the_last_step(**APART), LONG, ("group_order", "warning", [0, 1], 7)),
    "on several streams, killed at once": (swapped_in_the_last_step(**APART), SHORT, None),
    **{
        f"on several streams, {number} more behind":
            (behind(swapped_in_the_last_step(8, **APART), number), LONG, ("group_order", "warning", [0, 1], 7))
        for number in (1, 2, 5, 40)
    },
    "one that waits for the other": (without_the_last(), LONG, ("hang", "error", [0, 1], 7)),
    "one that waits for the other, killed at once": (without_the_last(), SHORT, ("stopped", "warning", [0, 1], 7)),
    # So are the stages of a pipeline, or a mesh, whose ranks use a stream for each communicator.
    "orders that always differed": (ALWAYS, LONG, None),
    # The backward pass reduces on a thread of its own, and whichever comes first.
    "threads": (swapped_in_the_last_step(c0={"stream": 1}, c1={"stream": 1, "autograd": True}), LONG, None),
    "calls of a group": (swapped_in_the_last_step(c0={"group": 5}, c1={"group": 5}), LONG, None),
    "a root that sends, and may go on": (from_a_root(), LONG, ("group_order", "warning", [0, 1], 7)),
    "a root that sends, killed at once": (from_a_root(), SHORT, None),
    "all closed": (closed(swapped_in_the_last_step()), LONG, None),
    "a rank that did something else": (left_out(), SHORT, ("mismatch", "error", [0, 1], 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_the_order_that_lets_nobody_go_on_is_named(name, tmp_path):
    job, places, expected = JOBS[name]
    code, found = told("check", killed_after(job, places).write(tmp_path / "job"))
    worse = [f for f in found["findings"] if f["severity"] != "note"]
    assert (code, len(worse) > 0) == (int(expected is not None), expected is not None), [f["text"] for f in worse]
    for f in worse if name != "a rank that did something else" else worse[:1]:
        assert (f["kind"], f["severity"], f["ranks"], f["seq"]) == expected
    assert {f["kind"] for f in worse} == ({expected[0]} if expected else set())
    if name == "on one stream":
        said = worse[0]["text"] + "\n".join(worse[0]["evidence"])
        assert all(said.count(job.id(comm)) >= 2 for comm in (WORLD, PAIR)) and worse[0]["communicator"] == job.id(WORLD)
        verdict = told("report", tmp_path / "job")[1]["verdict"]
        assert (verdict["severity"], verdict["finding"]) == ("error", 0)


DEADLOCK = ("group_order", "error", [0, 1])
TIMED = {
    "devices that are not through with either": (APART, 0, lambda rank, call: call["seq"] < 7, DEADLOCK),
    "devices that are not through, and hosts ahead": (APART, 5, lambda rank, call: call["seq"] < 7, DEADLOCK),
    # No device stands in what it was through with: the other one's did not end the same, and that is why they stand.
    **{
        f"rank {who} was through with one, streams {streams}":
            (streams, 0, lambda rank, call, who=who: call["seq"] < 7 or (rank == who and call["comm"] == 1),
             ("lost_device", "error", [1 - who, 2]))
        for streams in ({}, APART) for who in (0, 1)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", TIMED)
def test_times_on_the_device_tell_whether_it_is_a_deadlock(name, tmp_path):
    streams, more, through, expected = TIMED[name]
    job = killed_after(behind(swapped_in_the_last_step(**streams), more), LONG)
    (f,) = worse_than_notes(timed(job, through).write(tmp_path / "job"))
    assert (f["kind"], f["severity"], f["ranks"]) == expected


@pytest.mark.parametrize("reason", ["sync", "mixed", "unread", "no_pair", "device"])
def test_a_lost_device_is_found_unless_an_ended_collective_may_have_no_time(reason, tmp_path):
    """Nearly every program has synchronous copies, and a pipeline has groups of calls of several kinds."""
    job = killed_after(swapped_in_the_last_step(), LONG)
    folder = timed(job, TIMED["rank 0 was through with one, streams {}"][2]).write(tmp_path / "job")
    for file in folder.iterdir():
        file.write_text(file.read_text().replace('"self_cost_ns"', f'"timing_lost":{{"{reason}":3}},"self_cost_ns"'))
    found = {f["kind"]: f["ranks"] for f in told("check", folder)[1]["findings"]}
    known = reason in ("sync", "mixed", "unread")
    assert found.get("lost_device") == ([1, 2] if known else None)


@pytest.mark.parametrize("seed", some(range(30), 3))
def test_random_jobs_whose_ranks_keep_one_order_are_well(tmp_path, seed):
    """Ranks are in a random choice of groups, and on one stream; each leaves out what is not its own."""
    rng = random.Random(seed)
    ranks = rng.randint(2, 6)
    comms = [list(range(ranks))] + [sorted(rng.sample(range(ranks), rng.randint(2, ranks))) for _ in range(3)]
    program = [rng.sample(range(4), 4) for _ in range(rng.randint(1, 25))]
    job = killed_after(steps(ranks, len(program), comms, lambda _, step: program[step]), rng.choice([LONG, SHORT]))
    assert worse_than_notes(job.write(tmp_path / "job")) == []

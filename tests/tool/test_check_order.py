"""tprof check on jobs whose ranks called collectives of several communicators in different orders: each communicator
by itself is the same on all ranks, and it is the order that lets nobody go on."""

import json
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


def other_streams():
    return {"c0": {"stream": 1}, "c1": {"stream": 2}}


def time_on_the_device(folder, through):
    """Says that calls were timed, and gives those for which through(rank, line) is true their time on the device."""
    for file in folder.glob("rank-*.json"):
        lines = []
        for text in file.read_text().split("\n"):
            lines.append(text.replace('"config":{"TPROF_EVENTS":"on"}', '"config":{"TPROF_TIMING":"events"}'))
            if not text.startswith('{"name":"nccl'):
                continue
            line = json.loads(text.rstrip(","))
            args = line["args"]
            if not through(line["pid"], args):
                continue
            time = {
                "cat": "DEVICE", "name": line["name"], "ph": "X", "pid": line["pid"],
                "tid": (1 << 23) + args.get("stream", 0), "ts": line["ts"], "dur": 3.5,
                "args": {"comm": args["comm"], "seq": args["seq"], "call_tid": line["tid"], "queued": 0.1},
            }  # fmt: skip
            lines.append(json.dumps(time, separators=(",", ":")) + ",")
        file.write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("places", [LONG, SHORT])
def test_two_ranks_that_call_on_one_stream_in_opposite_orders(tmp_path, places):
    """A stream runs one call after the other, so this is a deadlock, however soon somebody ended the job."""
    job = killed_after(swapped_in_the_last_step(), places)
    code, found = told("check", job.write(tmp_path / "job"))
    (finding,) = found["findings"]
    assert (code, finding["kind"], finding["severity"], finding["ranks"]) == (1, "group_order", "error", [0, 1])
    assert finding["text"] == (
        f"rank 0 called collective 7 of communicator {job.id(WORLD)} before collective 7 of communicator "
        f"{job.id(PAIR)}, rank 1 the other way round: a deadlock, as a stream runs one after the other"
    )
    assert (finding["communicator"], finding["seq"], finding["function"]) == (job.id(WORLD), 7, "ncclAllReduce")
    first, second, quiet = finding["evidence"]
    assert first.startswith(f"rank 0: ncclAllReduce, collective 7 of communicator {job.id(WORLD)} at 2025-11-21 ")
    assert second.startswith(f"rank 1: ncclAllReduce, collective 7 of communicator {job.id(PAIR)} at 2025-11-21 ")
    assert quiet.startswith("ranks 0,1 made no call for ") and quiet.endswith(" before their traces end")
    verdict = told("report", tmp_path / "job")[1]["verdict"]
    assert verdict["severity"] == "error" and verdict["text"].startswith("Rank 0 called collective 7 of ")


def test_the_rank_that_differs_from_most_is_named(tmp_path):
    def order(rank, step):
        return (PAIR, WORLD) if rank == 2 and step == 4 else (WORLD, PAIR)

    job = killed_after(steps(4, 5, [[0, 1, 2, 3], [0, 1, 2, 3]], order), LONG)
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"]) == ("group_order", [2])


def test_hosts_that_ran_ahead_of_the_deadlock(tmp_path):
    """The calls behind it wait too, and the first is the cause."""
    job = swapped_in_the_last_step(4)
    for rank in job.ranks:
        last = rank.ops[-1].at
        rank.ops += [all_reduce(WORLD, last + n) for n in range(1, 20)]
    (finding,) = worse_than_notes(killed_after(job, LONG).write(tmp_path / "job"))
    assert (finding["kind"], finding["seq"], finding["ranks"]) == ("group_order", 3, [0, 1])


def test_ranks_that_wait_in_a_circle(tmp_path):
    """Each calls on a communicator with the next, then with the one before; no two differ in the order of two."""
    comms = [[0, 1], [1, 2], [0, 2]]
    job = killed_after(steps(3, 1, comms, lambda rank, _: [(0, 2), (1, 0), (2, 1)][rank]), SHORT)
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("group_order", "error", [0, 1, 2])
    assert [line[:7] for line in finding["evidence"][:3]] == ["rank 0:", "rank 1:", "rank 2:"]


@pytest.mark.parametrize("places, severities", [(LONG, ["warning"]), (SHORT, [])])
def test_on_several_streams_it_is_told_of_a_job_that_stood_still(tmp_path, places, severities):
    """They may run at the same time, and then it is no deadlock."""
    job = killed_after(swapped_in_the_last_step(**other_streams()), places)
    findings = worse_than_notes(job.write(tmp_path / "job"))
    assert [f["severity"] for f in findings] == severities
    for finding in findings:
        assert finding["kind"] == "group_order"


@pytest.mark.parametrize("places, kind, severity", [(LONG, "hang", "error"), (SHORT, "stopped", "warning")])
def test_ranks_that_wait_for_each_other_stood_where_nobody_called_for_long(tmp_path, places, kind, severity):
    """Each made the first of two calls. On several streams both may be at work, and killed between the two."""
    job = swapped_in_the_last_step(ranks=2, **other_streams())
    for rank in job.ranks:
        rank.ops.pop()
    (finding,) = worse_than_notes(killed_after(job, places).write(tmp_path / "job"))
    assert (finding["kind"], finding["severity"], finding["ranks"]) == (kind, severity, [0, 1])
    assert finding["text"].startswith("ranks 0,1 wait for each other: ")


def test_devices_that_are_not_through_prove_it(tmp_path):
    folder = killed_after(swapped_in_the_last_step(**other_streams()), LONG).write(tmp_path / "job")
    time_on_the_device(folder, lambda rank, call: call["seq"] < 7)
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["severity"]) == ("group_order", "error")
    assert any("have ended none of these" in line for line in finding["evidence"])


@pytest.mark.parametrize("streams", [{}, other_streams()])
@pytest.mark.parametrize("who", [0, 1])
def test_what_a_device_was_through_with_is_no_deadlock(tmp_path, streams, who):
    """Where the other one's device did not end the same, that is why they stand."""
    folder = killed_after(swapped_in_the_last_step(**streams), LONG).write(tmp_path / "job")
    time_on_the_device(folder, lambda rank, call: call["seq"] < 7 or (rank == who and call["comm"] == 1))
    assert [(f["kind"], f["ranks"]) for f in worse_than_notes(folder)] == [("lost_device", [1 - who, 2])]


def test_orders_that_always_differed_are_well(tmp_path):
    """So are the stages of a pipeline, or a mesh, whose ranks use a stream for each communicator."""
    job = steps(
        3, 9, [[0, 1, 2], [0, 1]], lambda rank, _: (PAIR, WORLD) if rank == 1 else (WORLD, PAIR), **other_streams()
    )
    assert worse_than_notes(killed_after(job, LONG).write(tmp_path / "job")) == []


def test_threads_have_no_order(tmp_path):
    """The backward pass reduces on a thread of its own, and whichever comes first."""
    more = {"c0": {"stream": 1}, "c1": {"stream": 1, "autograd": True}}
    job = killed_after(swapped_in_the_last_step(**more), LONG)
    assert worse_than_notes(job.write(tmp_path / "job")) == []


def test_calls_of_a_group_have_no_order(tmp_path):
    job = killed_after(swapped_in_the_last_step(c0={"group": 5}, c1={"group": 5}), LONG)
    assert worse_than_notes(job.write(tmp_path / "job")) == []


@pytest.mark.parametrize("places, severities", [(LONG, ["warning"]), (SHORT, [])])
def test_a_root_that_sends_may_go_on(tmp_path, places, severities):
    job = swapped_in_the_last_step()
    for rank in job.ranks:
        rank.ops = [
            jobs.Op("ncclBroadcast", op.at, op.count, op.comm, "float32", peer=0) if op.comm == WORLD else op
            for op in rank.ops
        ]
    findings = worse_than_notes(killed_after(job, places).write(tmp_path / "job"))
    assert [(f["kind"], f["severity"]) for f in findings] == [("group_order", s) for s in severities]


def test_jobs_that_closed_or_went_on_are_well(tmp_path):
    job = swapped_in_the_last_step()
    for rank in job.ranks:
        rank.end = "closed"
    assert worse_than_notes(job.write(tmp_path / "closed")) == []


def behind(job, number):
    """Each rank's host calls more, as hosts run ahead of their devices."""
    for rank in job.ranks:
        for n in range(number):
            if n % 2 in rank.order:
                rank.ops.append(all_reduce(n % 2, rank.ops[-1].at + 1, stream=n % 2 + 1))
    return job


@pytest.mark.one_of(2)
@pytest.mark.parametrize("number", [1, 2, 5, 40])
@pytest.mark.parametrize("timed", [False, True])
def test_two_calls_the_other_way_round_behind_which_others_were_made(number, timed, tmp_path):
    folder = killed_after(behind(swapped_in_the_last_step(8, **other_streams()), number), LONG).write(tmp_path / "job")
    if timed:
        time_on_the_device(folder, lambda rank, call: call["seq"] < 7)
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["ranks"], finding["seq"]) == ("group_order", [0, 1], 7)
    assert finding["severity"] == ("error" if timed else "warning")


def test_where_a_rank_did_something_else_that_is_told(tmp_path):
    """It left out a call of another size: numbers behind it are of other calls, and the orders seem to differ."""
    job = steps(2, 8, [[0, 1], [0, 1]], lambda *_: (WORLD, PAIR))
    for rank in job.ranks:
        rank.ops = [jobs.dataclasses.replace(op, count=8 + n) for n, op in enumerate(rank.ops)]
    del job.ranks[1].ops[8]
    findings = worse_than_notes(killed_after(job, SHORT).write(tmp_path / "job"))
    assert {f["kind"] for f in findings} == {"mismatch"}


@pytest.mark.parametrize("seed", some(range(30), 3))
def test_random_jobs_whose_ranks_keep_one_order_are_well(tmp_path, seed):
    """Ranks are in a random choice of groups, and on one stream; each leaves out what is not its own."""
    rng = random.Random(seed)
    ranks = rng.randint(2, 6)
    comms = [list(range(ranks))] + [sorted(rng.sample(range(ranks), rng.randint(2, ranks))) for _ in range(3)]
    program = [rng.sample(range(4), 4) for _ in range(rng.randint(1, 25))]
    job = killed_after(steps(ranks, len(program), comms, lambda _, step: program[step]), rng.choice([LONG, SHORT]))
    assert worse_than_notes(job.write(tmp_path / "job")) == []

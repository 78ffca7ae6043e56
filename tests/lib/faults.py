"""Plants one fault into a healthy job (jobs.py) and says what a check must name.

Each `plant_*(job, rank, comm, place)` changes what `rank` does at its collective number `place` of
communicator `comm`, and returns the changed job.
"""

import dataclasses

from lib import jobs

RANK = {2: 1, 8: 5, 512: 300}  # job size -> the rank that a fault is planted in
SIZES = RANK.keys()


def first_difference(mine, others):
    """Returns the number of the first collective that differs, and both sides' calls (None: no more calls)."""
    for seq in range(max(len(mine), len(others))):
        a = mine[seq].call if seq < len(mine) else None
        b = others[seq].call if seq < len(others) else None
        if a != b:
            return seq, a, b
    raise AssertionError("nothing was planted")


def index_of(job, rank, comm, place):
    """Returns the operation's index in the rank's list."""
    op = job.collectives(rank, comm)[place]
    return next(i for i, other in enumerate(job.ranks[rank].ops) if other is op)


def _changed(job, rank, comm, place, **values):
    job = job.copy()
    i = index_of(job, rank, comm, place)
    job.ranks[rank].ops[i] = dataclasses.replace(job.ranks[rank].ops[i], **values)
    return job


def plant_skipped(job, rank, comm, place):
    job = job.copy()
    del job.ranks[rank].ops[index_of(job, rank, comm, place)]
    return job


def plant_extra(job, rank, comm, place):
    job = job.copy()
    i = index_of(job, rank, comm, place)
    op = job.ranks[rank].ops[i]
    extra = dataclasses.replace(op, function="ncclAlltoAll", count=77, reduce=None, peer=None)
    job.ranks[rank].ops.insert(i + (place > 0), extra)
    return job


def plant_count(job, rank, comm, place):
    op = job.collectives(rank, comm)[place]
    return _changed(job, rank, comm, place, count=op.count + 1)


def plant_dtype(job, rank, comm, place):
    op = job.collectives(rank, comm)[place]
    return _changed(job, rank, comm, place, dtype="int8" if op.dtype == "uint8" else "uint8")


def plant_root(job, rank, comm, place):
    return _changed(job, rank, comm, place, peer=1)


def plant_reduction(job, rank, comm, place):
    return _changed(job, rank, comm, place, reduce="prod")


def plant_function(job, rank, comm, place):
    return _changed(
        job, rank, comm, place, function="ncclAlltoAll", count=77, reduce=None, peer=None
    )


def plant_order(job, rank, comm, place):
    job = job.copy()
    mine = job.collectives(rank, comm)
    other = place + 1 if place + 1 < len(mine) else place - 1
    i, k = index_of(job, rank, comm, place), index_of(job, rank, comm, other)
    ops = job.ranks[rank].ops
    first, second = ops[i], ops[k]
    ops[i] = dataclasses.replace(second, at=first.at)
    ops[k] = dataclasses.replace(first, at=second.at)
    return job


def pin(job, comm):
    """Returns the same job with calls that have a root and a reduction at the places() of `comm`."""
    job = job.copy()
    for at in places(job, job.comms[comm][0], comm).values():
        for rank in job.comms[comm]:
            i = index_of(job, rank, comm, at)
            job.ranks[rank].ops[i] = dataclasses.replace(
                job.ranks[rank].ops[i], function="ncclReduce", count=4242, peer=0, reduce="sum"
            )
    return job


def pinned_job(ranks, folder):
    """Makes a healthy job of 2, 8 or 512 ranks and writes its files."""
    # With 512 ranks there are only two communicators, so that the job is quickly made.
    comms = {2: [[0, 1]], 8: None, 512: [list(range(512)), list(range(256, 512))]}
    operations = {2: 40, 8: 80, 512: 24}
    job = pin(jobs.healthy(ranks, operations[ranks], 7, comms[ranks]), 0)
    return jobs.Written(job, job.write(folder))


DIFFERENT = {
    "skipped": plant_skipped,
    "extra": plant_extra,
    "count": plant_count,
    "dtype": plant_dtype,
    "root": plant_root,
    "reduction": plant_reduction,
    "function": plant_function,
    "order": plant_order,
}


def places(job, rank, comm):
    """Returns the numbers of the rank's first, middle and last collective on the communicator."""
    n = len(job.collectives(rank, comm))
    return {"first": 0, "middle": n // 2, "last": n - 1}


# Ends ------------------------------------------------------------------------------------------


def _stop_others(job, rank, op, inside):
    """Stops the other ranks, since nobody gets past `op` without `rank`. Members of its communicator
    wait at `op`; the rest stop as soon as they need a rank that waits. `inside`: members wait in the
    call; otherwise it returned and they wait after it."""
    waiting = {rank}
    for other in job.comms[op.comm]:
        if other != rank:
            ops = job.ranks[other].ops
            i = ops.index(op)
            job.ranks[other].inside = [op] if inside else []
            job.ranks[other].ops = ops[: i + (not inside)]
            waiting.add(other)
    for other in set(range(job.size)) - waiting:
        ops = job.ranks[other].ops
        for i, theirs in enumerate(ops):
            members = () if theirs.comm is None else job.comms[theirs.comm]
            if theirs.at > op.at and waiting & set(members):
                job.ranks[other].ops = ops[: i + 1]
                break
    for other in range(job.size):
        if other != rank:
            job.ranks[other].end = "recovered"


def plant_killed(job, rank, comm, place, others_go_on=False, inside=False):
    """The rank is killed before the call; 6 s later the others are killed too, or have come to their end."""
    op = job.collectives(rank, comm)[place]
    i = index_of(job, rank, comm, place)
    job = job.copy()
    job.ranks[rank].ops = job.ranks[rank].ops[:i]
    job.ranks[rank].end = "recovered"
    job.ranks[rank].until = op.at
    if not others_go_on:
        _stop_others(job, rank, op, inside)
    for other in set(range(job.size)) - {rank}:
        job.ranks[other].until = op.at + 60_000
    return job, op


def plant_killed_inside(job, rank, comm, place, others_inside=False):
    """The rank is killed within the call, the others 6 s later."""
    job, op = plant_killed(job, rank, comm, place, inside=others_inside)
    job.ranks[rank].inside = [op]
    return job, op


def plant_hung(job, rank, comm, place, others_inside=False):
    """The rank does not come back from the call: 6 s later all are killed."""
    job, op = plant_killed_inside(job, rank, comm, place, others_inside)
    job.ranks[rank].until = op.at + 60_000
    return job, op


def plant_different_inside(job, rank, comm, place, how, others_inside=True):
    """The rank is in a different call from the others, whose call did not return either."""
    job, op = plant_hung(job, rank, comm, place, others_inside)
    change = {
        "count": {"count": op.count + 1},
        "function": {"function": "ncclAlltoAll", "count": 77, "reduce": None, "peer": None},
    }[how]
    job.ranks[rank].inside = [dataclasses.replace(op, **change)]
    return job, op


def plant_elsewhere(job, rank, comm, place):
    """The rank is in its own code for 6 s while the others wait in the call: then all are killed."""
    job, op = plant_killed(job, rank, comm, place, inside=True)
    job.ranks[rank].until = op.at + 60_000
    return job, op


def plant_left(job, rank, comm, place):
    """The rank exits in good order before the call (an exception); the others are killed in it."""
    job, op = plant_killed(job, rank, comm, place, inside=True)
    job.ranks[rank].end = "closed"
    return job, op


def assert_names(finding, job, kind, ranks, seq, function):
    assert finding["kind"] == kind, finding
    assert finding["ranks"] == ranks, finding
    assert finding["communicator"] == job.id(0), finding
    assert (finding["seq"], finding["function"]) == (seq, function), finding

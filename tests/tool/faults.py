"""Plants one fault into a healthy job (jobs.py) and says what a check must name.

Each `plant_*(job, rank, comm, place)` changes what `rank` does at its collective number `place` of
communicator `comm`, and returns the changed job.
"""

import dataclasses


def first_difference(mine, others):
    """Number of the first collective that is not the same, and both sides (None: no more)."""
    for seq in range(max(len(mine), len(others))):
        a = mine[seq].call if seq < len(mine) else None
        b = others[seq].call if seq < len(others) else None
        if a != b:
            return seq, a, b
    raise AssertionError("nothing was planted")


def _place(job, rank, comm, place):
    """Index in the rank's operations."""
    op = job.collectives(rank, comm)[place]
    return next(i for i, other in enumerate(job.ranks[rank].ops) if other is op)


def _changed(job, rank, comm, place, **values):
    job = job.copy()
    i = _place(job, rank, comm, place)
    job.ranks[rank].ops[i] = dataclasses.replace(job.ranks[rank].ops[i], **values)
    return job


def plant_skipped(job, rank, comm, place):
    job = job.copy()
    del job.ranks[rank].ops[_place(job, rank, comm, place)]
    return job


def plant_extra(job, rank, comm, place):
    job = job.copy()
    i = _place(job, rank, comm, place)
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
    i, k = _place(job, rank, comm, place), _place(job, rank, comm, other)
    ops = job.ranks[rank].ops
    first, second = ops[i], ops[k]
    ops[i] = dataclasses.replace(second, at=first.at)
    ops[k] = dataclasses.replace(first, at=second.at)
    return job


def pin(job, comm):
    """The same job with calls that have a root and a reduction at the places() of `comm`."""
    job = job.copy()
    for at in places(job, job.comms[comm][0], comm).values():
        for rank in job.comms[comm]:
            i = _place(job, rank, comm, at)
            job.ranks[rank].ops[i] = dataclasses.replace(
                job.ranks[rank].ops[i], function="ncclReduce", count=4242, peer=0, reduce="sum"
            )
    return job


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
    """First, middle and last."""
    n = len(job.collectives(rank, comm))
    return {"first": 0, "middle": n // 2, "last": n - 1}

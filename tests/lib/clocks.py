"""Makes jobs whose clocks are known, and tells how far a merged trace is off."""

import json
import pathlib
import random
from collections.abc import Iterable

from lib import jobs
from lib.rankfile import lines_of

COUNT = 1024  # float32, summed
AHEAD_NS = 200_000  # from a host's call to its start on the device


def clock_job(folder: pathlib.Path, *shape, **more) -> dict:
    """Writes such a job, and returns its truth."""
    job, truth = made(*shape, **more)
    job.write(folder)
    return truth


def made(
    hosts: int, ranks_per_host: int, collectives: int,
    seen: str = "device", sleeps: Iterable[tuple[int, int, int]] = (), seed: int = 1,
) -> tuple[jobs.Job, dict]:  # fmt: skip
    """Makes a job in which ranks compute, come to a collective, wait for the last one and leave.
    Returns when each came and left, in true nanoseconds. The files have the times that the hosts' clocks showed: they
    are off and run wrong. `seen`: collectives were timed on the "device", or are calls of the "host", which return at
    once. `sleeps`: (rank, before which collective, ns)."""
    rng = random.Random(seed)
    clocks = [(800e3 * rng.uniform(-1, 1), 5e-6 * rng.uniform(-1, 1)) for _ in range(hosts)]
    ranks = hosts * ranks_per_host
    sleep = {(rank, at): ns for rank, at, ns in sleeps}
    now, truth = [1e9] * ranks, {"came": [], "left": []}
    for n in range(collectives):
        came = [now[r] + 30e6 + rng.expovariate(1 / 150e3) + sleep.get((r, n), 0) for r in range(ranks)]
        now = [max(came) + 40e3 + rng.expovariate(1 / 5e3) for _ in came]
        truth["came"].append([round(at) for at in came])
        truth["left"].append([round(at) for at in now])
    job = jobs.Job([list(range(ranks))], [], seed)
    for rank in range(ranks):
        offset, drift = clocks[rank // ranks_per_host]
        # Ranks start one after the other, and the wall clock is slewed meanwhile.
        zero = int(1e6 * rank + offset + 1e6 * rank * drift)
        ops = []
        for n, both in enumerate(zip(truth["came"], truth["left"])):
            start, end = (int(of[rank] + offset + of[rank] * drift) for of in both)
            timed = (AHEAD_NS, end - start) if seen == "device" else None
            begin = start - zero - AHEAD_NS
            ops.append(jobs.Op("ncclAllReduce", n, COUNT, 0, "float32", "sum", begin_ns=begin, device=timed))
        host = rank // ranks_per_host
        header = {"monotonic_ns": 5 * 10**9 + zero}
        job.ranks.append(jobs.Rank(ops, [0], host=host, clock_ns=zero + 699 * rank, header=header))
    return job, truth


def nanoseconds(micros: str) -> int:
    sign = -1 if micros.startswith("-") else 1
    whole, rest = micros.lstrip("-").split(".")
    return sign * (int(whole) * 1000 + int(rest))


def left(merged: pathlib.Path) -> list[dict[int, int]]:
    """Returns when each rank had left each collective, on the time axis of the trace."""
    found = []
    for line in lines_of(merged):
        if '"cat":"DEVICE"' not in line:
            continue
        event = json.loads(line, parse_float=str)
        args = event["args"]
        while len(found) <= args["seq"]:
            found.append({})
        end = nanoseconds(event["ts"]) + nanoseconds(event["dur"])
        found[args["seq"]][event["pid"]] = end
    return found


def errors(merged: pathlib.Path, truth: dict, ranks_per_host: int) -> list[float]:
    """Returns how far each host's clock is off from the first host's, at each collective."""
    off = []
    for seen, true in zip(left(merged), truth["left"], strict=True):
        distance = [seen[rank] - true[rank] for rank in sorted(seen)]
        off += [abs(d - distance[0]) for d in distance[ranks_per_host:]]
    return off

"""Makes jobs whose clocks are known, and tells how far a merged trace is off."""

import json
import pathlib
import random
from collections.abc import Iterable

from lib import handmade, jobs
from lib.jobs import BASE_NS, micros
from lib.rankfile import lines_of

COUNT = 1024  # float32, summed
AHEAD_NS = 200_000  # from a host's call to its start on the device


def clock_job(
    folder: pathlib.Path, hosts: int, ranks_per_host: int, collectives: int,
    seen: str = "device", sleeps: Iterable[tuple[int, int, int]] = (), seed: int = 1,
) -> dict:  # fmt: skip
    """Writes the rank files of a job in which ranks compute, come to a collective, wait for the last one and leave.
    Returns when each came and left, in true nanoseconds. The files have the times that the hosts' clocks showed: they
    are off and run wrong. `seen`: collectives were timed on the "device", or are calls of the "host", which return at
    once. `sleeps`: (rank, before which collective, ns)."""
    folder.mkdir(parents=True, exist_ok=True)
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
    for rank in range(ranks):
        offset, drift = clocks[rank // ranks_per_host]
        calls = [
            [int(of[n][rank] + offset + of[n][rank] * drift) for of in (truth["came"], truth["left"])]
            for n in range(collectives)
        ]
        # Ranks start one after the other, and the wall clock is slewed meanwhile.
        zero = int(1e6 * rank + offset + 1e6 * rank * drift)
        (folder / f"rank-{rank:05}.json").write_text(_rank_file(rank, ranks, rank // ranks_per_host, zero, calls, seen))
    return truth


def _rank_file(rank: int, ranks: int, host: int, zero: int, calls: list, seen: str) -> str:
    base, n = BASE_NS + zero + 700 * rank, len(calls)
    own = {"pid": rank}
    comm = handmade.comm(id="00000000000000c1", nranks=ranks, rank=rank) | own
    lines = [
        handmade.header(
            run_id="clocks", rank=rank, world_size=ranks, local_rank=0, host=f"node{host}", boot_id=f"boot-{host}",
            pid=4000 + rank, start_ns=base - 10**9, base_time_ns=base, monotonic_ns=5 * 10**9 + zero,
            clock=[[0, base, 48]], config={},
        ) | own,
        comm,
    ]  # fmt: skip
    for seq, (start, end) in enumerate(calls):
        at, call = start - zero, f'"name":"ncclAllReduce","ph":"X","pid":{rank}'
        lines.append(
            f'{{{call},"cat":"ALLREDUCE","tid":7,"ts":{micros(at - AHEAD_NS)},"dur":5.000,"args":{{"comm":1,"seq":{seq},'
            f'"count":{COUNT},"dtype":"float32","bytes":{4 * COUNT},"reduce":"sum"}}}}'
        )
        if seen == "device":
            lines.append(
                f'{{"cat":"DEVICE",{call},"tid":8388609,"ts":{micros(at)},"dur":{micros(end - start)},"args":'
                f'{{"comm":1,"seq":{seq},"stream":1,"call_tid":7,"queued":{micros(AHEAD_NS)}}}}}'
            )
    signature, marks = jobs.signature((("ncclAllReduce", COUNT, "float32", None, "sum"),) * n)
    timed = n if seen == "device" else 0
    row = handmade.row(
        bucket="ALLREDUCE", name="ncclAllReduce", bytes_class=12, calls=n, count=n * COUNT, elements=n * COUNT,
        bytes=4 * n * COUNT, host_ns=5000 * n, host_ns_max=5000, device_ns=50_000 * timed, device_timed=timed,
    )  # fmt: skip
    done = {"comm": 1, "collectives": n, "signature": signature, "marks": marks}
    coverage = {"functions": [], "unseen": [], "tools": []}
    lines += [
        handmade.ledger(row, comms=[done], ts=(calls[-1][1] - zero) / 1000) | own, comm,
        handmade.footer(base_time_ns=base, coverage=coverage) | own,
    ]  # fmt: skip
    return handmade.array(*lines)


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

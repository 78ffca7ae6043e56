"""Makes jobs whose clocks are known (tests/golden/clock_jobs.cpp), and tells how far a merged trace is off."""

import json
import pathlib
import subprocess
from collections.abc import Iterable

from lib.build import BUILD
from lib.rankfile import lines_of


def clock_job(
    folder: pathlib.Path, hosts: int, ranks_per_host: int, collectives: int,
    seen: str = "device", sleeps: Iterable[tuple[int, int, int]] = (), seed: int = 1,
) -> dict:  # fmt: skip
    """Writes the rank files and returns the truth. `sleeps`: (rank, before which collective, ns)."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [BUILD / "clock_jobs", folder, hosts, ranks_per_host, collectives, seed, seen]
    command += [number for sleep in sleeps for number in sleep]
    return json.loads(subprocess.check_output(list(map(str, command)), timeout=60))


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

"""Measures the clock error of a merged trace.

Host clocks drift and are off by up to 0.8 ms, and ranks leave collectives with 5 us of jitter. The
simulation knows the truth (tests/golden/clock_jobs.cpp).
"""

import json
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

from figures import Figure
from place import Place

HOSTS, RANKS_PER_HOST = 8, 2


def nanoseconds(micros: str) -> int:
    whole, rest = micros.split(".")
    return int(whole) * 1000 + int(rest)


def microseconds_off(merged: Path, left: list[list[int]]) -> list[float]:
    """Returns the error of each rank on another host against rank 0, at each collective."""
    seen = [{} for _ in left]
    for line in merged.read_text().split("\n"):
        if '"cat":"DEVICE"' in line:
            event = json.loads(line.rstrip(","), parse_float=str)
            args = event["args"]
            end = nanoseconds(event["ts"]) + nanoseconds(event["dur"])
            seen[args["seq"]][event["pid"]] = end
    off = []
    for found, true in zip(seen, left, strict=True):
        distance = [found[rank] - true[rank] for rank in sorted(found)]
        off += [abs(d - distance[0]) / 1000 for d in distance[RANKS_PER_HOST:]]
    return off


def figures(place: Place) -> Iterator[Figure]:
    for collectives, limit in ((2, None), (100, None), (2000, 1)):
        folder = place.empty_folder("clock-job")
        merged = place.build / "bench" / "clocks.json"
        aligned, by_wall_clock = [], []
        for seed in range(1, 6):
            shutil.rmtree(folder)
            folder.mkdir()
            job = [HOSTS, RANKS_PER_HOST, collectives, seed, "device"]
            command = [place.build / "clock_jobs", folder, *job]
            truth = json.loads(subprocess.check_output(list(map(str, command))))
            for clock, medians in (("collective", aligned), ("realtime", by_wall_clock)):
                place.finish([place.tprof, "merge", folder, "-o", merged, "--clock", clock])
                medians.append(statistics.median(microseconds_off(merged, truth["left"])))
                merged.unlink()
        shutil.rmtree(folder)
        yield Figure(
            f"clocks of {HOSTS} hosts, {collectives:,} collectives, median error",
            "microseconds",
            aligned,
            "their wall clocks",
            by_wall_clock,
            limit=limit,
        )

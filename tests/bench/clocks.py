"""Measures the clock error of a merged trace.

Host clocks drift and are off by up to 0.8 ms, and ranks leave collectives with 5 us of jitter. The
simulation knows the truth (tests/lib/clocks.py).
"""

import shutil
import statistics
from collections.abc import Iterator

from figures import Figure
from lib.clocks import clock_job, errors
from place import Place

HOSTS, RANKS_PER_HOST = 8, 2


def figures(place: Place) -> Iterator[Figure]:
    for collectives, limit in ((2, None), (100, None), (2000, 1)):
        folder = place.empty_folder("clock-job")
        merged = place.build / "bench" / "clocks.json"
        aligned, by_wall_clock = [], []
        for seed in range(1, 6):
            shutil.rmtree(folder)
            folder.mkdir()
            truth = clock_job(folder, HOSTS, RANKS_PER_HOST, collectives, seed=seed)
            for clock, medians in (("collective", aligned), ("realtime", by_wall_clock)):
                place.finish([place.tprof, "merge", folder, "-o", merged, "--clock", clock])
                medians.append(statistics.median(errors(merged, truth, RANKS_PER_HOST)) / 1000)
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

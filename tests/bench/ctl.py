"""Measures how soon a job obeys `tprof ctl`: the whole command, next to one that asks nobody."""

import random
import subprocess
import time
from collections.abc import Iterator

from figures import Figure
from place import Place

ASKED = 30
LONGEST_MS = 200  # README.md
SECONDS = 30


def took_ms(command: list, may_fail: bool = False) -> float | None:
    begin = time.monotonic_ns()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=not may_fail)
    return (time.monotonic_ns() - begin) / 1e6 if done.returncode == 0 else None


def figures(place: Place) -> Iterator[Figure]:
    for rate, name in ((1, "1 call/s"), (5000, "5,000 calls/s")):
        traces = place.empty_folder("traces")
        ask = [place.tprof, "ctl", traces]
        command = [place.build / "bench_paced", str(rate), str(SECONDS)]
        with subprocess.Popen(command, env=place.environment(traces), stdout=subprocess.DEVNULL) as job:
            while took_ms([*ask, "start"], may_fail=True) is None and job.poll() is None:
                time.sleep(0.1)
            obeyed, nobody = [], []
            for i in range(ASKED):
                time.sleep(random.uniform(0, 0.2))  # at any moment between two wakings
                obeyed.append(took_ms([*ask, "stop" if i % 2 == 0 else "start"]))
                nobody.append(took_ms([place.tprof, "--version"]))
            job.kill()
        yield Figure(
            f"tprof ctl, asked and obeyed, longest of {ASKED}, {name}", "ms", [max(obeyed)],
            "tprof --version", [max(nobody)], compare="difference", limit=LONGEST_MS,
        )  # fmt: skip

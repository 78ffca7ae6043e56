"""Measures `tprof check` and `summary` of jobs as big as they get, on two cores.

The figures are wall time and peak memory of the tool itself.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from figures import Figure
from place import Place

MIB = 1 << 20
LINES = 1000
RANKS = (512, 4096, 10_000)
# kind of job -> the exit status of `check`, and the factor by which its time and memory may exceed
# those of a healthy job.
KINDS = {"closed": (0, 1), "killed": (1, 2), "lost": (1, 2), "hung": (1, 2), "sizes": (1, 2)}
KINDS |= {"group_sizes": (1, 2)}
INCOMPLETE = ("killed", "lost")  # `summary` fails for these only
CHECK_S, CHECK_MIB = 60, 1024  # for 10,000 healthy ranks, and for fewer ranks in proportion
LEDGERS_S = 5
# The largest jobs, with little work each, show what a rank alone costs.
MOST_RANKS, FEW_LINES, MOST_S, MOST_MIB = 100_000, 10, 20, 1024
RUN_S = 1  # `tprof run` may add this to a command in a folder that holds such a job


def big_job(place: Place, ranks: int, kind: str, lines: int = LINES) -> Path:
    folder = place.empty_folder("big")
    command = [place.build / "big_jobs", folder, str(ranks), str(lines), kind]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return folder


def of_job(place: Place, ranks: int, kind: str) -> Iterator[Figure]:
    folder = big_job(place, ranks, kind)
    status, times = KINDS[kind]
    # A small job gets at least a tenth of the limits, so that it has time to start.
    share = max(ranks / max(RANKS), 0.1) * times
    commands = {
        "check": (["check", folder], status, CHECK_S),
        "check --no-lines": (["check", "--no-lines", folder], status, LEDGERS_S),
        "summary": (["summary", folder], int(kind in INCOMPLETE), LEDGERS_S),
    }
    if kind == "hung":
        del commands["summary"]
    if kind == "closed":
        commands["run"] = (["run", "--out", folder, "--", "true"], 0, RUN_S)
    for name, (arguments, expected, limit_s) in commands.items():
        used = place.finish([place.tprof, *arguments], status=expected)
        what = f"{name}, {ranks:,} ranks {kind}"
        yield Figure(what, "s", [used.wall_s], limit=limit_s * share)
        yield Figure(f"{what}, memory", "MiB", [used.peak_bytes / MIB], limit=CHECK_MIB * share)
    shutil.rmtree(folder)


def of_most_ranks(place: Place) -> Iterator[Figure]:
    folder = big_job(place, MOST_RANKS, "closed", FEW_LINES)

    def measured(name: str, command: list, status: int = 0) -> Iterator[Figure]:
        used = place.finish([place.tprof, *command, folder], status=status)
        what = f"{name}, {MOST_RANKS:,} ranks"
        yield Figure(what, "s", [used.wall_s], limit=MOST_S)
        yield Figure(f"{what}, memory", "MiB", [used.peak_bytes / MIB], limit=MOST_MIB)

    yield from measured("check", ["check"])
    yield from measured("summary", ["summary"])
    # Each is a finding of its own. The tool prints the first ones and how many more there are.
    for file in sorted(folder.iterdir())[1:]:
        file.write_text("[\n{")
    yield from measured("summary of one that can be read", ["summary"], status=1)
    shutil.rmtree(folder)


def figures(place: Place) -> Iterator[Figure]:
    # The limits are for two cores.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:2])
    try:
        for ranks in RANKS:
            for kind in KINDS:
                yield from of_job(place, ranks, kind)
        yield from of_most_ranks(place)
    finally:
        os.sched_setaffinity(0, cores)

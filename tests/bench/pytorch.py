"""Measures the step time of PyTorch FSDP2 with and without the preload, on the stand-in, and the bytes of its lines."""

import statistics
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, NotMeasured
from lib.build import REPO
from lib.launch import NO_LOOKUPS, agent
from place import Place

PAIRS = 4
STEPS = 60
WARM_UP = 10  # steps
RANKS = 2
GZIP_LEVEL = 6
PYTHON = REPO / "build/venv/bin/python"


def step_ms(place: Place, traces: Path | None) -> tuple[float, float]:
    """Returns the median step's wall and CPU time; CPU time covers all of a rank's threads, also the writer."""
    done = subprocess.run(
        [*agent(RANKS, PYTHON), str(REPO / "tests/bench/fsdp2_steps.py"), str(STEPS)],
        env=place.environment(
            traces,
            LD_LIBRARY_PATH=str(place.build / "standin"),
            PYTHONPATH=str(REPO / "tests/clients"),
            OMP_NUM_THREADS="1",
            **NO_LOOKUPS,
        ),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    steps = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("step ")]
    if len(steps) != STEPS:
        raise NotMeasured(f"expected {STEPS} steps, saw {len(steps)}")
    wall, cpu = ([float(step[i]) for step in steps[WARM_UP:]] for i in (0, 1))
    return statistics.median(wall), statistics.median(cpu)


def line_sizes(file: Path) -> Iterator[Figure]:
    """Yields the bytes of a line, of the trace of one rank. In a longer run its numbers have more digits."""
    lines = [line for line in file.read_text().splitlines(keepends=True) if '"ph":"X"' in line]
    for name, what, limit in (("nccl", "collective", 220), ("cuda", "copy", 170)):
        sizes = [len(line) for line in lines if f'"name":"{name}' in line]
        yield Figure(f"line of a {what}", "bytes", [statistics.mean(sizes)], limit=limit)
    gzipped = zlib.compress("".join(lines).encode(), GZIP_LEVEL)
    yield Figure(f"line, gzip -{GZIP_LEVEL}", "bytes", [len(gzipped) / len(lines)], limit=25)


def figures(place: Place) -> Iterator[Figure]:
    if not PYTHON.with_name("torchrun").exists():
        raise NotMeasured("no PyTorch in build/venv: scripts/bootstrap bench fetches it")
    without, traced = [], []
    for pair in range(PAIRS):
        # The order alternates, so that a drift of the machine favours neither.
        for preload in (False, True) if pair % 2 == 0 else (True, False):
            if not preload:
                without.append(step_ms(place, None))
                continue
            traces = place.empty_folder("traces")
            traced.append(step_ms(place, traces))
            if len(list(traces.glob("rank-*.json"))) != RANKS:
                raise NotMeasured("the preload wrote no traces")
    yield from line_sizes(next(traces.glob("rank-*.json")))
    for i, unit in enumerate(("ms", "ms CPU")):
        yield Figure(
            f"FSDP2 step, {RANKS} ranks",
            unit,
            [run[i] for run in traced],
            "without the preload",
            [run[i] for run in without],
            compare="ratio",
        )

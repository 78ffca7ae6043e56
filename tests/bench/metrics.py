"""Measures the background thread's cost of reading TPROF_METRICS, next to reading the same files."""

import json
import os
import subprocess
import time
from collections.abc import Iterator

from figures import Figure
from place import Place, last_lines

REPETITIONS = 3
RATE, SECONDS = 1000, 3
FILES = ("/proc/self/status", "/proc/self/io")


def background(place: Place, **env: str) -> tuple[int, int]:
    """Returns the background thread's CPU ns, from the trace's footer, and the number of readings."""
    traces = place.empty_folder("traces")
    subprocess.run(
        [place.build / "bench_paced", str(RATE), str(SECONDS)],
        env=place.environment(traces, **env), stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    (file,) = traces.glob("*.json")
    footer = next(line for line in last_lines(file) if line.startswith('{"name":"tprof_footer"'))
    with file.open() as lines:
        readings = sum('"name":"process threads"' in line for line in lines)
    return json.loads(footer.rstrip(","))["args"]["self_cost_ns"], readings


def reads(files: tuple[str, ...]) -> float:
    """Returns the CPU us of reading the open files once, with caches that hold other data."""
    descriptors = [os.open(file, os.O_RDONLY) for file in files]
    rounds, took = 20, 0
    other = bytearray(64 << 20)
    for _ in range(rounds):
        bytes(other)
        begin = time.thread_time_ns()
        for descriptor in descriptors:
            os.pread(descriptor, 1 << 16, 0)
        took += time.thread_time_ns() - begin
    for descriptor in descriptors:
        os.close(descriptor)
    return took / rounds / 1000


def figures(place: Place) -> Iterator[Figure]:
    costs, floors = [], []
    for _ in range(REPETITIONS):
        off, none = background(place)
        on, readings = background(place, TPROF_METRICS="100ms")
        assert none == 0 and readings >= SECONDS, readings
        costs.append((on - off) / readings / 1000)
        floors.append(reads(FILES))
    yield Figure(
        "a reading of TPROF_METRICS", "us CPU", costs, "pread of the files", floors, compare="ratio", limit=8
    )

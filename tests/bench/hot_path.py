"""Measures what a recorded call costs its thread, on the instant libraries of tests/fault."""

import json
import subprocess
from collections.abc import Iterator

from figures import Figure, NotMeasured
from place import Place, dropped

REPETITIONS = 15
FUNCTIONS = ("ncclAllGather", "cudaMemcpyAsync")


def client(place: Place, *arguments: str, **env: str) -> dict:
    traces = place.empty_folder("traces")
    done = subprocess.run(
        [place.build / "bench_hot_path", *arguments],
        env=place.environment(traces, **env),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # A call that finds the ring full takes another way through the code.
    if "TPROF_DISABLE" not in env and "ring" in dropped(traces):
        raise NotMeasured(f"{arguments}: the ring was full")
    return json.loads(done.stdout)


def cost(place: Place, threads: str, name: str) -> Iterator[Figure]:
    ns = client(place, threads, str(REPETITIONS))
    for function in FUNCTIONS:
        yield Figure(
            f"recorded {function}, {name}",
            "ns CPU",
            ns[function],
            "floor",
            ns["floor"],
            compare="ratio",
            limit=2,
            aim=1.5,
        )


def disabled(place: Place) -> Iterator[Figure]:
    ns = client(place, "1", str(REPETITIONS), TPROF_DISABLE="1")
    for function in FUNCTIONS:
        yield Figure(
            f"disabled {function}",
            "ns CPU",
            ns[function],
            "bare",
            ns[f"bare {function}"],
            compare="difference",
            limit=5,
        )


def figures(place: Place) -> Iterator[Figure]:
    yield from cost(place, "1", "1 thread")
    yield from cost(place, "16", "16 threads")
    yield from disabled(place)

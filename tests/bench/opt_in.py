"""Measures the hooks that are off by default, both when they are on and when they are off."""

import json
import subprocess
from collections.abc import Iterator

from figures import Figure
from place import Place

REPETITIONS = 15
# The null CUPTI has no records, so calls pile up: these are as many as we have room for.
REPETITIONS_WITHOUT_RECORDS = 5
ON = {"TPROF_DRIVER": "1", "TPROF_DLSYM": "1"}


def client(place: Place, repetitions: int = REPETITIONS, *more: str, **env: str) -> dict[str, list[float]]:
    done = subprocess.run(
        [place.build / "bench_opt_in", str(repetitions), *more],
        env=place.environment(place.empty_folder("traces"), **env),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def figures(place: Place) -> Iterator[Figure]:
    on = client(place, **ON)
    for name in ("ncclAllGather by pointer", "driver copy, linked", "driver copy, by pointer"):
        yield Figure(
            f"recorded {name}", "ns CPU", on[name], "floor", on["floor"], compare="ratio", limit=2
        )
    yield difference("dlsym, TPROF_DLSYM=1", on["dlsym"], "bare", on["bare dlsym"], 20)
    off = client(place)
    ranges = "NVTX range of NCCL's"
    heard = client(place, NVTX_INJECTION64_PATH=str(place.preload))
    yield difference(ranges, heard[ranges], "not listened to", off[ranges], 20)
    yield Figure(
        "recorded NVTX range", "ns CPU", heard["NVTX range"], "floor", heard["floor"],
        compare="ratio", limit=2,
    )  # fmt: skip
    # 20 ns of it go to its exact count, time and histogram in the ledger, which NVTX ranges lack.
    yield Figure(
        "scope (tprof_push, tprof_pop)", "ns CPU", heard["scope"], "floor", heard["floor"],
        compare="ratio", limit=2.5,
    )  # fmt: skip
    wait = "cudaStreamWaitEvent"
    yield difference(f"{wait}, TPROF_TIMING=host", off[wait], "bare", off[f"bare {wait}"], 5)
    # This is our own part: these events cost the driver nothing, and are over at once.
    timed = client(place, TPROF_TIMING="events", TPROF_DLSYM="1")
    name = "ncclAllGather by pointer"
    yield Figure(
        "ncclAllGather, TPROF_TIMING=events without the driver's part", "ns CPU", timed[name],
        "floor", timed["floor"], compare="ratio", limit=12,
    )  # fmt: skip
    recorded = client(
        place, REPETITIONS_WITHOUT_RECORDS, TPROF_TIMING="cupti", TPROF_DLSYM="1",
        LD_LIBRARY_PATH=str(place.build / "tests/bench/opt_in"),
    )  # fmt: skip
    yield Figure(
        "ncclAllGather, TPROF_TIMING=cupti without CUPTI's part", "ns CPU", recorded[name],
        "floor", recorded["floor"], compare="ratio", limit=8,
    )  # fmt: skip
    between = client(place, TPROF_SCHEDULE="wait=1000000,active=1", TPROF_STEP="period", TPROF_DLSYM="1")
    yield Figure(
        "ncclAllGather, TPROF_SCHEDULE, steps that are looked for", "ns CPU", between[name],
        "floor", between["floor"], compare="ratio", limit=2,
    )  # fmt: skip
    yield difference(f"{wait}, TPROF_TIMING=events, for no call", timed[wait], "bare", off[f"bare {wait}"], 60)
    launch = "cudaLaunchKernel"
    yield difference(f"{launch}, TPROF_TIMING=host", off[launch], "bare", off[f"bare {launch}"], 5)
    yield difference(f"{launch}, TPROF_TIMING=events", timed[launch], "bare", off[f"bare {launch}"], 150)
    # A program has backtrace() at hand for this: a walk by libunwind must cost far less.
    name = "ncclAllGather, 24 frames deep"
    stacks = client(place, TPROF_CALLSITE="native")
    yield difference(f"{name}, TPROF_CALLSITE=native", stacks[name], "off", off[name], 400)
    yield Figure(
        f"{name}, TPROF_CALLSITE=native", "ns CPU", stacks[name], "backtrace()",
        stacks["backtrace() of 24 frames"], compare="ratio", limit=0.5,
    )  # fmt: skip
    # The null driver answers at once: this is our own part of asking it.
    captured = client(place, REPETITIONS, "captures")
    yield difference(f"{name}, in a process that has captured", captured[name], "not", off[name], 20)
    name = "cudaMalloc and cudaFree"
    booked = client(place, TPROF_MEMORY="1")
    yield difference(f"{name}, TPROF_MEMORY=1", booked[name], "bare", booked[f"bare {name}"], 2000)
    yield difference(f"{name}, off", off[name], "bare", off[f"bare {name}"], 20)
    yield difference("dlsym, off", off["dlsym"], "bare", off["bare dlsym"], 20)
    name = "driver copy, linked"
    yield difference(f"{name}, off", off[name], "bare", off["bare driver copy"], 5)


def difference(name: str, values: list, peer: str, peer_values: list, limit: float) -> Figure:
    return Figure(name, "ns CPU", values, peer, peer_values, compare="difference", limit=limit)

"""Compares what a call costs with us and with LTTng-UST, for the same 64 bytes in one process.

LTTng is set up so that it drops nothing. It has per-user buffers of 8 x 4 MiB per CPU, which its
consumer writes to files as our writer does.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator

from figures import Figure, NotMeasured
from place import Place, dropped

REPETITIONS = 15
SESSION = "tprof-bench"
RECORD = 64


def lttng(*arguments: str) -> str:
    done = subprocess.run(["lttng", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotMeasured(f"lttng {' '.join(arguments)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


@contextlib.contextmanager
def session_daemon() -> Iterator[None]:
    """Uses a daemon that runs already and leaves it, or starts one for the benchmark."""
    if subprocess.run(["lttng", "list"], capture_output=True, check=False).returncode == 0:
        yield
        return
    # The daemon signals its parent when it is ready.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    daemon = subprocess.Popen(
        ["lttng-sessiond", "--no-kernel", "--sig-parent"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        if signal.sigtimedwait({signal.SIGUSR1}, 20) is None:
            raise NotMeasured("lttng-sessiond does not start")
        yield
    finally:
        daemon.terminate()
        daemon.wait()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})


@contextlib.contextmanager
def session(output: pathlib.Path) -> Iterator[None]:
    lttng("create", SESSION, f"--output={output}")
    try:
        sizes = ("--subbuf-size=4M", "--num-subbuf=8")
        lttng("enable-channel", "-u", "-s", SESSION, *sizes, "calls")
        lttng("enable-event", "-u", "-s", SESSION, "-c", "calls", "tprof_bench:call")
        lttng("start", SESSION)
        yield
        lttng("stop", SESSION)
    finally:
        subprocess.run(["lttng", "destroy", SESSION], capture_output=True, check=False)


def discarded() -> int:
    """Returns the discarded events of the session's one channel, while the session exists."""
    text = lttng("--mi", "xml", "list", SESSION, "--channel=calls")
    found = re.search(r"<discarded_events>(\d+)<", text)
    if not found:
        raise NotMeasured("LTTng does not say how many events it dropped")
    return int(found[1])


def measure(place: Place) -> dict:
    output = place.empty_folder("lttng")
    traces = place.empty_folder("traces")
    with session_daemon(), session(output):
        # The client waits for the session daemon before it goes on.
        done = subprocess.run(
            [place.build / "bench_lttng", str(REPETITIONS)],
            env=place.environment(traces, LTTNG_UST_REGISTER_TIMEOUT="-1"),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        lttng("stop", SESSION)
        lost = discarded()
        lttng("start", SESSION)
    ns = json.loads(done.stdout)
    written = sum(f.stat().st_size for f in output.rglob("*") if f.is_file())
    if lost or written < ns["tracepoints"] * RECORD:
        raise NotMeasured(f"LTTng dropped {lost} events and wrote {written} bytes")
    if "ring" in dropped(traces):
        raise NotMeasured("our ring was full")
    shutil.rmtree(output)
    return ns


def figures(place: Place) -> Iterator[Figure]:
    if not shutil.which("lttng") or not os.access(place.build / "bench_lttng", os.X_OK):
        print("\nlttng: left out: needs lttng-tools and liblttng-ust-dev (scripts/bootstrap bench)")
        return
    ns = measure(place)
    # Both include the call, two clock reads and the store, which exceed a third of LTTng's cost.
    yield Figure(
        "recorded ncclAllGather, all of it",
        "ns CPU",
        ns["ncclAllGather"],
        "by LTTng-UST",
        ns["lttng"],
        compare="ratio",
        limit=1,
    )
    yield Figure(
        "the same, above the floor",
        "ns CPU",
        above(ns["ncclAllGather"], ns["floor"]),
        "by LTTng-UST",
        above(ns["lttng"], ns["floor"]),
        compare="ratio",
        limit=1,
        aim=1 / 3,
    )
    yield Figure(
        "the same by LTTng-UST's own time stamp only",
        "ns CPU",
        ns["lttng alone"],
        "floor",
        ns["floor"],
        compare="ratio",
    )


def above(values: list[float], floor: list[float]) -> list[float]:
    return [value - least for value, least in zip(values, floor, strict=True)]

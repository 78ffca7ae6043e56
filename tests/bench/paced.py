"""Measures what a call costs in a program that works between its calls.

Its ring file must never make it wait for a disk, even while another program writes a checkpoint.
"""

import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

from figures import Figure, NotMeasured
from place import Place

REPETITIONS = 3
SECONDS = 8
P50, P99, P9999, LONGEST = 0, 1, 3, 4
# calls per second -> the highest percentile that has several calls beyond it, not just one
RATES = {1000: (P99, "p99"), 5000: (P9999, "p99.99")}
SHM = pathlib.Path("/dev/shm")


@contextlib.contextmanager
def busy_disk(file: pathlib.Path) -> Iterator[None]:
    """Writes one checkpoint after the other."""
    write = f"while :; do dd if=/dev/zero of='{file}' bs=1M count=512 conv=fsync 2>/dev/null; done"
    with subprocess.Popen(["sh", "-c", write], start_new_session=True) as writer:
        try:
            yield
        finally:
            subprocess.run(["kill", "-KILL", "--", f"-{writer.pid}"], check=False)
    file.unlink(missing_ok=True)


def measure(place: Place, rate: int, traces: pathlib.Path, **env: str) -> dict[str, list[int]]:
    done = subprocess.run(
        [place.build / "bench_paced", str(rate), str(SECONDS)],
        env=place.environment(traces, **env),
        stdout=subprocess.PIPE,
        check=True,
    )
    shutil.rmtree(traces)
    return json.loads(done.stdout)


def rounds(place: Place, rate: int, memory: pathlib.Path) -> dict[str, list[dict]]:
    """Measures with nothing of ours on the disk, by default, and with the ring file there too."""
    found: dict[str, list[dict]] = {"memory": [], "default": [], "disk": []}
    for _ in range(REPETITIONS):
        found["memory"].append(measure(place, rate, memory / "traces"))
        found["default"].append(measure(place, rate, place.empty_folder("traces")))
        disk = place.empty_folder("traces")
        found["disk"].append(measure(place, rate, disk, TPROF_RING_DIR=str(disk)))
    return found


def of_load(place: Place, rate: int, load: str, memory: pathlib.Path) -> Iterator[Figure]:
    found = rounds(place, rate, memory)
    percentile, name = RATES[rate]

    def of(where: str, which: int, variant: str = "ncclAllGather") -> list[int]:
        return [one[variant][which] for one in found[where]]

    what = f"{rate:,} calls/s, cold caches{load}"
    yield Figure(
        f"median, {what}", "ns", of("default", P50), "floor", of("default", P50, "floor"),
        compare="difference", limit=1000,
    )  # fmt: skip
    yield Figure(
        f"{name}, {what}", "ns", of("default", percentile), "all on tmpfs", of("memory", percentile),
        compare="ratio", limit=2,
    )  # fmt: skip
    for where, which in (("disk", percentile), ("default", LONGEST), ("disk", LONGEST)):
        yield Figure(
            f"{'longest' if which == LONGEST else name}, {what}"
            f"{', ring file on the disk' if where == 'disk' else ''}",
            "ns", of(where, which), "all on tmpfs", of("memory", which), compare="ratio",
        )  # fmt: skip


def figures(place: Place) -> Iterator[Figure]:
    if not SHM.is_dir() or shutil.disk_usage(SHM).free < 2 << 30:
        raise NotMeasured("/dev/shm has no room to spare")
    with tempfile.TemporaryDirectory(dir=SHM) as memory:
        for rate in RATES:
            yield from of_load(place, rate, "", pathlib.Path(memory))
            with busy_disk(place.build / "bench" / "checkpoint"):
                yield from of_load(place, rate, ", beside dd conv=fsync", pathlib.Path(memory))

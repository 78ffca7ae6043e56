"""Counts the instructions of a call with callgrind. No load of the machine disturbs this figure.

It is the difference of two run lengths, in the client's loop. instructions.json keeps the expected
figures for each compiler and C library, whose clock_gettime is part of a call.
"""

import json
import pathlib
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator

from figures import Figure, NotMeasured
from place import Place

KEPT = pathlib.Path(__file__).with_name("instructions.json")
TOLERANCE = 1.03
# Both are shorter than half a ring, so that the writer is not woken.
SHORT, LONG = 1000, 5000
CALLS = {
    "ncclAllGather": {},
    "cudaMemcpyAsync": {},
    "with call sites ncclAllGather": {"TPROF_CALLSITE": "native"},
    "disabled ncclAllGather": {"TPROF_DISABLE": "1"},
    "disabled cudaMemcpyAsync": {"TPROF_DISABLE": "1"},
}


def made_with(preload: pathlib.Path) -> str:
    """Returns the machine, the compilers that left a note in the library, and the C library."""
    comment = subprocess.run(
        ["readelf", "-p", ".comment", preload], capture_output=True, text=True, check=True
    ).stdout
    compilers = sorted(set(re.findall(r"\]\s+(.+)", comment)))
    return f"{platform.machine()}, {', '.join(compilers)}, {' '.join(platform.libc_ver())}"


def instructions(place: Place, function: str, calls: int, env: dict[str, str]) -> int:
    folder = place.empty_folder("callgrind")
    subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            "--toggle-collect=tprof::bench::Caller::calls*",
            f"--callgrind-out-file={folder}/out",
            place.build / "bench_hot_path",
            "make",
            function,
            str(calls),
        ],
        env=place.environment(folder / "traces", **env),
        stderr=subprocess.PIPE,
        check=True,
    )
    return int(re.search(r"^totals: (\d+)", (folder / "out").read_text(), re.MULTILINE)[1])


def per_call(place: Place, name: str) -> float:
    function = name.split()[-1]
    short, long = (instructions(place, function, n, CALLS[name]) for n in (SHORT, LONG))
    return round((long - short) / (LONG - SHORT), 1)


def kept() -> dict[str, dict[str, float]]:
    return json.loads(KEPT.read_text())


def figures(place: Place) -> Iterator[Figure]:
    if shutil.which("valgrind") is None:
        raise NotMeasured("valgrind is not installed")
    key = made_with(place.preload)
    expected = kept().get(key)
    for name in CALLS:
        figure = Figure(f"instructions {name}", "", [per_call(place, name)])
        if expected is not None:
            figure.peer, figure.peer_values = "kept", [expected[name]]
            figure.compare, figure.limit = "ratio", TOLERANCE
            figure.hint = "scripts/bench --keep-instructions"
        else:
            figure.peer, figure.peer_values = f"none kept for {key}", [0]
        yield figure


def keep(place: Place) -> None:
    """Makes the current counts the expected ones."""
    counted = {name: per_call(place, name) for name in CALLS}
    table = kept() | {made_with(place.preload): counted}
    KEPT.write_text(json.dumps(table, indent=2) + "\n")

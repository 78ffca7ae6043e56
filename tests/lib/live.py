"""Jobs that run while the tool looks at them, and what the stand-in has counted of them so far."""

import collections
import contextlib
import json
import pathlib
import struct
import subprocess

from lib import figures, launch, tally
from lib.build import BUILD, TPROF
from lib.runs import until

TRAINER = [BUILD / "native_trainer", "--ranks", "2", "--steps"]
# Reduce-scatters of rank 1 in the job below that return; the next one does not.
SCATTERS_BEFORE_THE_HANG = 4


@contextlib.contextmanager
def standing_still(folder: pathlib.Path, **settings: str):
    """Runs a native job whose rank 1 does not return from a reduce-scatter, and whose rank 0 waits
    for the loss of that step. Yields as soon as no rank makes further calls, by the stand-in's
    tally."""
    hang = f"1:ncclReduceScatter:{SCATTERS_BEFORE_THE_HANG + 1}"
    with launch.running([*TRAINER, "50"], folder, STANDIN_HANG=hang, **settings) as job:
        until(lambda: entered(folder, 0, kind="D2H") == 1)
        until(lambda: entered(folder, 1, function="ncclReduceScatter") == SCATTERS_BEFORE_THE_HANG + 1)
        yield job


def entered(folder: pathlib.Path, rank: int, **of: str) -> int:
    """Returns how many calls of a kind, or of a function, a rank has begun."""
    ranks = pids(folder / "traces")
    return sum(
        row["entered"]
        for process in until(lambda: tallies(folder))
        for row in process["rows"]
        if ranks.get(process["pid"]) == rank and of.items() <= row.items()
    )


@contextlib.contextmanager
def tool(*arguments: object, **options):
    """Runs the tool, and kills it at the end if it has not ended."""
    with subprocess.Popen(
        [str(TPROF), *map(str, arguments)],
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def follower(command: str, folder: pathlib.Path, *options: object):
    """Starts a command that follows a job, and yields it once it has found that the folder is still empty: what it
    finds at its first look would be an earlier job's."""
    with tool(command, folder, *options) as process:
        assert f"{folder}: no rank files yet; waiting for a job that writes there" in process.stderr.readline()
        yield process


def header(file: pathlib.Path) -> dict | None:
    """Returns the header of a rank file, or None if it is not there yet."""
    lines = file.read_text().split("\n")
    found = [line for line in lines[:-1] if line.startswith('{"name":"tprof_header"')]
    return json.loads(found[0].removesuffix(","))["args"] if found else None


def pids(traces: pathlib.Path) -> dict[int, int]:
    """Returns process id -> rank for all processes whose files have begun."""
    headers = [header(file) for file in traces.glob("*.json")]
    return {h["pid"]: h["rank"] for h in headers if h}


def tallies(folder: pathlib.Path) -> list[dict] | None:
    """Returns what the stand-in has counted by now, or None if it wrote while it was read."""
    try:
        found = tally.read_all(folder / "tally")
        for process in found:
            figures.of_tally(process)
    except (AssertionError, KeyError, ValueError, struct.error):
        return None
    return found


def counted(folder: pathlib.Path) -> dict[tuple[int, str, str], dict[str, int]]:
    """Returns (rank, bucket, function) -> calls, elements and bytes, by the stand-in's own tally."""
    ranks = pids(folder / "traces")
    total: dict = collections.defaultdict(collections.Counter)
    for process in until(lambda: tallies(folder)):
        for (bucket, function, *_, mode), found in figures.of_tally(process).items():
            if found["calls"] and mode != "captured":
                amounts = {name: found[name] for name in ("calls", "elements", "bytes")}
                total[ranks.get(process["pid"]), bucket, function].update(amounts)
    return {key: dict(amounts) for key, amounts in total.items()}

"""Jobs that run while the tool looks at them, and what the stand-in has counted of them so far."""

import collections
import contextlib
import json
import pathlib
import subprocess

from lib import figures, launch, tally
from lib.build import BUILD, TPROF
from lib.runs import until

TRAINER = [BUILD / "native_trainer", "--ranks", "2", "--steps"]
# The job below stands still when these calls have returned.
SCATTERS_BEFORE_THE_HANG = 4


@contextlib.contextmanager
def standing_still(folder: pathlib.Path, **settings: str):
    """A native job whose rank 1 does not come back from a reduce-scatter: soon nobody calls any more."""
    hang = f"1:ncclReduceScatter:{SCATTERS_BEFORE_THE_HANG + 1}"
    with launch.running([*TRAINER, "50"], folder, STANDIN_HANG=hang, **settings) as job:
        until(lambda: len(list((folder / "traces").glob("*.json"))) == 2)
        yield job


@contextlib.contextmanager
def tool(*arguments: object, **options):
    """The tool, while it runs; killed at the end if it has not ended."""
    with subprocess.Popen(
        [str(TPROF), *map(str, arguments)],
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def header(file: pathlib.Path) -> dict | None:
    """Of a rank file, as soon as it is there."""
    lines = file.read_text().split("\n")
    found = [line for line in lines[:-1] if line.startswith('{"name":"tprof_header"')]
    return json.loads(found[0].removesuffix(","))["args"] if found else None


def pids(traces: pathlib.Path) -> dict[int, int]:
    """Process id -> rank, of all whose files have begun."""
    headers = [header(file) for file in traces.glob("*.json")]
    return {h["pid"]: h["rank"] for h in headers if h}


def counted(folder: pathlib.Path) -> dict[tuple[int, str, str], dict[str, int]]:
    """(rank, bucket, function) -> calls, elements and bytes, by the stand-in's own tally."""
    ranks = pids(folder / "traces")
    total: dict = collections.defaultdict(collections.Counter)
    for process in tally.read_all(folder / "tally"):
        for (bucket, function, *_, mode), found in figures.of_tally(process).items():
            if found["calls"] and mode != "captured":
                amounts = {name: found[name] for name in ("calls", "elements", "bytes")}
                total[ranks.get(process["pid"]), bucket, function].update(amounts)
    return {key: dict(amounts) for key, amounts in total.items()}

"""Measures `tprof merge` next to `cat` of the same files."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure
from generator import scale as big_jobs
from place import Finished, Place

REPETITIONS = 5


def writing(place: Place, command: Sequence, output: Path, to_stdout: bool = False) -> Finished:
    """Runs a command that writes `output`, and removes it to make room for the next one."""
    try:
        return place.finish(command, output if to_stdout else None)
    finally:
        output.unlink(missing_ok=True)


def figures(place: Place) -> Iterator[Figure]:
    folder = place.empty_folder("ranks")
    big_jobs.write(folder, 64, 100_000, slow=False)
    files = sorted(folder.iterdir())
    merged, copied = (place.build / "bench" / name for name in ("merged.json", "copied"))
    merges, cats = [], []
    for _ in range(REPETITIONS + 1):
        merges.append(writing(place, [place.tprof, "merge", folder, "-o", merged], merged))
        cats.append(writing(place, ["cat", *files], copied, to_stdout=True))
    shutil.rmtree(folder)
    for unit, took, limit in (("s", "wall_s", 4), ("s CPU", "cpu_s", None)):
        # The first turn warms the page cache.
        ours, theirs = ([getattr(run, took) for run in runs[1:]] for runs in (merges, cats))
        yield Figure("merge, 64 ranks x 100,000 lines", unit, ours, "cat to a file", theirs, compare="ratio", limit=limit)
    yield Figure("merge, peak memory", "MiB", [run.peak_bytes / (1 << 20) for run in merges], limit=512)

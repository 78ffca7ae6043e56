"""Measures `tprof merge` next to `cat` of the same files, and `tprof summary` of many ranks."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure
from generator import scale as big_jobs
from place import Finished, Place

REPETITIONS = 5
MIB = 1 << 20


def rank_files(place: Place, name: str, ranks: int, lines: int) -> Path:
    folder = place.empty_folder(name)
    big_jobs.write(folder, ranks, lines, slow=False)
    return folder


def in_turn(*commands) -> list[list[Finished]]:
    """Runs each command REPETITIONS times in turn, after a first turn that warms the page cache and
    does not count."""
    turns = [[command() for command in commands] for _ in range(REPETITIONS + 1)]
    return [list(runs) for runs in zip(*turns[1:], strict=True)]


def writing(place: Place, command: Sequence, output: Path, to_stdout: bool = False) -> Finished:
    """Runs a command that writes `output`, and removes it to make room for the next one."""
    try:
        return place.finish(command, output if to_stdout else None)
    finally:
        output.unlink(missing_ok=True)


def merge(place: Place) -> Iterator[Figure]:
    small = rank_files(place, "ranks-small", 64, 50_000)
    merged = place.build / "bench" / "merged.json"
    few = writing(place, [place.tprof, "merge", small, "-o", merged], merged)
    shutil.rmtree(small)  # before it is written back, which would keep the disk busy below

    large = rank_files(place, "ranks", 64, 100_000)
    files = sorted(large.iterdir())
    copied = place.build / "bench" / "copied"
    merges, cats = in_turn(
        lambda: writing(place, [place.tprof, "merge", large, "-o", merged], merged),
        lambda: writing(place, ["cat", *files], copied, to_stdout=True),
    )
    shutil.rmtree(large)
    yield Figure(
        "merge, 64 ranks x 100,000 lines",
        "s",
        [run.wall_s for run in merges],
        "cat to a file",
        [run.wall_s for run in cats],
        compare="ratio",
        limit=4,
    )
    yield Figure(
        "merge, CPU",
        "s CPU",
        [run.cpu_s for run in merges],
        "cat to a file",
        [run.cpu_s for run in cats],
        compare="ratio",
    )
    peaks = [run.peak_bytes / MIB for run in merges]
    yield Figure("merge, peak memory", "MiB", peaks, limit=512)
    yield Figure(
        "merge, peak memory as input grows",
        "MiB",
        peaks,
        "half of the lines",
        [few.peak_bytes / MIB] * len(peaks),
        compare="ratio",
        limit=1.25,  # memory that grows with the input would be 2; both inputs fill its buffers
    )


def summary(place: Place) -> Iterator[Figure]:
    short = rank_files(place, "ranks-short", 1000, 1000)
    long = rank_files(place, "ranks-long", 1000, 2000)
    files = sorted(long.iterdir())
    of_long, of_short, tails = in_turn(
        lambda: place.finish([place.tprof, "summary", long]),
        lambda: place.finish([place.tprof, "summary", short]),
        # The two lines that count, and the closing bracket.
        lambda: place.finish(["tail", "-q", "-n", "3", *files]),
    )
    size = sum(file.stat().st_size for file in files)
    shutil.rmtree(short)
    shutil.rmtree(long)
    yield Figure(
        "summary, 1,000 closed ranks",
        "s",
        [run.wall_s for run in of_long],
        "tail -n 3 of each",
        [run.wall_s for run in tails],
        compare="ratio",
    )
    yield Figure(
        "summary, read of 2,000 lines a rank",
        "MiB",
        [run.read_bytes / MIB for run in of_long],
        "of 1,000 lines a rank",
        [run.read_bytes / MIB for run in of_short],
        compare="ratio",
        limit=1.01,
    )
    yield Figure(
        "summary, share of the bytes read",
        "%",
        [100 * run.read_bytes / size for run in of_long],
    )


def figures(place: Place) -> Iterator[Figure]:
    yield from merge(place)
    yield from summary(place)

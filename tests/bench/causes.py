"""Scores what `tprof report` says of synthetic jobs: causes found, false ones, and errors of their costs."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from figures import Figure
from generator import score
from place import Place

SEEDS = 8  # of 70 jobs each


def of_seed(tprof: Path, seed: int) -> list[score.Judged]:
    with tempfile.TemporaryDirectory() as folder:
        wanted = [job for job in score.jobs(seed + 1) if job[2] == seed]
        return score.score(tprof, Path(folder), wanted)


def figures(place: Place) -> Iterator[Figure]:
    with ProcessPoolExecutor() as pool:
        judged = sum(pool.map(of_seed, [place.tprof] * SEEDS, range(SEEDS)), [])
    for j in judged:
        if j.false or (j.counts and not j.found):
            print(f"causes: {j.name}: {', '.join(j.false) or 'not found'}", flush=True)
    print("\n".join(score.table(judged)), flush=True)
    counting = [j for j in judged if j.counts]
    found = [j for j in counting if j.found]
    errors = [100 * abs(j.claimed_ns / j.true_ns - 1) for j in found]
    missed = 100 * (1 - len(found) / len(counting))
    false = 100 * sum(bool(j.false) for j in judged) / len(judged)
    yield Figure(f"causes not found, of {len(counting)} planted", "%", [missed], limit=5)
    yield Figure(f"jobs with a false finding, of {len(judged)}", "%", [false], limit=1)
    yield Figure("error of a cost", "%", errors, limit=15)

"""Tries for longer what `make test` tries a little of: prints counts and the seed, exits 1 on a failure.

    scripts/soak [--kills 1000] [--calls 10000000] [--restarts 200] [--programs 1000] [--seed N]
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

import test_kill
from lib import counted, runs
from lib.build import INSTANT, REPO, STANDIN


def kills(folder: pathlib.Path, n: int, random_: random.Random) -> str:
    """Kills at random moments: half on the stand-in, the rest where writes and rings are busy."""
    ways = (
        {"libraries": STANDIN},
        {"libraries": INSTANT, "TPROF_RING": "64"},
        {"libraries": STANDIN},
        {"libraries": INSTANT, "TPROF_RING": "1024", "pause_us": 500},
    )
    finished = unfinished = 0
    for i in range(n):
        place = folder / f"kill-{i}"
        remains = test_kill.kill_a_storm(place, random_.uniform(0, 0.15), **ways[i % len(ways)])
        test_kill.check_against_the_program(remains)
        if remains.tally is not None:
            test_kill.check_against_the_tally(remains)
        test_kill.check_lines(remains)
        if i % 10 == 0:
            test_kill.check_tool(remains, place)
        for thread in remains.threads.values():
            finished += test_kill.traced(thread).total()
            unfinished += len(thread["open"])
        shutil.rmtree(place)
    return f"{n} kills: {finished:,} finished calls and {unfinished:,} open ones, each accounted for"


def smallest_ring(folder: pathlib.Path, n: int, _: random.Random) -> str:
    """Makes at least n calls on two threads, whose rings hold 64 records."""
    rounds = n // 2
    traced = runs.run(folder, runs.client("calls", rounds, 2), TPROF_RING="64")
    assert (traced.code, traced.stderr) == (7, ""), traced.stderr
    (counts,) = traced.counted()
    lines = traced.only_rank_file()
    runs.assert_exact(lines, counts)
    calls = sum(entered for entered, _, _ in counts.values())
    assert calls >= n
    dropped = sum(runs.footer(lines)["dropped"].values())
    return f"{calls:,} calls on rings of 64: ledger exact, {dropped:,} lines dropped and counted"


def restarts(folder: pathlib.Path, n: int, random_: random.Random) -> str:
    """Runs one rank after the other in one folder and kills each; the last one ends by itself."""
    for _ in range(n):
        with runs.standing(folder, runs.client("storm", 100), RANK="3", WORLD_SIZE="4"):
            time.sleep(random_.uniform(0, 0.02))
    runs.run(folder, runs.client("calls", 100, 2), RANK="3", WORLD_SIZE="4")
    traces = folder / "traces"
    runs.recover(traces)
    counts = {int(p.name.removeprefix("counts-")): counted.totals(p) for p in (folder / "counts").iterdir()}
    files = {path.name: runs.closed(path) for path in traces.iterdir()}
    assert set(files) == {f"rank-00003{f'.r{i}' if i else ''}.json" for i in range(n + 1)}
    calls = collections.Counter()
    for name, lines in files.items():
        mine = counts[runs.named(lines, "tprof_header")[0]["pid"]]
        for kind, (entered, returned, failed) in mine.items():
            row = runs.ledger(lines).get(counted.key(kind), (0, 0, 0, 0))
            assert returned <= row[0] and failed <= row[2], (name, kind)
            assert row[0] + row[2] + row[3] <= entered, (name, kind)
            calls["calls"] += row[0]
        runs.assert_no_line_twice(runs.events(lines))
    return f"{n} restarts in one folder: {len(files)} files, {calls['calls']:,} calls, none twice"


def random_programs(folder: pathlib.Path, n: int, random_: random.Random) -> str:
    """Plays the programs of n seeds, a quarter of them with one rank that makes one call differently."""
    first = random_.randrange(1 << 20)
    player = [sys.executable, REPO / "tests/e2e/random_programs.py"]
    for count, how in ((n - n // 4, []), (n // 4, ["--odd"])):
        if count == 0:
            continue
        played = subprocess.run(
            [*player, str(first), str(first + count - 1), *how],
            capture_output=True,
            text=True,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        assert played.returncode == 0, played.stdout + played.stderr
    return f"{n} programs of random calls, from seed {first}: difference 0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"soak: seed {options.seed}", flush=True)
    failures = 0
    parts = (
        (smallest_ring, options.calls),
        (restarts, options.restarts),
        (kills, options.kills),
        (random_programs, options.programs),
    )
    for part, n in parts:
        if n == 0:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tprof-soak-"))
        started = time.monotonic()
        try:
            said = part(folder, n, random.Random(options.seed))
        except (AssertionError, subprocess.SubprocessError, ValueError, KeyError):
            traceback.print_exc()
            said = f"{part.__name__} FAILED (--seed {options.seed}): what is left lies in {folder}"
            failures += 1
        else:
            shutil.rmtree(folder)
        print(f"soak: {said}, {time.monotonic() - started:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Plays the programs of many seeds, one after the other, and prints those whose trace is wrong.

    PYTHONPATH=tests build/venv/bin/python tests/e2e/random_programs.py FIRST [LAST] [--turns N] [--odd] [--ledger-only]
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

from lib import random_calls, random_pipeline


def faults(plan: random_calls.Plan, ledger_only: bool, folder: pathlib.Path) -> list[str]:
    played = random_calls.play(plan, folder / "run")
    # A fault of the ledger shows in everything that is made of it.
    found = random_calls.faults(played)
    return found if found or ledger_only else random_pipeline.faults(played)


def smallest(make_plan, seed: int, turns: int, ledger_only: bool) -> int:
    """Returns how few turns show the fault, by halving: a program of fewer turns is a part of it."""
    right = 0
    while turns - right > 1:
        middle = (right + turns) // 2
        with tempfile.TemporaryDirectory() as folder:
            if faults(make_plan(seed, middle), ledger_only, pathlib.Path(folder)):
                turns = middle
            else:
                right = middle
    return turns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--turns", type=int, default=random_calls.TURNS)
    parser.add_argument("--ledger-only", action="store_true", help="three times as fast")
    parser.add_argument("--odd", action="store_true", help="one rank makes one call differently")
    options = parser.parse_args()
    make_plan = random_calls.odd_plan if options.odd else random_calls.plan
    bad = 0
    seeds = range(options.first, (options.last or options.first) + 1)
    for seed in seeds:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tprof-random-"))
        plan = make_plan(seed, options.turns)
        found = faults(plan, options.ledger_only, folder)
        if not found:
            shutil.rmtree(folder)
            continue
        bad += 1
        print(f"seed {seed}: {plan}, left in {folder}")
        print(*found, sep="\n", flush=True)
        turns = smallest(make_plan, seed, options.turns, options.ledger_only)
        print(f"  fewer: tests/e2e/random_programs.py {seed} --turns {turns}", flush=True)
    print(f"{len(seeds)} seeds, {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

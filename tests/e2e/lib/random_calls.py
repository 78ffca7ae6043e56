"""Plays the random program of a seed under the preload, and finds what its trace has wrong.

As a program it plays many seeds, one after the other:

    PYTHONPATH=tests/e2e python -m lib.random_calls FIRST [LAST] [--turns N]
"""

import argparse
import collections
import dataclasses
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from lib import figures, rankfile
from lib.build import BUILD
from lib.launch import environment

TURNS = 200
TIME_LIMIT_S = 30  # a hundred times what one takes


@dataclasses.dataclass
class Plan:
    """What a seed decides besides the calls."""

    seed: int
    turns: int
    options: dict[str, int]
    settings: dict[str, str]
    processes: int = 1

    def command(self) -> list[str]:
        options = {"seed": self.seed, "turns": self.turns, "processes": self.processes} | self.options
        return [str(BUILD / "random_calls"), *(f"{w}" for k, v in options.items() for w in (f"--{k}", v))]

    def __str__(self):
        return " ".join([f"{k}={v}" for k, v in self.settings.items()] + self.command()[1:])


def plan(seed: int, turns: int = TURNS) -> Plan:
    dice = random.Random(seed)
    options = {
        "held": dice.choice([1, 1, 2, 3, 4]),
        "threads": dice.choice([1, 1, 2, 3]),
        "copiers": dice.choice([0, 0, 1, 2]),
    }
    settings = {
        "TPROF_EVENTS": dice.choice(["on", "on", "off", "all"]),
        "TPROF_RING": dice.choice(["64", "16384", "16384"]),
        "TPROF_QUOTA": dice.choice(["4KiB", "64MiB", "64MiB", "0"]),
    }
    if dice.random() < 0.3:
        settings["TPROF_DLSYM"] = "1"
        options["by-pointer"] = 1
    if dice.random() < 0.3:
        settings["TPROF_DRIVER"] = "1"
    options["driver"] = dice.choice([0, 1])
    return Plan(seed, turns, options, settings, dice.choice([1, 1, 1, 2, 3]))


@dataclasses.dataclass
class Played:
    plan: Plan
    folder: pathlib.Path
    codes: list[int]
    stdout: str
    stderr: str

    @property
    def traces(self) -> pathlib.Path:
        return self.folder / "traces"

    def tallies(self) -> dict[int, dict]:
        return {tally["pid"]: tally for tally in figures.read_tallies(self.folder / "tally")}

    def files(self) -> dict[int, rankfile.RankFile]:
        files = map(rankfile.read, self.traces.iterdir())
        return {file.header["pid"]: file for file in files}


def play(plan: Plan, folder: pathlib.Path) -> Played:
    (folder / "tally").mkdir(parents=True)
    (folder / "ids").mkdir()
    env = environment(folder, preload=True) | plan.settings | {"STANDIN_DEVICES": "48", "STANDIN_TIMEOUT_S": "20"}
    running = [
        subprocess.Popen(
            [*plan.command(), "--process", str(process), "--ids", str(folder / "ids")],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(plan.processes)
    ]
    outputs = []
    try:
        outputs = [process.communicate(timeout=TIME_LIMIT_S) for process in running]
    except subprocess.TimeoutExpired as expired:
        outputs = [("", f"{expired}")]
    finally:
        for process in running:
            process.kill()
    return Played(
        plan,
        folder,
        [process.returncode for process in running],
        "".join(out for out, _ in outputs),
        "".join(err for _, err in outputs),
    )


def _members(comms: list[dict], number: str) -> dict[int, tuple]:
    """Communicators told apart by what both sides know: size, rank, device, name, which one of those.

    Their numbers are no order: one that is made behind the program's back may get its own later.
    Such ones have names."""
    seen: collections.Counter = collections.Counter()
    members = {}
    for comm in sorted(comms, key=lambda comm: comm[number]):
        alike = (comm["nranks"], comm["rank"], comm["device"], comm["name"])
        members[comm[number]] = (*alike, seen[alike])
        seen[alike] += 1
    return members


def ledger_against_tally(file: rankfile.RankFile, tally: dict) -> str:
    ours, theirs = _members(file.comms, "comm"), _members(tally["comms"], "ordinal")

    def our_place(row):
        return row["device"] if row["bucket"] in figures.COPIES else ours.get(row["comm"])

    def their_place(row):
        return row["device"] if row["kind"] else theirs.get(row["comm"])

    theirs_counted = figures.of_tally(tally, their_place)
    if file.header["config"].get("TPROF_DRIVER") != "1":
        theirs_counted = {k: v for k, v in theirs_counted.items() if not re.match("cu[A-Z]", k[1])}
    return figures.difference(
        figures.of_plain_names(figures.of_ledger(file, our_place)), theirs_counted
    )


def faults(played: Played) -> list[str]:
    """Empty where everything is as it should be."""
    if any(played.codes) or played.stderr:
        return [f"codes {played.codes}: {played.stderr[:2000]}"]
    found = []
    tallies, files = played.tallies(), played.files()
    if set(tallies) != set(files):
        found.append(f"tallies of {sorted(tallies)}, files of {sorted(files)}")
    for pid in set(tallies) & set(files):
        if difference := ledger_against_tally(files[pid], tallies[pid]):
            found.append(f"{files[pid].path.name}:\n{difference}")
    return found


def again(seed: int, turns: int = TURNS) -> str:
    return f"PYTHONPATH=tests/e2e build/venv/bin/python -m lib.random_calls {seed} --turns {turns}"


def smallest(seed: int, turns: int) -> int:
    """Turns of which the last one is wrong, by halving: a program of fewer turns is a part of it."""
    right = 0
    while turns - right > 1:
        middle = (right + turns) // 2
        with tempfile.TemporaryDirectory() as folder:
            if faults(play(plan(seed, middle), pathlib.Path(folder) / "run")):
                turns = middle
            else:
                right = middle
    return turns


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    bad = 0
    seeds = range(arguments.first, (arguments.last or arguments.first) + 1)
    for seed in seeds:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tprof-random-"))
        one = plan(seed, arguments.turns)
        found = faults(play(one, folder / "run"))
        if found:
            bad += 1
            print(f"seed {seed}: {one}, left in {folder}", *found, sep="\n  ", flush=True)
            print(f"  fewer: {again(seed, smallest(seed, arguments.turns))}", flush=True)
        else:
            shutil.rmtree(folder)
    print(f"{len(seeds)} seeds, {bad} with faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

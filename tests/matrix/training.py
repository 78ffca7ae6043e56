"""Runs a training script on the stand-in, and compares our ledger with its tally and FSDP's formulas."""

import collections
import pathlib

import venvs
from lib import figures, formulas, rankfile
from lib.build import CLIENTS, STANDIN
from lib.launch import Run as Launched
from lib.launch import agent, start
from outcome import Failed, Outcome
from rows import Row, Run

STEPS = 3
SHARD = {"flat": formulas.shard_flat, "by rows": formulas.shard_by_rows}


def run(row: Row, venv: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> Outcome:
    libraries = f"{venv.parent / 'standin'}:{STANDIN}"
    calls = difference = 0
    for number, one in enumerate(row.runs):
        launched = launch(one, venv / "bin" / "python", folder / str(number), libraries)
        if launched.code != 0:
            raise Failed(f"{one} ended with {launched.code}: {why(launched)}")
        made, differs = compare(launched, one)
        calls += made
        difference += differs
    return Outcome("; ".join(map(str, row.runs)), calls, difference)


def launch(one: Run, python: pathlib.Path, folder: pathlib.Path, libraries: str) -> Launched:
    places = (CLIENTS, venvs.HERE / "clients")
    script = next(place / one.script for place in places if (place / one.script).exists())
    command = [*agent(one.ranks, python), str(script), *one.args]
    return start(command, folder, True, LD_LIBRARY_PATH=libraries, PYTHONPATH=str(CLIENTS))


def why(launched: Launched) -> str:
    """Returns the first line that says what was wrong."""
    lines = (launched.stderr + launched.stdout).splitlines()
    telling = [line.strip() for line in lines if "standin:" in line or "Error:" in line]
    return (telling or lines or ["no word"])[0][:300]


def compare(launched: Launched, one: Run) -> tuple[int, int]:
    """Returns the calls that the stand-in counted, and how much our figures differ from it and the formula."""
    tallies = launched.tallies()
    files = {file.header["pid"]: file for file in launched.ranks()}
    if len(tallies) != one.ranks:
        raise Failed(f"{one}: {len(tallies)} processes reached the stand-in")
    calls = difference = 0
    for pid in tallies.keys() | files.keys():
        theirs = figures.of_tally(tallies[pid]) if pid in tallies else {}
        ours = figures.of_ledger(files[pid]) if pid in files else {}
        calls += sum(value["calls"] for value in theirs.values())
        difference += figures.sum_of_differences(ours, theirs)
        if pid in files and one.formula:
            difference += formula_difference(files[pid], SHARD[one.formula], one.ranks)
    return calls, difference


def formula_difference(file: rankfile.RankFile, shard, ranks: int) -> int:
    """Returns how many calls are of a size that the model's shapes do not ask for, or are missing."""
    model = formulas.Model()
    sizes = shard(model.root(), ranks), shard(model.block(), ranks)
    expected = formulas.gathers_and_scatters(*sizes, STEPS, reshard_after_forward=True)
    differs = 0
    for function, wanted in zip(("ncclAllGather", "ncclReduceScatter"), expected, strict=True):
        made = collections.Counter(
            event["args"]["count"]
            for event in file.events
            if event["name"] == function and event["args"]["dtype"] == "float32"
        )
        differs += sum(abs(made[n] - wanted.get(n, 0)) for n in made.keys() | wanted.keys())
    return differs

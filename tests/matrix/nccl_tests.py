"""Runs nccl-tests' own programs, several ranks in a process, on the stand-in. Compares our ledger
with its tally and with what nccl-tests prints, and every rank of `tprof summary` with the number of
calls that nccl-tests makes by its options."""

import collections
import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess

from lib import figures
from lib.launch import Run as Launched
from lib.launch import start
from outcome import Failed, Outcome
from rows import Row

VARIABLE = "NCCL_TESTS"

SIZES = ("-b", "1K", "-e", "16K", "-f", "2")
DEFAULTS = {"-t": 1, "-g": 1, "-n": 5, "-w": 1, "-m": 1, "-c": 1, "-G": 0, "-N": 1}
# Each program runs with each of these.
SHAPES = (
    ("-g", "4"),
    ("-t", "2", "-g", "2"),
    ("-t", "4"),
    ("-g", "2", "-G", "3"),
    ("-t", "2", "-g", "2", "-G", "2"),
    ("-g", "4", "-m", "4"),
    ("-g", "2", "-G", "2", "-m", "3"),
    ("-g", "4", "-z", "1"),
    ("-g", "4", "-R", "1"),
    ("-g", "4", "-R", "2", "-y", "1"),
    ("-g", "4", "-o", "mulsum"),
    ("-g", "2", "-d", "all", "-o", "all"),
    ("-g", "4", "-r", "-1", "-c", "2", "-N", "2"),
    ("-g", "8", "-p", "1", "-n", "20"),
)


@dataclasses.dataclass(frozen=True)
class Program:
    """One of nccl-tests' programs: its functions, and how often each rank calls them."""

    name: str
    functions: tuple[str, ...]
    times: str = "once"  # "each step": once for each dimension of a hypercube; "": by its sizes


PROGRAMS = (
    Program("all_gather", ("ncclAllGather",)),
    Program("all_reduce", ("ncclAllReduce",)),
    Program("alltoall", ("ncclAlltoAll",)),
    Program("alltoallv", ("ncclSend", "ncclRecv"), ""),
    Program("broadcast", ("ncclBroadcast",)),
    Program("gather", ("ncclGather",)),
    Program("hypercube", ("ncclSend", "ncclRecv"), "each step"),
    Program("reduce", ("ncclReduce",)),
    Program("reduce_scatter", ("ncclReduceScatter",)),
    Program("scatter", ("ncclScatter",)),
    Program("sendrecv", ("ncclSend", "ncclRecv")),
)


def folder() -> pathlib.Path | None:
    named = os.environ.get(VARIABLE)
    return pathlib.Path(named) if named else None


def why_not() -> str | None:
    """Returns why the row can't be run here, or None; its line in the table stays."""
    if folder() is None:
        return f"{VARIABLE} names no folder with nccl-tests' programs"
    missing = [p.name for p in PROGRAMS if not (folder() / f"{p.name}_perf").exists()]
    return f"{folder()} has no {missing[0]}_perf" if missing else None


def run(_row: Row, _venv: pathlib.Path, build: pathlib.Path, place: pathlib.Path) -> Outcome:
    calls = difference = runs = 0
    for program in PROGRAMS:
        for shape in SHAPES:
            options = DEFAULTS | {k: int(v) for k, v in pairs(shape) if k in DEFAULTS}
            arguments = [*SIZES, "-n", str(options["-n"]), "-w", "1", "-c", "1", *shape]
            command = [str(folder() / f"{program.name}_perf"), *arguments]
            launched = start(command, place / str(runs), True)
            text = f"{program.name}_perf {' '.join(shape)}"
            if launched.code != 0:
                raise Failed(f"{text} ended with {launched.code}: {last_words(launched)}")
            made, differs = compare(program, options, launched, build)
            if differs:
                print(f"nccl-tests: {text}: difference {differs} (see {place / str(runs)})")
            calls += made
            difference += differs
            runs += 1
    programs = ", ".join(program.name for program in PROGRAMS)
    shapes = "; ".join(" ".join(shape) for shape in SHAPES)
    return Outcome(f"{programs}: each with {shapes}", calls, difference)


def pairs(shape: tuple[str, ...]):
    return zip(shape[::2], shape[1::2], strict=True)


def last_words(launched: Launched) -> str:
    lines = (launched.stdout + launched.stderr).strip().splitlines()
    return (lines or ["no word"])[-1][:300]


def executed_per_line(options: dict[str, int]) -> int:
    """Returns how often a collective is executed for one line of its table (src/common.cu,
    BenchTime and TimeTest). After the warm-up, out of place and in place each run once to begin
    with, then the timed ones and those whose data is checked. Each cycle repeats all but the
    warm-up."""
    launches = options["-G"] or 1
    timed = options["-n"] * options["-m"] * launches
    return options["-w"] + options["-N"] * 2 * (1 + timed + options["-c"])


# Size, count, type, reduction (if any) and root.
LINE = re.compile(r"^ +\d+ +(\d+) +\w+ +(?:\w+ +)?-?\d+ ", re.MULTILINE)


def expected(program: Program, options: dict[str, int], output: str) -> tuple[int, int]:
    """Returns the calls of each of the program's functions on a rank, and the sum of their counts."""
    # A cycle prints the whole table again.
    printed = [int(count) for count in LINE.findall(output)]
    counts = printed[: len(printed) // options["-N"]]
    ranks = options["-t"] * options["-g"]
    times = executed_per_line(options)
    steps = int(math.log2(ranks)) if program.times == "each step" else 1
    # A step of a hypercube passes on what came in all steps before.
    parts = ranks - 1 if program.times == "each step" else 1
    return len(counts) * times * steps, sum(counts) * times * parts


def compare(
    program: Program, options: dict[str, int], launched: Launched, build: pathlib.Path
) -> tuple[int, int]:
    """Returns the calls that the stand-in counted, and how much is different anywhere."""
    ranks = options["-t"] * options["-g"]
    tally = launched.only_tally()
    file = launched.only_rank()
    theirs = figures.by_member(figures.of_tally(tally), tally["comms"])
    ours = figures.by_member(figures.of_ledger(file), file.comms)
    difference = figures.sum_of_differences(ours, theirs) + len(launched.stderr)

    if program.times:
        calls, count = expected(program, options, launched.stdout)
        for function in program.functions:
            made = collections.Counter()
            for (_, name, _, _, rank, mode), values in ours.items():
                if name == function and mode != "captured":
                    made[rank, "calls"] += values["calls"]
                    made[rank, "count"] += values["count"]
            for rank in range(ranks):
                difference += abs(made[rank, "calls"] - calls)
                difference += abs(made[rank, "count"] - count)
    difference += lanes_differ(ours, ranks, launched.traces, build)
    return sum(values["calls"] for values in theirs.values()), difference


def lanes_differ(ours: dict, ranks: int, traces: pathlib.Path, build: pathlib.Path) -> int:
    """Returns how much `summary` and `check` differ from what each rank's communicator counted."""
    code, summary = tprof(build, "summary", traces)
    differs = code + abs(len(summary["ranks"]) - ranks) + len(summary["findings"])
    named = {(key[0], key[4]) for key in ours if key[4] is not None}
    for bucket, rank in named:
        calls = sum(
            values["calls"]
            for key, values in ours.items()
            if (key[0], key[4]) == (bucket, rank) and key[5] != "captured"
        )
        differs += abs(summary["buckets"][bucket]["per_rank"]["calls"][rank] - calls)
    code, check = tprof(build, "check", traces)
    return differs + code + len(check["findings"])


def tprof(build: pathlib.Path, command: str, traces: pathlib.Path) -> tuple[int, dict]:
    done = subprocess.run(
        [str(build / "tprof"), command, "--json", str(traces)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode > 1:
        raise Failed(f"tprof {command}: {done.stderr[-300:]}")
    return done.returncode, json.loads(done.stdout)

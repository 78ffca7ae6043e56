"""Measures `summary`, `check` and `report` of real jobs from 8 to 100,000 ranks, on two cores.

The jobs are those of FSDP2 with device times, computation and steps, one rank of which is slow. Beside
them stand simdjson's own pass over the same bytes, and other tools that load or merge traces. The files
lie in memory where there is room: a disk takes longer to write and remove 100,000 of them than the
commands to read them. All is printed as tables of Markdown, for the page that keeps these figures.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import scale_peers
from figures import Figure, NotMeasured, number
from generator import scale as big_jobs
from place import Finished, Place

MIB = 1 << 20
IN_MEMORY, ROOM = Path("/dev/shm"), 4 << 30
COMMANDS = ("summary", "check", "report")
# Ranks and lines -> how many seconds each command may take on two cores.
GOALS_S = {(10_000, 200): (2, 3, 8), (100_000, 50): (15, 15, 30), (1024, 10_000): (None, None, None)}
MOST_MIB = 1024
CURVE, CURVE_LINES = (8, 64, 512, 4096, 32_768), 50
LEAST_OF_SIMDJSON = 0.6  # of its speed, for `report` of long files: an aim that is not reached yet
PEER_RANKS, PEER_LINES = 16, 5000
# Times as slow per line as we are: at least, and an aim that is not reached yet.
SLOWER, AIMED_SLOWER = {"hta": 20, "composer": 15}, {"composer": 100}


def job(place: Place, ranks: int, lines: int) -> Path:
    folder = IN_MEMORY / f"tprof-scale-{os.getpid()}"
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM:
        folder.mkdir()
    else:
        folder = place.empty_folder("scale")
    big_jobs.write(folder, ranks, lines, slow=True)
    return folder


def used(place: Place, command: str, folder: Path) -> Finished:
    return place.finish([place.tprof, command, folder])


def simdjson_pass(place: Place, folder: Path) -> tuple[Finished, dict]:
    output = place.build / "bench" / "simdjson.json"
    output.parent.mkdir(exist_ok=True)
    finished = place.finish([place.build / "simdjson_pass", folder], output)
    return finished, json.loads(output.read_text())


def print_table(head: list[str], rows: list[list[str]]) -> None:
    print("\n" + "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)))


def of_jobs(place: Place, curve: dict[int, list[Finished]]) -> Iterator[Figure]:
    rows = []
    for (ranks, lines), goals in GOALS_S.items():
        folder = job(place, ranks, lines)
        what = f"{ranks:,} x {lines:,}"
        done = [used(place, command, folder) for command in COMMANDS]
        if lines == CURVE_LINES:
            curve[ranks] = done
        for command, run, goal in zip(COMMANDS, done, goals, strict=True):
            peak = run.peak_bytes / MIB
            goal_text = f"{goal} s, {MOST_MIB:,} MiB" if goal else ""
            rows.append([what, command, f"{run.wall_s:.2f} s", f"{run.cpu_s:.2f} s", f"{peak:,.0f} MiB", goal_text])
            yield Figure(f"{command}, {what}", "s", [run.wall_s], limit=goal)
            yield Figure(f"{command}, {what}, memory", "MiB", [peak], limit=MOST_MIB if goal else None)
        if lines >= 1000:
            run, told = simdjson_pass(place, folder)
            rows.append([what, "simdjson alone", f"{run.wall_s:.2f} s", f"{run.cpu_s:.2f} s", "",
                         f"{told['bytes'] / MIB:,.0f} MiB, {told['lines']:,} lines"])  # fmt: skip
            yield Figure(f"speed of report, {what}", "of simdjson's", [run.wall_s / done[-1].wall_s])
            yield Figure(
                f"report, {what}", "s", [done[-1].wall_s], "simdjson alone", [run.wall_s],
                compare="ratio", aim=1 / LEAST_OF_SIMDJSON,
            )  # fmt: skip
        shutil.rmtree(folder)
        print(f"scale: {what} done", flush=True)
    print_table(["ranks x lines", "command", "time", "CPU", "peak", "goal"], rows)


def of_curve(place: Place, curve: dict[int, list[Finished]]) -> Iterator[Figure]:
    for ranks in CURVE:
        folder = job(place, ranks, CURVE_LINES)
        runs = [[used(place, command, folder) for command in COMMANDS] for _ in range(3 if ranks < 1000 else 1)]
        curve[ranks] = [min(of, key=lambda run: run.cpu_s) for of in zip(*runs, strict=True)]
        shutil.rmtree(folder)
    us = {ranks: [1e6 * run.cpu_s / ranks for run in done] for ranks, done in sorted(curve.items())}
    rows = [[f"{ranks:,}", *(f"{number(of)} us" for of in all_of)] for ranks, all_of in us.items()]
    print_table([f"ranks x {CURVE_LINES} lines, CPU per rank", *COMMANDS], rows)
    for i, command in enumerate(COMMANDS):
        # A few ranks pay for the program's start.
        yield Figure(
            f"{command}, CPU per rank of {max(us):,}", "us", [us[max(us)][i]],
            "of 4,096", [us[4096][i]], compare="ratio", limit=1.5,
        )  # fmt: skip


def of_peers(place: Place) -> Iterator[Figure]:
    python = place.build / "venv" / "bin" / "python"
    packages = place.build / "bench" / "peers"
    packages.mkdir(parents=True, exist_ok=True)
    try:
        importable = scale_peers.packages(packages, python)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotMeasured(f"other tools could not be fetched: {error}") from error
    folder = job(place, PEER_RANKS, PEER_LINES)
    converted = place.empty_folder("scale-peers")
    lines = scale_peers.convert(folder, converted)
    output = place.build / "bench" / "merged.json"
    peer = ["env", f"PYTHONPATH={importable}", python, Path(__file__).with_name("scale_peers.py")]
    pairs = {
        "hta": ("report", [place.tprof, "report", folder], "HTA's load"),
        "composer": ("merge", [place.tprof, "merge", folder, "-o", output], "Composer's merger"),
    }
    rows = []
    for name, (what, command, title) in pairs.items():
        theirs = place.finish([*peer, name, converted / name, output])
        output.unlink(missing_ok=True)
        ours = min((place.finish(command) for _ in range(3)), key=lambda run: run.cpu_s)
        output.unlink(missing_ok=True)
        ns = [1e9 * run.cpu_s / lines for run in (ours, theirs)]
        rows.append([f"tprof {what}", f"{number(ns[0])} ns", title, f"{number(ns[1])} ns",
                     f"{number(ns[1] / ns[0])} x", f"{AIMED_SLOWER.get(name, SLOWER[name])} x"])  # fmt: skip
        yield Figure(
            f"tprof {what}, CPU per line", "ns", [ns[0]], title, [ns[1]], compare="ratio", limit=1 / SLOWER[name]
        )
    print_table([f"{PEER_RANKS} x {PEER_LINES:,}, CPU per line", "", "peer", "", "peer / tprof", "goal"], rows)
    shutil.rmtree(folder)
    shutil.rmtree(converted)


def figures(place: Place) -> Iterator[Figure]:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:2])
    print(f"\nscale: load average {os.getloadavg()[0]:.1f} before", flush=True)
    curve: dict[int, list[Finished]] = {}
    try:
        yield from of_jobs(place, curve)
        yield from of_curve(place, curve)
        yield from of_peers(place)
    finally:
        os.sched_setaffinity(0, cores)
        shutil.rmtree(IN_MEMORY / f"tprof-scale-{os.getpid()}", ignore_errors=True)
    print(f"\nscale: load average {os.getloadavg()[0]:.1f} after", flush=True)

"""Plays the random program of a seed under the preload, and finds what is wrong in its ledger."""

import collections
import dataclasses
import pathlib
import random
import re
import signal
import subprocess

from lib import figures, rankfile, tally
from lib.build import BUILD
from lib.launch import environment
from lib.tool import tprof

TURNS = 200
DEADLY = ("ncclAllReduce", "ncclAllGather", "ncclRecv", "cudaMemcpyAsync", "cudaMemcpyBatchAsync",
          "cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy3D")  # fmt: skip
TIME_LIMIT_S = 30  # a hundred times what one run takes


@dataclasses.dataclass
class Plan:
    """The things that a seed decides besides the calls."""

    seed: int
    turns: int
    options: dict[str, int]
    settings: dict[str, str]
    processes: int = 1
    launched: bool = False  # a launcher tells each process its rank

    def command(self) -> list[str]:
        options = {"seed": self.seed, "turns": self.turns, "processes": self.processes} | self.options
        return [str(BUILD / "random_calls"), *(f"{w}" for k, v in options.items() for w in (f"--{k}", v))]

    def launcher(self, process: int) -> dict[str, str]:
        if not self.launched:
            return {}
        return {"RANK": str(process), "WORLD_SIZE": str(self.processes), "LOCAL_RANK": str(process)}

    def threads(self) -> int:
        return self.options["threads"] + self.options["copiers"]

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
    if dice.random() < 0.2:
        settings["TPROF_COPY_ELEMENT_SIZE"] = dice.choice(["2", "4", "8"])
    if dice.random() < 0.3:
        settings["TPROF_DLSYM"] = "1"
        options["by-pointer"] = 1
    if dice.random() < 0.3:
        settings["TPROF_DRIVER"] = "1"
    options["driver"] = dice.choice([0, 1])
    processes = dice.choice([1, 1, 1, 2, 3])
    launched = options["held"] == options["threads"] == 1 and dice.random() < 0.5
    if processes == 1 and dice.random() < 0.25:
        options["kill"] = dice.randrange(TURNS)
    elif processes == 1 and options["held"] == 1 and dice.random() < 0.4:
        # The process dies within a call, from which the library never returns.
        settings["STANDIN_DIE"] = f"0:{dice.choice(DEADLY)}:{dice.randrange(1, 12)}"
    elif processes == 1 and dice.random() < 0.25:
        options["fork-first"] = 1
    return Plan(seed, turns, options, settings, processes, launched)


def odd_plan(seed: int, turns: int = TURNS) -> Plan:
    """Returns a plan in which all ranks do the same, except for one call of one rank."""
    dice = random.Random(-1 - seed)
    held, processes = dice.choice([(1, 3), (2, 2), (3, 1), (4, 1), (2, 3), (1, 4)])
    options = {"held": held, "threads": 1, "copiers": 0, "refused": 0}
    options |= {"odd": dice.randrange(held * processes), "odd-turn": dice.randrange(turns)}
    settings = {"TPROF_EVENTS": dice.choice(["on", "on", "off"])}
    return Plan(seed, turns, options, settings, processes)


@dataclasses.dataclass
class Played:
    plan: Plan
    folder: pathlib.Path
    codes: list[int]
    stdout: str
    stderr: str

    @property
    def killed(self) -> bool:
        return self.codes == [-signal.SIGKILL]

    @property
    def traces(self) -> pathlib.Path:
        return self.folder / "traces"

    def tallies(self) -> dict[int, dict]:
        return tally.by_pid(self.folder / "tally")

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
            env=env | plan.launcher(process),
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
    played = Played(
        plan,
        folder,
        [process.returncode for process in running],
        "".join(out for out, _ in outputs),
        "".join(err for _, err in outputs),
    )
    if played.killed and (folder / "traces").exists():
        tprof("recover", folder / "traces")
    return played


def _members(comms: list[dict], number: str) -> dict[int, tuple]:
    """Tells communicators apart by what both sides know: size, rank, device, name, and which one
    among equals.

    Their numbers give no order: one that is made behind the program's back may get its number later.
    Such communicators have names."""
    seen: collections.Counter = collections.Counter()
    members = {}
    for comm in sorted(comms, key=lambda comm: comm[number]):
        alike = (comm["nranks"], comm["rank"], comm["device"], comm["name"])
        members[comm[number]] = (*alike, seen[alike])
        seen[alike] += 1
    return members


def counted(plan: Plan, tally: dict, place) -> dict[tuple, dict[str, int]]:
    """Returns the part of the tally that is to be counted: the driver's copies only if they were asked for."""
    table = figures.of_tally(tally, place)
    if plan.settings.get("TPROF_DRIVER") == "1":
        return table
    return {key: values for key, values in table.items() if not re.match("cu[A-Z]", key[1])}


def _open_in_ledger(file: rankfile.RankFile, place) -> collections.Counter:
    calls: collections.Counter = collections.Counter()
    for row in file.ledger_rows():
        name = re.sub(r"_pt(ds|sz)$", "", row["name"]) if row["name"].startswith("cuda") else row["name"]
        calls[row["bucket"], name, place(row), row["mode"]] += row["unfinished"]
    return +calls


def _open_in_tally(tally: dict, place) -> collections.Counter:
    calls: collections.Counter = collections.Counter()
    for row in tally["rows"]:
        key = (row["kind"] or figures.BUCKET[row["function"]], row["function"], place(row), row["mode"])
        calls[key] += row["entered"] - row["returned"] - row["failed"]
    return +calls


def _in_bytes(ledger: dict) -> dict:
    """Returns the ledger with copies counted as if an element were a byte."""
    table: dict = {}
    for (bucket, name, dtype, *rest), values in ledger.items():
        size = figures.SIZE.get(dtype) or int(dtype.removeprefix("byte") or 1) if dtype != "unknown" else 0
        if bucket in figures.COPIES:
            assert values["elements"] <= values["bytes"] // size, (name, dtype, values)
            dtype, values = "byte", values | {"elements": values["bytes"]}
        table[bucket, name, dtype, *rest] = values
    return table


def ledger_against_tally(played: Played, file: rankfile.RankFile, tally: dict) -> str:
    ours, theirs = _members(file.comms, "comm"), _members(tally["comms"], "ordinal")

    def our_place(row):
        return row["device"] if row["bucket"] in figures.COPIES else ours.get(row["comm"])

    def their_place(row):
        return row["device"] if row["kind"] else theirs.get(row["comm"])

    if played.killed and played.plan.threads() == 1:
        open_calls = _open_in_ledger(file, our_place), _open_in_tally(tally, their_place)
        if open_calls[0] != open_calls[1]:
            return f"unfinished: {open_calls[0]}, expected {open_calls[1]}"
    ledger = _in_bytes(figures.of_plain_names(figures.of_ledger(file, our_place)))
    expected = counted(played.plan, tally, their_place)
    if not played.killed or played.plan.threads() == 1:
        return figures.difference(ledger, expected)
    # The kill met the other threads anywhere, so a call that the library had counted may be missing.
    more = {k: {n: max(0, v[n] - expected[k][n]) for n in v} for k, v in ledger.items() if k in expected}
    return figures.difference(more | {k: v for k, v in ledger.items() if k not in expected}, {})


def faults(played: Played) -> list[str]:
    """Returns what is wrong with the exit codes, the messages or the ledger; empty if nothing is."""
    dies = -1 < played.plan.options.get("kill", -1) < played.plan.turns
    may_die = dies or "STANDIN_DIE" in played.plan.settings
    if (any(played.codes) and not (played.killed and may_die)) or played.stderr or (
        dies and not played.killed
    ):
        return [f"codes {played.codes}: {played.stderr[:2000]}"]
    found = []
    tallies, files = played.tallies(), played.files()
    if set(tallies) != set(files):
        found.append(f"tallies of {sorted(tallies)}, files of {sorted(files)}")
    for pid in set(tallies) & set(files):
        if difference := ledger_against_tally(played, files[pid], tallies[pid]):
            found.append(f"{files[pid].path.name}:\n{difference}")
    return found

"""Starts the client on the instant libraries or on the stand-in, and reads what it left."""

import dataclasses
import functools
import importlib.util
import json
import os
import pathlib
import subprocess

import counted

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", REPO / "build")).resolve()
LIBTPROF = BUILD / "libtprof.so"
CLIENT = BUILD / "fault_client"
RING_DUMP = BUILD / "ring_dump"
TPROF = BUILD / "tprof"
TROUBLE = BUILD / "libfault_trouble.so"
LIBRARIES = {"instant": BUILD / "tests" / "fault" / "instant", "stand-in": BUILD / "standin"}

TIME_LIMIT_S = 60  # a client that hangs; the slowest takes a tenth of it


@dataclasses.dataclass(frozen=True)
class Run:
    code: int
    stdout: str
    stderr: str
    traces: pathlib.Path
    counts: pathlib.Path

    def outcome(self) -> tuple[int, str]:
        """What a program's caller sees."""
        return self.code, self.stdout

    def complaints(self) -> list[str]:
        return self.stderr.splitlines()

    def counted(self) -> list[dict[str, tuple[int, int, int]]]:
        """Per process, in order of pid."""
        return [counted.totals(path) for path in sorted(self.counts.iterdir())]

    def rank_files(self) -> list[list[dict]]:
        """The lines of each closed rank file; nothing else may lie in the folder."""
        return [read_lines(path) for path in sorted(self.traces.iterdir())]

    def only_rank_file(self) -> list[dict]:
        (lines,) = self.rank_files()
        return lines


def environment(folder: pathlib.Path, preload: bool, libraries: str, **more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TPROF_", "STANDIN_", "LD_"))}
    for name in ("counts", "tally"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env |= {
        "LD_LIBRARY_PATH": str(LIBRARIES[libraries]),
        "FAULT_COUNTS": str(folder / "counts"),
        "TPROF_OUTPUT_DIR": str(folder / "traces"),
    }
    # Not in /dev/shm: thousands of processes are killed here.
    more.setdefault("TPROF_RING_DIR", more.get("TPROF_OUTPUT_DIR", env["TPROF_OUTPUT_DIR"]))
    if libraries == "stand-in":
        env["STANDIN_TALLY"] = str(folder / "tally")
    if preload:
        env["LD_PRELOAD"] = f"{LIBTPROF}:{TROUBLE}" if "TROUBLE" in more else str(LIBTPROF)
    return env | more


def client(*arguments: object) -> list[str]:
    return [str(CLIENT), *map(str, arguments)]


def run(
    folder: pathlib.Path,
    command: list[str],
    *,
    preload: bool = True,
    libraries: str = "instant",
    **env: str,
) -> Run:
    """Runs a command to its end."""
    done = subprocess.run(
        command,
        env=environment(folder, preload, libraries, **env),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, folder / "traces", folder / "counts")


def parse(lines: list[str]) -> list[dict]:
    return [json.loads(line.removesuffix(",")) for line in lines]


def read_lines(path: pathlib.Path) -> list[dict]:
    """A closed rank file's lines."""
    lines = path.read_text().splitlines()
    assert lines[0] == "[" and lines[-1] == "]", f"{path.name} is not closed"
    return parse(lines[1:-1])


def named(lines: list[dict], name: str) -> list[dict]:
    return [line["args"] for line in lines if line["name"] == name]


def footer(lines: list[dict]) -> dict:
    (args,) = named(lines, "tprof_footer")
    return args


def events(lines: list[dict]) -> list[dict]:
    return [line for line in lines if line["ph"] == "X"]


def ledger(lines: list[dict]) -> dict[tuple[str, str, str], tuple[int, int, int, int]]:
    """(bucket, function, dtype) -> (calls, count, failed, unfinished), of the closing ledger."""
    table: dict = {}
    for row in named(lines, "tprof_ledger")[-1]["rows"]:
        key = (row["bucket"], row["name"], row["dtype"])
        figures = (row["calls"], row["count"], row["failed"], row["unfinished"])
        table[key] = tuple(map(sum, zip(table.get(key, (0, 0, 0, 0)), figures)))
    return table


def expected_ledger(counts: dict[str, tuple[int, int, int]]) -> dict:
    """The same of what the program counted: what it entered and did not finish is unfinished."""
    table = {}
    for kind, (entered, returned, failed) in counts.items():
        if entered:
            amount = counted.KINDS[kind][2]
            unfinished = entered - returned - failed
            table[counted.key(kind)] = (returned, returned * amount, failed, unfinished)
    return table


def calls_with_lines(counts: dict[str, tuple[int, int, int]]) -> int:
    return sum(c[0] for kind, c in counts.items() if kind not in counted.WITHOUT_LINES)


def assert_exact(
    lines: list[dict], counts: dict[str, tuple[int, int, int]], unfinished: int = 0
) -> None:
    """The ledger equals what the program counted; every call has its line or is a counted drop."""
    assert sum(entered - a - b for entered, a, b in counts.values()) == unfinished
    assert ledger(lines) == expected_ledger(counts)
    dropped = footer(lines)["dropped"]
    begun = [line for line in lines if line["ph"] == "B"]
    assert len(begun) <= unfinished and all(line["args"]["unfinished"] for line in begun)
    assert len(events(lines)) + sum(dropped.values()) + unfinished == calls_with_lines(counts)
    assert_no_line_twice(events(lines) + begun)


def assert_no_line_twice(calls: list[dict]) -> None:
    """A thread can't enter two calls in the same nanosecond."""
    entered = [(call["tid"], call["ts"]) for call in calls]
    assert len(set(entered)) == len(entered), "a line twice"


def header_of(traces: pathlib.Path) -> dict:
    """Of the only rank file, whether or not it is closed."""
    (file,) = traces.glob("*.json")
    (args,) = named(parse(file.read_text().splitlines()[1:4]), "tprof_header")
    return args


def tprof(*arguments: object, **env: str) -> subprocess.CompletedProcess:
    command = [str(TPROF), *map(str, arguments)]
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=False)


def recover(traces: pathlib.Path) -> None:
    """Closes what a dead process left open."""
    done = tprof("recover", traces)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@functools.cache
def tally_module():
    path = REPO / "tests" / "standin" / "tally.py"
    spec = importlib.util.spec_from_file_location("standin_tally", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Starts the client on the instant libraries or on the stand-in, and reads what it left."""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator

from lib import counted, launch
from lib.build import BUILD, INSTANT, LIBTPROF
from lib.rankfile import closed, named
from lib.tool import tprof

CLIENT = BUILD / "fault_client"
RING_DUMP = BUILD / "ring_dump"
TROUBLE = BUILD / "libfault_trouble.so"

TIME_LIMIT_S = 60  # limit for a client; the slowest takes a tenth of it


@dataclasses.dataclass(frozen=True)
class Run:
    code: int
    stdout: str
    stderr: str
    traces: pathlib.Path
    counts: pathlib.Path

    def outcome(self) -> tuple[int, str]:
        """Returns what a program's caller sees."""
        return self.code, self.stdout

    def complaints(self) -> list[str]:
        return self.stderr.splitlines()

    def counted(self) -> list[dict[str, tuple[int, int, int]]]:
        """Returns the client's own totals per process, in order of pid."""
        return [counted.totals(path) for path in sorted(self.counts.iterdir())]

    def rank_files(self) -> list[list[dict]]:
        """Returns the lines of each closed rank file; nothing else may lie in the folder. A process that ends while it
        makes its rank file leaves an empty one."""
        return [closed(path) for path in sorted(self.traces.iterdir()) if path.stat().st_size]

    def only_rank_file(self) -> list[dict]:
        (lines,) = self.rank_files()
        return lines


def environment(
    folder: pathlib.Path, preload: bool = True, libraries: pathlib.Path = INSTANT, **more: str | None
) -> dict[str, str]:
    for name in ("counts", "tally"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    env = launch.environment(folder, preload, libraries, FAULT_COUNTS=str(folder / "counts"), **more)
    # Ring files don't go to /dev/shm, since thousands of processes are killed here.
    env.setdefault("TPROF_RING_DIR", env.get("TPROF_OUTPUT_DIR", str(folder / "traces")))
    if preload and "TROUBLE" in more:
        env["LD_PRELOAD"] = f"{LIBTPROF}:{TROUBLE}"
    return env


def client(*arguments: object) -> list[str]:
    return [str(CLIENT), *map(str, arguments)]


def run(
    folder: pathlib.Path,
    command: list[str],
    *,
    preload: bool = True,
    libraries: pathlib.Path = INSTANT,
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


@contextlib.contextmanager
def standing(
    folder: pathlib.Path, command: list[str], said: str = "ready", **env: object
) -> Iterator[subprocess.Popen]:
    """Runs a client until it has said `said`, and kills it at the end. It says "ready", or "inside" at
    each INSTANT_GATE, where it goes on when it is told."""
    with subprocess.Popen(
        command,
        env=environment(folder, **env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == f"{said}\n"
            yield process
        finally:
            process.kill()


def until(what: Callable[[], object]):
    """Waits for `what` to return something true, which comes soon, however busy the machine; returns that."""
    deadline = time.monotonic() + TIME_LIMIT_S
    while not (result := what()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def rank_file(traces: pathlib.Path) -> pathlib.Path:
    """Returns the only rank file. The writer of a process that runs makes it a moment behind its first call."""
    (file,) = until(lambda: list(traces.glob("*.json")))
    return file


def threads(pid: int) -> dict[int, str]:
    """The name of each thread of a process, without those that ended while they were looked at."""
    names = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names[int(task.name)] = (task / "comm").read_text().strip()
    return names


def footer(lines: list[dict]) -> dict:
    (args,) = named(lines, "tprof_footer")
    return args


def events(lines: list[dict]) -> list[dict]:
    return [line for line in lines if line["ph"] == "X" and line.get("cat") != "COMM"]


def ledger(lines: list[dict]) -> dict[tuple[str, str, str], tuple[int, int, int, int]]:
    """Returns (bucket, function, dtype) -> (calls, count, failed, unfinished), from the closing ledger."""
    table: dict = {}
    for row in named(lines, "tprof_ledger")[-1]["rows"]:
        key = (row["bucket"], row["name"], row["dtype"])
        figures = (row["calls"], row["count"], row["failed"], row["unfinished"])
        table[key] = tuple(map(sum, zip(table.get(key, (0, 0, 0, 0)), figures)))
    return table


def expected_ledger(counts: dict[str, tuple[int, int, int]]) -> dict:
    """Returns the same from the program's own counts: calls that it entered and did not finish are unfinished."""
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
    """Returns the header of the only rank file, whether or not it is closed, as soon as it is written."""

    def found() -> str | None:
        lines = rank_file(traces).read_text().splitlines(keepends=True)
        return next((line for line in lines if '"tprof_header"' in line and line.endswith("\n")), None)

    return json.loads(until(found).rstrip().removesuffix(","))["args"]


def recover(traces: pathlib.Path) -> None:
    """Closes what a dead process left open."""
    done = tprof("recover", traces)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr

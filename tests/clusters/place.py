"""A folder for one row: its traces, the stand-in's tallies, and the commands that ran."""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

from lib import figures, launch, rankfile, tally
from lib.build import BUILD, LIBTPROF, STANDIN
from lib.tool import tprof

TIME_LIMIT_S = 240  # limit for one launch; the slowest takes a quarter of it on a quiet machine
NATIVE = BUILD / "native_trainer"


class NotRun(Exception):
    """A launcher is not here, or does not start here, for this reason."""


class Wrong(Exception):
    """A row found something other than it should be."""


def expect(true: object, what: object) -> None:
    if not true:
        raise Wrong(str(what))


@dataclasses.dataclass
class Row:
    """The contents of a row of the table."""

    ran: str
    processes: int = 0
    ours: int = 0
    theirs: int = 0
    note: str = ""


class Place:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.traces = folder / "traces"
        self.tally = folder / "tally"
        self.tally.mkdir(parents=True)
        # Sockets lie in here, whose paths have 107 bytes.
        self.short = tempfile.mkdtemp(prefix="")
        self.log = folder / "commands.log"

    def env(self, **more: object) -> dict[str, str]:
        """Returns the environment of a launcher: the stand-in, and neither preload nor folder of traces."""
        none = {"LD_PRELOAD": None, "TPROF_OUTPUT_DIR": None, "TMPDIR": str(self.folder), "NATIVE_TRAINER_ID": None}
        given = {name: None if value is None else str(value) for name, value in more.items()}
        return launch.environment(self.folder, False, STANDIN, **(none | given))

    def preload(self, folder: object = None) -> dict[str, str]:
        return {"LD_PRELOAD": str(LIBTPROF), "TPROF_OUTPUT_DIR": str(folder or self.traces)}

    def run(self, command: list, code: int | None = 0, limit: int = TIME_LIMIT_S, **env: object) -> str:
        """Returns what the command printed on both streams. Another exit status than `code` is wrong."""
        command = list(map(str, command))
        try:
            done = subprocess.run(
                command, env=self.env(**env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            self.said(command, "over time", (late.stdout or b"").decode(errors="replace"))
            raise Wrong(f"{command[0]} did not end within {limit} s") from None
        self.said(command, done.returncode, done.stdout)
        expect(code is None or done.returncode == code, f"exit status {done.returncode} of {shlex.join(command)[:90]}")
        return done.stdout

    def said(self, command: list[str], code: object, text: str) -> None:
        with self.log.open("a") as log:
            log.write(f"$ {shlex.join(command)}\n{text}\n[{code}]\n\n")

    def checked(self, code: int, *options: str, traces: pathlib.Path | None = None) -> dict:
        """Returns what `tprof check` says, which must have this exit status."""
        done = tprof("check", traces or self.traces, "--json", *options)
        self.said(["tprof", "check", str(traces or self.traces)], done.returncode, done.stdout + done.stderr)
        expect(done.returncode == code, f"tprof check says {done.returncode}, not {code}")
        return json.loads(done.stdout)

    def counted(self, ran: str, ranks: list[int], traces=None, tallies=None, short: int = 0, note: str = "") -> Row:
        """Holds the ledger of each rank file against the stand-in's tally of its process. `short`: so many calls
        of a bucket may be missing from a killed process, each of them unfinished."""
        traces = traces or self.traces
        tallies = tallies or tally.by_pid(self.tally)
        files = [rankfile.read(path) for path in sorted(traces.glob("*.json")) if not rankfile.is_node(path)]
        found = sorted(map(rank_of, files))
        expect(found == ranks, f"files are of the ranks {found}")
        row = Row(ran, len(files), note=note)
        for file in files:
            ours = figures.of_ledger(file)
            theirs = figures.of_tally(tallies[file.header["pid"]])
            if not short:
                difference = figures.difference(ours, theirs)
                expect(not difference, f"rank {file.rank}: {difference[:200]}")
            for key, figure in theirs.items():
                calls = ours.get(key, {"calls": 0})["calls"]
                expect(figure["calls"] - short <= calls <= figure["calls"], f"rank {file.rank}: {key}: {calls}")
            row.ours += sum(figure["calls"] for figure in ours.values())
            row.theirs += sum(figure["calls"] for figure in theirs.values())
        return row

    def complaints(self, text: str) -> list[str]:
        """Returns the library's own lines, of which a healthy run has none."""
        return re.findall(r"^(?:\d+: )?tprof: .*", text, re.M)


def rank_of(file: rankfile.RankFile) -> int:
    """Returns the rank that the launcher told, or the one in the largest communicator."""
    told = [*rankfile.named(file.lines, "tprof_identity"), file.header]
    return next(args["rank"] for args in told if args["rank"] is not None)


def until(what, limit: int = 120, pause: float = 0.3) -> object:
    deadline = time.monotonic() + limit
    while not (found := what()):
        expect(time.monotonic() < deadline, f"waited {limit} s in vain")
        time.sleep(pause)
    return found


def headers(traces: pathlib.Path) -> list[dict]:
    files = sorted(path for path in traces.glob("*.json") if not rankfile.is_node(path))
    return [rankfile.named(rankfile.parsed_so_far(file), "tprof_header")[0] for file in files]


def run_ids(traces: pathlib.Path) -> list[tuple]:
    """Returns (rank, run id, restart) of each file."""
    return [(head["rank"], head["run_id"], head["restart"]) for head in headers(traces)]


def path_of(name: str) -> str:
    """Returns a program's path."""
    for folder in [*os.environ["PATH"].split(":"), "/usr/sbin", "/usr/local/sbin"]:
        if os.access(f"{folder}/{name}", os.X_OK):
            return f"{folder}/{name}"
    raise NotRun(f"no {name} here")

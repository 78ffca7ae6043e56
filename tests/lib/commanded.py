"""A client that makes calls when the test says so, and that `tprof ctl` can steer."""

import contextlib
import json
import pathlib
import subprocess
import threading

from lib import launch, rankfile, tally
from lib.build import BUILD
from lib.rankfile import named
from lib.runs import rank_file, until
from lib.tool import tprof


class Job:
    """A process that does what it is told."""

    def __init__(self, folder: pathlib.Path, process: subprocess.Popen):
        self.folder, self.process, self.traces = folder, process, folder / "traces"

    def does(self, *what: object) -> list[str]:
        print(*what, file=self.process.stdin, flush=True)
        said = []
        while (line := self.process.stdout.readline()) != "done\n":
            assert line, self.process.stderr.read()
            said.append(line)
        return said

    def ctl(self, *what: object, target: object = None) -> tuple[int, list[str]]:
        done = tprof("ctl", target or self.traces, *what, "--json")
        assert done.stdout, done.stderr
        return done.returncode, [p["result"] for p in json.loads(done.stdout)["processes"]]

    def told(self, *what: object) -> None:
        assert self.ctl(*what) == (0, ["done"])

    def ends(self) -> rankfile.RankFile:
        self.process.stdin.close()
        assert self.process.wait() == 0, self.process.stderr.read()
        return rankfile.read(self.file())

    def file(self) -> pathlib.Path:
        return rank_file(self.traces)

    def ring(self) -> pathlib.Path:
        (header,) = named(rankfile.parsed_so_far(self.file()), "tprof_header")
        return self.traces / header["ring"]

    def counted(self, name: str) -> int:
        """Returns how many calls of `name` the stand-in has counted."""
        (process,) = tally.read_all(self.folder / "tally")
        return sum(row["entered"] for row in process["rows"] if row["function"] == name)


@contextlib.contextmanager
def commanded(folder, **settings):
    folder.mkdir(exist_ok=True)
    (folder / "tally").mkdir()
    with subprocess.Popen(
        [BUILD / "commanded"],
        env=launch.environment(folder, **({"RANK": "0", "WORLD_SIZE": "1"} | settings)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:
        hangs = threading.Timer(launch.TIME_LIMIT_S, process.kill)
        hangs.start()
        try:
            job = Job(folder, process)
            job.does("gather", 0)
            traces = pathlib.Path(settings.get("TPROF_OUTPUT_DIR", job.traces))
            until(lambda: any(f'"pid":{process.pid},' in file.read_text() for file in traces.glob("*.json")))
            yield job
        finally:
            hangs.cancel()
            process.kill()

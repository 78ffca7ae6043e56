"""Where things are, and running them: what all parts need."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Sequence

REPO = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Finished:
    """A process that has ended well. Its peak memory can't read below this one's own."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    read_bytes: int  # by read calls, whether from the disk or the page cache


@dataclasses.dataclass
class Place:
    build: pathlib.Path

    @property
    def preload(self) -> pathlib.Path:
        return self.build / "libtprof.so"

    @property
    def tprof(self) -> pathlib.Path:
        return self.build / "tprof"

    def empty_folder(self, name: str) -> pathlib.Path:
        folder = self.build / "bench" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def environment(self, traces: pathlib.Path | None, **more: str) -> dict[str, str]:
        """Ours in no way, or with the preload that writes to `traces`."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_")}
        env.pop("LD_PRELOAD", None)
        if traces is not None:
            env |= {"LD_PRELOAD": str(self.preload), "TPROF_OUTPUT_DIR": str(traces)}
        return env | more


def finish(command: Sequence[str | os.PathLike], output: pathlib.Path | None = None) -> Finished:
    with open(output or os.devnull, "wb") as out, subprocess.Popen(
        [str(word) for word in command], stdout=out, stderr=subprocess.PIPE
    ) as process:
        started = time.perf_counter()
        errors = process.stderr.read()
        # Its figures are there until it is waited for.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        wall_s = time.perf_counter() - started
        io = pathlib.Path(f"/proc/{process.pid}/io").read_text()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)
    return Finished(
        wall_s,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * 1024,
        int(io.split("rchar: ")[1].split()[0]),
    )


def last_lines(file: pathlib.Path, size: int = 1 << 16) -> list[str]:
    with open(file, "rb") as f:
        f.seek(max(0, file.stat().st_size - size))
        return f.read().decode().splitlines()


def dropped(traces: pathlib.Path) -> dict[str, int]:
    """Why lines are missing from the one trace of this folder, from its footer."""
    (file,) = traces.glob("*.json")
    line = next(line for line in last_lines(file) if line.startswith('{"name":"tprof_footer"'))
    return json.loads(line.rstrip(","))["args"]["dropped"]

"""Finds and runs programs, for all parts."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence


@dataclasses.dataclass
class Finished:
    """The resources that a process used, which ended as it should."""

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
        """Returns an environment without tprof, or with the preload that writes to `traces`."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("TPROF_")}
        env.pop("LD_PRELOAD", None)
        if traces is not None:
            env |= {"LD_PRELOAD": str(self.preload), "TPROF_OUTPUT_DIR": str(traces)}
        return env | more

    def finish(
        self, command: Sequence[str | os.PathLike], output: pathlib.Path | None = None, status=0
    ) -> Finished:
        """Runs a command to its end, which must have the exit status `status`."""
        with tempfile.NamedTemporaryFile("r") as used, open(output or os.devnull, "wb") as out:
            words = [self.build / "bench_usage", used.name, *command]
            result = subprocess.run(list(map(str, words)), stdout=out, stderr=subprocess.PIPE)
            if result.returncode != status:
                raise subprocess.CalledProcessError(
                    result.returncode, command, stderr=result.stderr
                )
            return Finished(**json.load(used))


def last_lines(file: pathlib.Path, size: int = 1 << 16) -> list[str]:
    with open(file, "rb") as f:
        f.seek(max(0, file.stat().st_size - size))
        return f.read().decode().splitlines()


def dropped(traces: pathlib.Path) -> dict[str, int]:
    """Returns why lines are missing from the one trace of this folder, from its footer."""
    (file,) = traces.glob("*.json")
    line = next(line for line in last_lines(file) if line.startswith('{"name":"tprof_footer"'))
    return json.loads(line.rstrip(","))["args"]["dropped"]

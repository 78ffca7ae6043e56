"""Starts a training script as a user does, on the stand-in, with or without the preload."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys

from lib.build import CLIENTS, LIBTPROF, STANDIN

# A rank that hangs must not hold the suite; the slowest client needs a tenth of this.
TIME_LIMIT_S = 120
TORCHRUN_GRACE_S = 40  # after a SIGTERM it waits 30 s for its workers, then kills them


@dataclasses.dataclass(frozen=True)
class Run:
    """What one launch left behind."""

    code: int
    stdout: str
    stderr: str
    traces: pathlib.Path  # TPROF_OUTPUT_DIR, whether or not the preload was there
    tally: pathlib.Path  # STANDIN_TALLY

    def lines(self) -> list[str]:
        """Standard output without its order: ranks write whenever they get there."""
        return sorted(self.stdout.splitlines())

    def words_of_ours(self) -> list[str]:
        """What the library said. A line may hold the name for another reason: PyTorch's warnings
        print the path of the checkout."""
        return [line for line in self.stderr.splitlines() if line.startswith("tprof:")]


def environment(folder: pathlib.Path, preload: bool) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TPROF_", "STANDIN_", "NCCL_"))}
    env.pop("LD_PRELOAD", None)
    env["LD_LIBRARY_PATH"] = str(STANDIN)
    env["STANDIN_TALLY"] = str(folder / "tally")
    env["TPROF_OUTPUT_DIR"] = str(folder / "traces")
    env["OMP_NUM_THREADS"] = "1"
    # Without bytecode in the source tree, a run leaves nothing behind but what it is asked for.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    if preload:
        env["LD_PRELOAD"] = str(LIBTPROF)
    return env


def start(command: list[str], folder: pathlib.Path, preload: bool, **extra_env: str) -> Run:
    """Runs a command to its end; past the time limit it is ended with all its children."""
    folder.mkdir(parents=True)
    (folder / "tally").mkdir()
    env = environment(folder, preload) | extra_env
    with subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            # torchrun's workers have sessions of their own: only torchrun can end them.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                stdout, stderr = process.communicate(timeout=TORCHRUN_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                stdout, stderr = process.communicate()
            stderr += f"\n(ended after {TIME_LIMIT_S} s)"
    return Run(process.returncode, stdout, stderr, folder / "traces", folder / "tally")


def torchrun(script: str, ranks: int, args: tuple[str, ...] = ()) -> list[str]:
    agent = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return agent + [f"--nproc_per_node={ranks}", str(CLIENTS / script), *args]

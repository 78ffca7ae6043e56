"""Starts a program as a user does, on the stand-in or other libraries, with or without the preload."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

from lib import rankfile, tally, warm
from lib.build import CLIENTS, LIBTPROF, STANDIN

# A rank that hangs must not hold the suite; the slowest client needs a tenth of this.
TIME_LIMIT_S = 120
TORCHRUN_GRACE_S = 40  # after a SIGTERM it waits 30 s for its workers, then kills them

# torchrun looks up its host's name whenever it records an event, and gloo does so for each group. Where
# nobody answers, as in a chroot and in many containers, each lookup would wait for 10 s. So no name server
# is asked here, as in scripts/demo, and PyTorch does not warn that there was no answer.
NO_LOOKUPS = {"RES_OPTIONS": "attempts:0", "GLOO_SOCKET_IFNAME": "lo", "TORCH_CPP_LOG_LEVEL": "ERROR"}


@dataclasses.dataclass(frozen=True)
class Run:
    """The outcome of one launch."""

    code: int
    stdout: str
    stderr: str
    traces: pathlib.Path  # TPROF_OUTPUT_DIR, whether or not the preload was there
    tally: pathlib.Path  # STANDIN_TALLY

    def lines(self) -> list[str]:
        """Returns standard output, sorted: ranks write in any order."""
        return sorted(self.stdout.splitlines())

    def words_of_ours(self) -> list[str]:
        """Returns the library's messages. Other lines may hold its name too: PyTorch's warnings print the
        path of the checkout."""
        return [line for line in self.stderr.splitlines() if line.startswith("tprof:")]

    def ranks(self) -> list[rankfile.RankFile]:
        return rankfile.read_folder(self.traces)

    def only_rank(self) -> rankfile.RankFile:
        (file,) = self.ranks()
        return file

    def tallies(self) -> dict[int, dict]:
        """Returns what the stand-in counted, by process id; see lib/tally.py for the fields."""
        return tally.by_pid(self.tally)

    def only_tally(self) -> dict:
        (process,) = tally.read_all(self.tally)
        return process


def environment(
    folder: pathlib.Path, preload: bool = True, libraries: object = STANDIN, **more: str | None
) -> dict[str, str]:
    """`more` overrides all else; None removes a variable."""
    ours = ("TPROF_", "STANDIN_", "NCCL_", "LD_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env["LD_LIBRARY_PATH"] = str(libraries)
    env["STANDIN_TALLY"] = str(folder / "tally")
    env["TPROF_OUTPUT_DIR"] = str(folder / "traces")
    env["OMP_NUM_THREADS"] = "1"
    env |= NO_LOOKUPS
    # Without bytecode in the source tree, a run leaves nothing behind but what it is asked for.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    if preload:
        env["LD_PRELOAD"] = str(LIBTPROF)
    env |= more
    return {name: value for name, value in env.items() if value is not None}


@contextlib.contextmanager
def running(
    command: list, folder: pathlib.Path, preload: bool = True, libraries: object = STANDIN, **more: str | None
) -> Iterator[subprocess.Popen]:
    """Starts a command, which is killed at the end with all children in its session."""
    (folder / "tally").mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        list(map(str, command)),
        env=environment(folder, preload, libraries, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start(command: list, folder: pathlib.Path, *how: object, **more: object) -> Run:
    """Runs a command as running() does, to its end or to the time limit."""
    if isinstance(command, warm.Ranks) and (run := start_forked(command, folder, *how, **more)):
        return run
    with running(command, folder, *how, **more) as process:
        try:
            stdout, stderr = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            # torchrun's workers have sessions of their own: only torchrun can end them.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                stdout, stderr = process.communicate(timeout=TORCHRUN_GRACE_S)
            except subprocess.TimeoutExpired:
                kill(process)
                stdout, stderr = process.communicate()
            stderr += f"\n(ended after {TIME_LIMIT_S} s)"
    return Run(process.returncode, stdout, stderr, folder / "traces", folder / "tally")


def start_forked(
    command: warm.Ranks, folder: pathlib.Path, preload: bool = True, libraries: object = STANDIN, **more: str | None
) -> Run | None:
    """Does the same with forked ranks, or returns None where that won't do: see lib/warm.py."""
    env = environment(folder, preload, libraries, **more)
    plain = environment(folder, preload)
    if not warm.can_run(env, plain):
        return None
    (folder / "tally").mkdir(parents=True, exist_ok=True)
    return Run(*warm.run(command, env, plain, TIME_LIMIT_S), folder / "traces", folder / "tally")


def agent(ranks: int, python: object = sys.executable) -> list[str]:
    """Returns torchrun's command. Without an address its ranks would meet at the host's name, which need
    not resolve."""
    launcher = [str(python), "-m", "torch.distributed.run", "--standalone", "--local_addr=127.0.0.1"]
    return [*launcher, f"--nproc_per_node={ranks}"]


def torchrun(script: str, ranks: int, args: tuple[str, ...] = ()) -> list[str]:
    return [*agent(ranks), str(CLIENTS / script), *args]


ALL_RANKS = """
for RANK in $(seq 0 $((WORLD_SIZE - 1))); do
  RANK=$RANK LOCAL_RANK=$((RANK % DEVICES)) "$@" &
  ranks="$ranks $!"
done
code=0
for rank in $ranks; do wait "$rank" || code=$?; done
exit $code
"""


# Each test worker has ports of its own, below those that the kernel hands out, and each run the next one:
# a rank's output ends before its listening socket does.
_PORTS = itertools.cycle(str(10000 + os.getpid() % 500 * 40 + run) for run in range(40))


def without_agent(script: str, ranks: int, args: tuple[str, ...] = (), devices: int | None = None) -> warm.Ranks:
    """Returns the ranks as torchrun starts them, without its agent. The agent takes 2.4 s of CPU to import
    PyTorch, and would end the others when one fails. They take turns at `devices`, or have one each."""
    devices = devices or ranks
    job = {
        "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": next(_PORTS),
        "TORCHELASTIC_RUN_ID": "tests",
    }  # fmt: skip
    shell = ["env", *(f"{name}={value}" for name, value in job.items()), f"DEVICES={devices}", "sh", "-c", ALL_RANKS, "ranks"]
    command = [*shell, sys.executable, "-u", str(CLIENTS / script), *args]
    each = [job | {"RANK": str(rank), "LOCAL_RANK": str(rank % devices)} for rank in range(ranks)]
    return warm.Ranks(command, CLIENTS / script, args, each)


def ending_together(script: str, ranks: int, args: tuple[str, ...] = ()) -> warm.Ranks:
    """Returns the same ranks for start_forked() alone, which ends the others when one fails, as the agent does."""
    command = without_agent(script, ranks, args)
    command.together = True
    return command

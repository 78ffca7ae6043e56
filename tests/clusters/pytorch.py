"""Rows of PyTorch's launchers: torchrun, accelerate, deepspeed."""

import contextlib
import importlib.util
import pathlib
import subprocess
import sys

from clusters.place import NotRun, Place, Row, expect, path_of, run_ids
from clusters.slurm_here import free_port
from lib.build import CLIENTS, STANDIN, TPROF
from lib.launch import NO_LOOKUPS, agent
from lib.tool import tprof

HERE = pathlib.Path(__file__).parent


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise NotRun(f"no Python package {module}")


def in_front(place: Place, ranks: int, command: list, ran: str, **env: object) -> Row:
    text = place.run([TPROF, "run", "--out", place.traces, "--", *command], **env)
    expect(f"Totals over {ranks} processes" in text, "no summary of all ranks")
    found = place.checked(0)
    expect(found["ranks"] == list(range(ranks)), f"ranks {found['ranks']}")
    return place.counted(ran, list(range(ranks)))


def torchrun(place: Place) -> Row:
    return in_front(place, 4, [*agent(4), CLIENTS / "counted.py"], "tprof run -- torchrun …")


def elastic(place: Place) -> Row:
    """A rank is killed inside an all-reduce; torchrun starts both again."""
    command = [*agent(2), "--max-restarts=1", "--monitor-interval=0.1", CLIENTS / "restarted.py"]
    # https://github.com/pytorch/pytorch/issues/135712
    text = place.run(command, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1", **place.preload())
    expect(text.count("started again") == 2, "no restart")
    attempts = sorted((rank, again) for rank, _, again in run_ids(place.traces))
    expect(attempts == [(0, 0), (0, 1), (1, 0), (1, 1)], f"attempts {attempts}")
    expect("2 attempts of one run" in tprof("summary", place.traces).stdout, "summary does not tell the attempts")
    place.checked(0)
    place.checked(1, "--attempt", "1")
    expect(tprof("recover", place.traces).returncode == 0, "tprof recover")
    # Two threads of a rank make calls.
    return place.counted("torchrun --max-restarts=1, a worker killed", [0, 0, 1, 1], short=2, note="two attempts")


def accelerate(place: Place) -> Row:
    needs("accelerate")
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", 2]
    launcher += ["--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no"]
    launcher += ["--main_process_port", free_port()]
    more = {"PYTHONPATH": CLIENTS, "HF_HOME": place.folder / "hf"}
    return in_front(place, 2, [*launcher, HERE / "accelerated.py"], "tprof run -- accelerate launch …", **more)


def deepspeed_command() -> list:
    needs("deepspeed")
    return [sys.executable, "-m", "deepspeed.launcher.runner"]


def deepspeed(place: Place) -> Row:
    launcher = [*deepspeed_command(), "--num_gpus", 2, "--master_port", free_port()]
    none = place.folder / "no-hostfile"
    more = {"DS_ACCELERATOR": "cuda"}
    return in_front(place, 2, [*launcher, "-H", none, CLIENTS / "zero3.py"], "tprof run -- deepspeed …", **more)


@contextlib.contextmanager
def ssh_here(folder: pathlib.Path):
    """Yields the arguments of ssh with which this machine lets us in, on a port of its own."""
    sshd = path_of("sshd")
    path_of("pdsh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / f"{name}.key"], check=True)
    (folder / "authorized").write_text((folder / "user.key.pub").read_text())
    port = free_port()
    options = {"Port": port, "ListenAddress": "127.0.0.1", "HostKey": folder / "host.key", "UsePAM": "no",
               "AuthorizedKeysFile": folder / "authorized", "PidFile": "none", "StrictModes": "no",
               "PermitRootLogin": "yes"}  # fmt: skip
    (folder / "sshd.conf").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "sshd.log").open("w") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", folder / "sshd.conf"], stderr=log)
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    ssh = [f"-p {port}", f"-i {folder}/user.key", *(f"-o {option}" for option in options)]
    try:
        yield " ".join(ssh)
    finally:
        server.terminate()
        server.wait()


def deepspeed_nodes(place: Place) -> Row:
    """Two names of this machine are two nodes with a rank each; the preload is in .deepspeed_env."""
    home = place.folder / "home"
    home.mkdir()
    given = NO_LOOKUPS | place.preload() | {
        "LD_LIBRARY_PATH": str(STANDIN), "STANDIN_TALLY": str(place.tally), "TMPDIR": str(place.folder),
        "DS_ACCELERATOR": "cuda", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    (home / ".deepspeed_env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    hosts = place.folder / "hosts"
    hosts.write_text("localhost slots=1\n127.0.0.1 slots=1\n")
    with ssh_here(place.folder) as arguments:
        more = {"HOME": home, "PDSH_SSH_ARGS_APPEND": arguments, "DS_ACCELERATOR": "cuda"}
        launcher = [*deepspeed_command(), "-H", hosts, "--master_addr", "127.0.0.1", "--master_port", free_port()]
        launcher += ["--no_ssh_check", "--ssh_port", arguments.split()[1]]
        text = place.run([*launcher, CLIENTS / "zero3.py"], **more)
    expect(not place.complaints(text), place.complaints(text))
    place.checked(0)
    return place.counted("deepspeed -H hostfile, ~/.deepspeed_env", [0, 1], note="pdsh and ssh to this machine twice")


ROWS = {
    "torchrun": torchrun,
    "torchrun-elastic": elastic,
    "accelerate": accelerate,
    "deepspeed": deepspeed,
    "deepspeed-nodes": deepspeed_nodes,
}

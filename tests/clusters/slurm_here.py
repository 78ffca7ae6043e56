"""Slurm on this machine alone: munged, slurmctld and slurmd in a private folder, on ports of their own."""

import contextlib
import pathlib
import secrets
import socket
import subprocess
import tempfile

from clusters.place import NotRun, path_of, until

CONF = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={socket},cred_expire=5
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=5
ReturnToService=2
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def slurm(folder: pathlib.Path):
    """Yields the variables that a client of it needs."""
    daemons = [path_of(name) for name in ("munged", "slurmctld", "slurmd")]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    conf = folder / "slurm.conf"
    # In here, since its path may have 107 bytes; every user may go in.
    short = pathlib.Path(tempfile.mkdtemp(prefix=""))
    short.chmod(0o755)
    munge_socket = short / "munge"
    host = socket.gethostname().partition(".")[0]
    ports = {"controller": free_port(), "node": free_port()}
    conf.write_text(CONF.format(host=host, folder=folder, socket=munge_socket, **ports))
    munge = [f"--{what}-file={folder}/munge.{what}" for what in ("pid", "log", "seed")]
    commands = [
        [daemons[0], "--foreground", f"--key-file={key}", f"--socket={munge_socket}", *munge],
        [daemons[1], "-D", "-f", str(conf)],
        [daemons[2], "-D", "-f", str(conf)],
    ]
    started = []
    try:
        for command in commands:
            log = (folder / f"{pathlib.Path(command[0]).name}.log").open("w")
            started.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
            if len(started) == 1:
                until(munge_socket.exists, limit=30)
        env = {"SLURM_CONF": str(conf)}
        try:
            until(lambda: "idle" in said(["sinfo", "-h", "-o", "%t"], env), limit=60)
        except Exception as late:
            raise NotRun("Slurm's node did not come up: see slurmctld.log") from late
        yield env
    finally:
        for process in reversed(started):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            process.wait()


def said(command: list[str], env: dict[str, str]) -> str:
    whole = [path_of(command[0]), *command[1:]]
    plain = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(whole, env=plain | env, capture_output=True, text=True, check=False).stdout

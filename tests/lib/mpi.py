"""Processes of the tool that share their work: started by a launcher of MPI, or as if one had started them."""

import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading

from lib.build import BUILD, TPROF
from lib.launch import NO_LOOKUPS

FAKES = {abi: BUILD / f"tests/tool/libfake_mpi_{abi}.so" for abi in ("open", "mpich")}
RANK = {"open": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}
SIZE = {"open": "OMPI_COMM_WORLD_SIZE", "mpich": "PMI_SIZE"}

# Those that are not the alternative of another are called by these names; root may not use Open MPI's unasked.
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
    "mpich": ["mpirun.mpich"],
}


def launcher(name: str) -> list[str] | None:
    return LAUNCHERS[name] if shutil.which(LAUNCHERS[name][0]) else None


def launched(name: str, processes: int, *arguments: object, **options) -> subprocess.CompletedProcess:
    command = [*LAUNCHERS[name], "-n", processes, TPROF, *arguments]
    # MPICH's looks up the name of this machine, which need not resolve.
    options = {"capture_output": True, "text": True, "timeout": 120, "env": os.environ | NO_LOOKUPS} | options
    return subprocess.run(list(map(str, command)), check=False, **options)


class Hub:
    """Passes on what the processes say to each other, once all have said something. With `pause_after` it stops behind
    so many rounds, and says so by `paused`, until it is told to go on by `go`."""

    def __init__(self, folder: pathlib.Path, processes: int, pause_after: int = -1):
        self.pause_after = pause_after
        self.paused = threading.Event()
        self.go = threading.Event()
        self.path = folder / "hub"
        self.path.unlink(missing_ok=True)
        self.processes = processes
        self.rounds = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(processes)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    @staticmethod
    def _get(connection: socket.socket, size: int) -> bytes:
        got = b""
        while len(got) < size:
            part = connection.recv(size - len(got))
            if not part:
                raise ConnectionError
            got += part
        return got

    def _run(self) -> None:
        of_rank = {}
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for _ in range(self.processes):
                connection = stack.enter_context(self.listener.accept()[0])
                of_rank[struct.unpack("i", self._get(connection, 4))[0]] = connection
            while True:  # until one closes: then the others are closed too
                said = b""
                for rank in sorted(of_rank):
                    length = self._get(of_rank[rank], 8)
                    said += length + self._get(of_rank[rank], *struct.unpack("Q", length))
                for connection in of_rank.values():
                    connection.sendall(said)
                self.rounds += 1
                if self.rounds == self.pause_after:
                    self.paused.set()
                    self.go.wait()

    def close(self) -> None:
        self.go.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def started(abi: str, processes: int, hub: Hub, *arguments: object) -> list[subprocess.Popen]:
    all_of_them = []
    for rank in range(processes):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI", "SLURM_"))}
        env |= {RANK[abi]: str(rank), SIZE[abi]: str(processes), "TPROF_MPI": str(FAKES[abi]), "FAKE_MPI": str(hub.path)}
        command = [TPROF, *map(str, arguments)]
        pipe = subprocess.PIPE
        all_of_them.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True))
    return all_of_them


def together(abi: str, processes: int, folder: pathlib.Path, *arguments: object) -> list[tuple[int, str, str]]:
    """Returns exit status, output and errors of each process."""
    hub = Hub(folder, processes)
    try:
        running = started(abi, processes, hub, *arguments)
        said = [process.communicate(timeout=120) for process in running]
    finally:
        hub.close()
    assert hub.rounds > 0
    return [(process.returncode, *text) for process, text in zip(running, said, strict=True)]

"""Processes of the tool that share their work: started by a launcher of MPI, or as if one had started them."""

import collections
import contextlib
import os
import pathlib
import queue
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
    """Passes on what the processes say to each other. With `pause_after` it stops behind so many messages, and says so by
    `paused`, until it is told to go on by `go`."""

    def __init__(self, folder: pathlib.Path, processes: int, pause_after: int = -1):
        self.pause_after = pause_after
        self.paused = threading.Event()
        self.go = threading.Event()
        self.path = folder / "hub"
        self.path.unlink(missing_ok=True)
        self.messages = 0
        self.said = collections.defaultdict(queue.Queue)  # by who says it and to whom
        self.left = set()
        self.closed = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(processes)
        self.threads = [threading.Thread(target=self._serve) for _ in range(processes)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def _get(connection: socket.socket, size: int) -> bytes:
        got = b""
        while len(got) < size:
            part = connection.recv(size - len(got))
            if not part:
                raise ConnectionError
            got += part
        return got

    def _serve(self) -> None:
        with contextlib.suppress(OSError), self.listener.accept()[0] as connection:
            (me,) = struct.unpack("i", self._get(connection, 4))
            try:
                while True:
                    what, peer, size = struct.unpack("QQQ", self._get(connection, 24))
                    if what == ord("s"):
                        self.said[me, peer].put(self._get(connection, size))
                        self._count()
                    else:
                        connection.sendall(self._next(peer, me))
            finally:
                self.left.add(me)

    def _next(self, peer: int, me: int) -> bytes:
        while True:  # what it said comes, even if it has left since
            gone = self.closed or peer in self.left
            with contextlib.suppress(queue.Empty):
                return self.said[peer, me].get(timeout=0.05)
            if gone:
                raise ConnectionError

    def _count(self) -> None:
        self.messages += 1
        if self.messages == self.pause_after:
            self.paused.set()
            self.go.wait()

    def close(self) -> None:
        self.closed = True
        self.go.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()


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
    assert hub.messages > 0
    return [(process.returncode, *text) for process, text in zip(running, said, strict=True)]

"""Ranks of a training script that need no process of their own from the first instruction on: they are forked
from one that has imported PyTorch, which takes 2 to 5 s of CPU and is most of what such a run costs.

The library is preloaded there, too, and has not begun a session: settings are read with the first call, in
the rank. What is about the start of a process (its command line, what is read when a library is loaded,
transparency) is tested on processes that are started: see can_run().
"""

import atexit
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__)
# Variables that are read before a rank has a say, or that change how a process starts.
AT_START = ("LD_", "PYTHON", "KINETO_", "TPROF_CALLSITE", "TPROF_DLSYM", "TPROF_DRIVER", "TPROF_DISABLE")


class Ranks(list):
    """The command that starts these ranks; it says what a forked process needs to be them."""

    def __init__(self, command: list, script: pathlib.Path, args: tuple, ranks: list[dict[str, str]]):
        super().__init__(command)
        self.script, self.args, self.ranks = script, args, ranks


def can_run(command: list, env: dict[str, str], plain: dict[str, str]) -> bool:
    """`plain`: the environment of a run with nothing asked for."""
    more = {name for name in env.keys() | plain.keys() if env.get(name) != plain.get(name)}
    cupti = env.get("TPROF_TIMING", "").startswith("cupti")
    return isinstance(command, Ranks) and not cupti and not any(name.startswith(AT_START) for name in more)


@dataclasses.dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str


class Server:
    def __init__(self, env: dict[str, str]):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-u", str(HERE), str(theirs.fileno())]
        # Once more, what is only known to a rank.
        env = {name: value for name, value in env.items() if not name.startswith(("TPROF_", "STANDIN_"))}
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        self.socket = ours
        self.base = env
        atexit.register(ours.close)

    def run(self, command: Ranks, env: dict[str, str], time_limit_s: float) -> Done:
        """As the shell that starts them would end."""
        request = {"script": str(command.script), "args": list(map(str, command.args)), "cwd": os.getcwd()}
        request["ranks"] = [env | rank for rank in command.ranks]
        pipes = [os.pipe() for _ in range(3)]
        with contextlib.ExitStack() as open_ends:
            outputs = [open_ends.enter_context(os.fdopen(read, "rb", buffering=0)) for read, _ in pipes]
            folder = pathlib.Path(env["STANDIN_TALLY"]).parent
            (folder / ".request").write_text(json.dumps(request))
            socket.send_fds(self.socket, [str(folder / ".request").encode()], [write for _, write in pipes])
            for _, write in pipes:
                os.close(write)
            texts, late = collected(outputs, time_limit_s)
        (folder / ".request").unlink(missing_ok=True)
        words = texts[2].split()
        code = int(words[1]) if len(words) == 2 else 124
        note = f"\n(ended after {time_limit_s} s)" if late else ""
        return Done(code, texts[0], texts[1] + note)


def collected(outputs: list, time_limit_s: float) -> tuple[list[str], bool]:
    """All that is written until all ends are closed; beyond the limit their writers are killed."""
    deadline = time.monotonic() + time_limit_s
    parts: dict = {output: [] for output in outputs}
    reading, late = list(outputs), False
    while reading:
        ready, _, _ = select.select(reading, [], [], max(0.0, deadline - time.monotonic()))
        if not ready and not late:
            late, deadline = True, deadline + 60
            said = b"".join(parts[outputs[2]]).split()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(said[0]), signal.SIGKILL)
        elif not ready:
            break
        for output in ready:
            part = os.read(output.fileno(), 1 << 16)
            parts[output].append(part)
            if not part:
                reading.remove(output)
    return [b"".join(parts[output]).decode(errors="replace") for output in outputs], late


_servers: dict[bool, Server] = {}


def run(command: Ranks, env: dict[str, str], plain: dict[str, str], time_limit_s: float) -> Done:
    preloaded = "LD_PRELOAD" in env
    if preloaded not in _servers:
        _servers[preloaded] = Server(plain)
    return _servers[preloaded].run(command, env, time_limit_s)


# ---- The other side.


def serve(number: int) -> dict | None:
    """Imports, then forks for each request. Gives what to do in a rank; nothing: all is done."""
    import torch._dynamo
    import torch.distributed.fsdp
    import torch.distributed.pipelining
    import torch.distributed.tensor.parallel
    import torch.nn.parallel

    assert not torch.cuda.is_initialized() and len(os.listdir("/proc/self/task")) == 1
    import gc

    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the runs' own processes
    with socket.socket(fileno=number) as asked:
        while True:
            path, (stdout, stderr, said), _, _ = socket.recv_fds(asked, 4096, 3)
            if not path:
                return None
            if os.fork():
                for fd in (stdout, stderr, said):
                    os.close(fd)
                continue
            break
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.write(said, f"{os.getpid()} ".encode())
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    request = json.loads(pathlib.Path(path.decode()).read_text())
    pids = []
    for env in request["ranks"]:
        pid = os.fork()
        if pid == 0:
            os.close(said)
            return request | {"env": env}
        pids.append(pid)
    code = 0
    for pid in pids:  # as a shell tells it
        _, status = os.waitpid(pid, 0)
        if status:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    os.write(said, str(code).encode())
    os._exit(0)


def main() -> None:
    import runpy

    request = serve(int(sys.argv[1]))
    if request is None:
        return
    for name in os.environ.keys() - request["env"].keys():
        del os.environ[name]
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [request["script"], *request["args"]]
    sys.path[0] = str(pathlib.Path(request["script"]).parent)
    runpy.run_path(request["script"], run_name="__main__")


if __name__ == "__main__":
    main()

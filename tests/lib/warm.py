"""Runs ranks of a training script that need no process of their own from the first instruction on. They are
forked from a process that has imported PyTorch: that takes 2 to 5 s of CPU, most of what such a run costs.

The library is preloaded there, too, but has not begun a session: it reads its settings with the first call,
in the rank. Tests about the start of a process use processes that are started. They are about its command
line, what is read when a library is loaded, and transparency: see can_run().
"""

import contextlib
import gc
import importlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__)
LONGEST_REQUEST = 1 << 17  # bytes: an environment and a few words
# Variables that are read before a rank has a say, or that change how a process starts.
AT_START = ("LD_", "PYTHON", "KINETO_", "TPROF_CALLSITE", "TPROF_DLSYM", "TPROF_DRIVER", "TPROF_DISABLE")


TORCH = (
    "torch._dynamo", "torch.distributed.fsdp", "torch.distributed.pipelining", "torch.distributed.tensor.parallel",
    "torch.nn.parallel",
)  # fmt: skip


class Ranks(list):
    """The command that starts these ranks, and what a forked process needs in order to be one of them."""

    together = False  # as with torchrun, the others get SIGTERM when one fails

    def __init__(self, command: list, script: pathlib.Path, args: tuple, ranks: list[dict[str, str]]):
        super().__init__(command)
        self.script, self.args, self.ranks = script, args, ranks


def can_run(env: dict[str, str], plain: dict[str, str]) -> bool:
    """Returns whether forked ranks will do. `plain`: the environment of a run with nothing asked for."""
    more = {name for name in env.keys() | plain.keys() if env.get(name) != plain.get(name)}
    cupti = env.get("TPROF_TIMING", "").startswith("cupti")
    return not cupti and not any(name.startswith(AT_START) for name in more)


def connected(name: str, modules: tuple[str, ...], env: dict[str, str]) -> socket.socket:
    """Returns a socket to the process that forks such ranks. All workers share it: who comes first starts it, and it
    ends when nobody holds a socket to it any more."""
    address = f"\0tprof-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}-{name}"
    while True:
        ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.suppress(ConnectionRefusedError):
            ours.connect(address)
            return ours
        ours.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, contextlib.suppress(OSError):
            listening.bind(address)  # fails where another worker has just done so
            listening.listen(64)
            command = [sys.executable, "-u", str(HERE), str(listening.fileno()), *modules]
            # Only the ranks may see these variables.
            env = {name: value for name, value in env.items() if not name.startswith(("TPROF_", "STANDIN_"))}
            subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, pass_fds=[listening.fileno()])


def asked(to: socket.socket, command: Ranks, env: dict[str, str], time_limit_s: float) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error, as from the shell that starts these ranks."""
    request = {"script": str(command.script), "args": list(map(str, command.args)), "cwd": os.getcwd()}
    request |= {"env": env, "ranks": command.ranks, "together": command.together}
    pipes = [os.pipe() for _ in range(3)]
    with contextlib.ExitStack() as open_ends:
        outputs = [open_ends.enter_context(os.fdopen(read, "rb", buffering=0)) for read, _ in pipes]
        socket.send_fds(to, [json.dumps(request).encode()], [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        (stdout, stderr, said), late = collected(outputs, time_limit_s)
    words = said.split()
    code = int(words[1]) if len(words) == 2 else 124
    return code, stdout, stderr + (f"\n(ended after {time_limit_s} s)" if late else "")


def collected(outputs: list, time_limit_s: float) -> tuple[list[str], bool]:
    """Returns all that is written until all ends are closed; beyond the limit the writers are killed."""
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


_sockets: dict[str, socket.socket] = {}


def run(command: Ranks, env: dict[str, str], plain: dict[str, str], time_limit_s: float) -> tuple[int, str, str]:
    deepspeed = any(word.startswith(("zero", "deepspeed")) for word in (command.script.name, *map(str, command.args)))
    name = f"{'traced' if 'LD_PRELOAD' in env else 'plain'}{'-deepspeed' if deepspeed else ''}"
    if name not in _sockets:
        _sockets[name] = connected(name, (*TORCH, "deepspeed") if deepspeed else TORCH, plain)
    return asked(_sockets[name], command, env, time_limit_s)


# ---- The process that forks.


def serve(number: int, modules: list[str]) -> dict | None:
    """Imports the modules, then forks for each request. Returns the request in a rank, and None when all is done."""
    os.environ.setdefault("DS_ACCELERATOR", "cuda")  # read when deepspeed is imported
    torch = importlib.import_module("torch")
    for module in modules:
        importlib.import_module(module)
    assert not torch.cuda.is_initialized() and len(os.listdir("/proc/self/task")) == 1
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the runs' own processes
    sockets = [socket.socket(fileno=number)]
    while True:
        asks = select.select(sockets, [], [])[0][0]
        if asks is sockets[0]:
            sockets.append(asks.accept()[0])
            continue
        text, fds, _, _ = socket.recv_fds(asks, LONGEST_REQUEST, 3)
        if not text:
            sockets.remove(asks)
            if len(sockets) == 1:
                return None
        elif os.fork():
            for fd in fds:
                os.close(fd)
        else:
            break
    for each in sockets:
        each.close()
    stdout, stderr, said = fds
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.write(said, f"{os.getpid()} ".encode())
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    request = json.loads(text)
    pids = []
    for rank in request["ranks"]:
        pid = os.fork()
        if pid == 0:
            os.close(said)
            request["env"] |= rank
            return request
        pids.append(pid)
    code = 0
    while pids:  # the exit code is the one that a shell would give
        pid, status = os.waitpid(-1, 0)
        pids.remove(pid)
        if status:
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        if status and request["together"]:
            for other in pids:
                os.kill(other, signal.SIGTERM)
    os.write(said, str(code).encode())
    os._exit(0)


def main() -> None:
    request = serve(int(sys.argv[1]), sys.argv[2:])
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

"""FSDP2 that looks at itself when it has trained: a tracer must not change what it finds."""

import ctypes
import os
import pathlib
import resource
import signal
import subprocess

import torch
import torch.distributed as dist
from common import Mlp, batches, log, sharded, start, train_step

FIELDS = ("SigBlk", "SigPnd", "Cpus_allowed_list")


def status(folder: pathlib.Path) -> dict[str, str]:
    lines = (folder / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def threads() -> list[str]:
    """Returns the name, blocked and pending signals, cores, nice value and policy of each thread."""
    found = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        about, tid = status(task), int(task.name)
        nice, policy = os.getpriority(os.PRIO_PROCESS, tid), os.sched_getscheduler(tid)
        fields = " ".join(about[name] for name in FIELDS)
        found.append(f"{about['Name']} {fields} nice {nice} policy {policy}")
    return sorted(found)


def files() -> list[str]:
    found = []
    for link in pathlib.Path("/proc/self/fd").iterdir():
        try:
            on_exec = "kept" if os.get_inheritable(int(link.name)) else "closed"
            found.append(f"{on_exec} {link.readlink()}")
        except OSError:
            continue  # the descriptor of the listing itself
    return sorted(found)


def active_contexts() -> list[int]:
    driver = ctypes.CDLL("libcuda.so.1")
    flags, active = ctypes.c_uint(), ctypes.c_int()
    found = []
    for device in range(torch.cuda.device_count()):
        driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        found.append(active.value)
    return found


def own_state() -> dict[str, list]:
    about = status(pathlib.Path("/proc/self"))
    cudart = ctypes.CDLL("libcudart.so.13")
    stream, number = ctypes.c_void_p(), ctypes.c_ulonglong()
    last_error = cudart.cudaPeekAtLastError()
    cudart.cudaStreamCreate(ctypes.byref(stream))
    cudart.cudaStreamGetId(stream, ctypes.byref(number))
    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    mask = os.umask(0)
    os.umask(mask)
    child = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return {
        "thread": threads(),
        "file": files(),
        "signals": [about[name] for name in ("SigIgn", "SigCgt", "ShdPnd")],
        "handler": [str(h) for h in handlers if not isinstance(h, signal.Handlers)],
        "last error": [last_error],
        "number of the next stream": [number.value],
        "contexts": [active_contexts()],
        "folder": [os.getcwd()],
        "umask": [mask],
        "limit": [resource.getrlimit(which) for which in range(16)],
        "variable": sorted(f"{name}={value}" for name, value in os.environ.items()),
        "child's variable": sorted(child.splitlines()),
    }


device = start()
model = sharded(Mlp().cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in batches(64, 5):
    train_step(model, optimizer, batch, device)
torch.cuda.synchronize()
dist.barrier()
for what, values in own_state().items():
    for value in values:
        log(f"{what}: {value}")
used = resource.getrusage(resource.RUSAGE_SELF)
resident = status(pathlib.Path("/proc/self"))["VmRSS"].split()[0]
switches = used.ru_nvcsw + used.ru_nivcsw
log(f"used: resident_kb {resident} faults {used.ru_minflt} switches {switches}")
dist.barrier()
dist.destroy_process_group()

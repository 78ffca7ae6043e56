"""Programs that run with device times, and what ran on the stand-in's devices by its own schedule."""

import collections

from lib import device_truth
from lib.build import BUILD
from lib.launch import start

LATENCY_US = 1000
STEPS = 10
RANKS = 2


def traced(command, folder, timing, code=0, **settings):
    schedule = folder / "schedule"
    schedule.mkdir(parents=True)
    run = start(command, folder, **{"STANDIN_SCHEDULE": str(schedule), "TPROF_TIMING": timing, **settings})
    assert run.code == code, run.stderr
    return run


def trainer(folder, timing, code=0, **settings):
    command = [BUILD / "native_trainer", "--ranks", RANKS, "--steps", STEPS]
    return traced(command, folder, timing, code, **{"STANDIN_LATENCY_US": str(LATENCY_US), **settings})


def ran(folder, file):
    """Returns what ran on the devices, by name: (began, ended) in ns, on the axis of the rank file."""
    base, table = file.header["monotonic_ns"], collections.defaultdict(list)
    for work in device_truth.ran_of(folder, file):
        table[work.what].append((work.began - base, work.ended - base))
    return table


def device_lines(file):
    return [line for line in file.lines if line.get("cat") == "DEVICE"]

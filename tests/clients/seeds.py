"""Runs FSDP's checkpoint or DeepSpeed's ZeRO-3 with tprof's profiler class in the place of their own. Theirs stands
around ours and within it, at the same call sites: each figure of ours has to lie between.

    seeds.py fsdp|deepspeed

Prints what each had when its owner reset it: {name: [within, ours, around]}, or for DeepSpeed
{name: {"count": [ours, theirs], "elements": […], "host_ns": ours, "device_ms": [within, around], "said": what ours
logged before as its time on the device}}.
"""

import collections
import contextlib
import io
import json
import logging
import os
import pathlib
import runpy
import sys

from common import log

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "interpose/user"))
import tprof  # noqa: E402

said = io.StringIO()
logging.getLogger("tprof").addHandler(logging.StreamHandler(said))
logging.getLogger("tprof").setLevel(logging.INFO)
forgotten = []
profilers = []  # their last figures are reset at the end


def fsdp():
    from torch.distributed.fsdp import _debug_utils, _optim_utils, _state_dict_utils

    around = _debug_utils.SimpleProfiler

    class Within(around):
        results, profiling = collections.defaultdict(float), set()
        profile = around.__dict__["profile"]  # not the counting one that the client puts in later

    class Both(tprof.SimpleProfiler):
        results, profiling = collections.defaultdict(float), set()

        @classmethod
        def reset(cls):
            super().reset()
            around.reset()
            Within.reset()

        @classmethod
        @contextlib.contextmanager
        def profile(cls, kind):
            with around.profile(kind), super().profile(kind), Within.profile(kind):
                yield

        @classmethod
        def dump_and_reset(cls, msg):
            names = {getattr(kind, "value", kind): kind for kind in around.results}
            assert set(names) == set(cls.results)
            forgotten.append(
                {name: [Within.results[kind], cls.results[name], around.results[kind]] for name, kind in names.items()}
            )
            super().dump_and_reset(msg)

    _optim_utils.SimpleProfiler = _state_dict_utils.SimpleProfiler = Both


def deepspeed():
    os.environ.setdefault("DS_ACCELERATOR", "cuda")
    from deepspeed.runtime.zero import partitioned_param_profiler
    from deepspeed.utils.timer import SynchronizedWallClockTimer

    theirs = partitioned_param_profiler.PartitionedParameterProfiler

    class Both(theirs):
        def __init__(self, timers):
            super().__init__(SynchronizedWallClockTimer())
            self.ours = tprof.PartitionedParameterProfiler(timers)
            self.within = SynchronizedWallClockTimer()
            self.said = {}
            profilers.append(self)

        def start_event(self, name):
            super().start_event(name)
            self.ours.start_event(name)
            self.within(name).start()

        def stop_event(self, name, num_elem):
            self.within(name).stop()
            self.ours.stop_event(name, num_elem)
            super().stop_event(name, num_elem)

        def log_events(self):
            before = len(said.getvalue())
            self.ours.log_events()
            lines = said.getvalue()[before:].splitlines()
            times = [part for line in lines if line.startswith("device time (ms)") for part in line.split(" | ")[1:]]
            self.said = dict(part.split(": ") for part in times)

        def reset_events(self):
            told = {}
            for name, theirs_ in self.event_counters.items():
                ours = self.ours.event_counters[name]
                told[name] = {
                    "count": [ours.count, theirs_.count],
                    "elements": [ours.num_elem, theirs_.num_elem],
                    "host_ns": ours.total_ns,
                    "device_ms": [t(name).elapsed() if theirs_.count else 0 for t in (self.within, self.timers)],
                    "said": self.said.get(name),
                }
            self.said = {}
            forgotten.append(told)
            super().reset_events()
            self.ours.reset_events()

    partitioned_param_profiler.PartitionedParameterProfiler = Both


what = sys.argv[1]
{"fsdp": fsdp, "deepspeed": deepspeed}[what]()
sys.argv = sys.argv[1:]
runpy.run_path(str(HERE / {"fsdp": "fsdp1_checkpoint.py", "deepspeed": "zero3.py"}[what]), run_name="__main__")
for profiler in profilers:
    profiler.reset_events()
log(f"seeds: {json.dumps(forgotten)}")
log(f"logged: {json.dumps(said.getvalue())}")

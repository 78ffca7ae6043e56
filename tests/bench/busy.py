"""Tells how much of the machine others used while we measured."""

import dataclasses
import os
import pathlib
import time

# In processors. The kernel's own threads take some, to write back what we wrote.
QUIET = 0.5


@dataclasses.dataclass(frozen=True)
class Used:
    """Seconds, each since some fixed start."""

    wall: float
    machine: float  # processor time of all processes
    ours: float  # our share of it, including children that have ended

    @classmethod
    def now(cls) -> "Used":
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(
            int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
        )
        ticks = user + nice + system + irq + softirq + steal
        return cls(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4]))

    def others_since(self, before: "Used") -> float:
        """Processors that others kept busy in between."""
        spent = (self.machine - before.machine) - (self.ours - before.ours)
        return max(0.0, spent / (self.wall - before.wall))

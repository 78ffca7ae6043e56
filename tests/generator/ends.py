"""Jobs that did not run to their end: all of their ranks are killed, at work or when they had long stood still."""

from __future__ import annotations

from generator.habits import Case
from generator.loop import MS, Loop

S = 1000 * MS
# Its hosts read a value before the second communicator's call, so none runs ahead of it.
TWO_GROUPS = Loop(
    ranks=4, steps=20, layers=4, layer_ns=MS, params=1_000_000, metrics=True, clip=True, gpu={0: 1.5}
)
# Rank 1 is in an all-gather that the others do not call, and they wait for it in an all-reduce.
DEADLOCK = TWO_GROUPS.but(alone=(1, 17))


def given_up(case: Case, after_ns: int) -> Case:
    """Somebody ends the job so long after its last host got no further."""
    return _killed(case, max(trace.end for trace in case.traces.values()) + after_ns)


def killed_at(case: Case, at: int) -> Case:
    """Leaves of the job what it had done at this time."""
    for trace in case.traces.values():
        trace.calls = [call for call in trace.calls if call.host_end <= at]
        for call in trace.calls:
            if call.device_end is not None and call.device_end > at:
                call.device_begin = call.device_end = None
        trace.steps = [step for step in trace.steps if step.begin <= at]
        for name in ("busy", "dry", "waits"):
            setattr(trace, name, [(begin, end) for begin, end in getattr(trace, name) if end <= at])
    return _killed(case, at)


def _killed(case: Case, at: int) -> Case:
    case.killed = True
    for trace in case.traces.values():
        trace.end, trace.finished = at, False
    return case

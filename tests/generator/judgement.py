"""Judges what a report says of a job of habits.py, by the simulation without what was planted."""

from __future__ import annotations

import dataclasses

from generator.habits import Case, gain, measured, seconds
from generator.loop import MS, Loop
from generator.rank_files import Settings

# The job would have these fields without what a finding of a kind is about, unless it says so itself.
WITHOUT = {
    "uneven_ranks": {"even": True, "pauses_ns": 0},
    "late_prefetch": {"prefetch": True},
    "gathers_behind": {"norm_every": 0},
    "exposed_gathers": {"metric": 0},
    "late_reductions": {"overlap": True, "bucket_bytes": 4_000_000},
    "idle_devices": {
        "loader": {}, "load_ns": 0, "python_ns": 0, "norm_python_ns": 0, "leak_ns": 0, "item_every": 0, "clip": False,
        "pageable": 0, "offload": False,
    },  # a host that is never late
    "blocking_h2d": {"pageable": 0, "pageable_each": False, "batch_memory": "pinned", "batch_bytes": 2_000_000},
    "blocking_d2h": {"clip": False, "item_each": False},
    "exposed_copies": {"offload": False, "batch_bytes": 1},
    "gathered_again": {"reshard": False},
    "reduced_again": {"reduce_each": False},
    "wide_dtype": {"dtype": "bfloat16", "metric_dtype": "bfloat16"},
    "long_steps": {"eval_every": 0, "checkpoint_every": 0, "loader": {}, "pauses_ns": 0, "gpu": {}},
    "periodic_steps": {"eval_every": 0, "checkpoint_every": 0, "loader": {}, "gpu": {}},
    "jumping_steps": {"jump": (0, 1.0)},
    "drifting_steps": {"leak_ns": 0, "leak_gpu": 0.0},
}
# Fields of a loop that a kind is about, where more than one thing is planted.
FAULTS = {
    "slow_gpu": ("gpu", "update"),
    "slow_input": ("loader", "logs", "augment"),
    "slow_cpu": ("cpu", "stalls"),
    "slow_link": ("links",),
    "slow_copies": ("pcie",),
}
BLAMING = ("slow_gpu", "slow_input", "slow_cpu", "slow_copies", "slow_link")
HAS_TO_BE_SAID = 0.03  # of a step
MAY_BE_SAID = 0.02
ESTIMATES = ("slow_link", "wide_dtype", "reduced_again", "gathered_again", "late_prefetch", "late_reductions")
# Nobody knows of some time whether a device stood idle: half of it counts, and no more is said.
AT_LEAST = ("idle_devices",)


@dataclasses.dataclass(frozen=True)
class Job:
    loop: Loop
    expected: tuple[str, ...] = ()  # one of these kinds has to be found
    ranks: frozenset[int] = frozenset()  # and if it blames ranks, these
    planted: dict = dataclasses.field(default_factory=dict)  # the fields of the loop without it
    settings: Settings = Settings(unsure=True)


def job_of(loop: Loop, expected: str = "", ranks=(), settings: Settings = Settings(unsure=True), **planted):
    blamed = frozenset(ranks)
    return Job(loop, tuple(expected.split()), blamed, planted, settings)


def ranks_of(text: str) -> list[int]:
    """Returns the ranks of "0-3,7"."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def blames_well(job: Job, kind: str, ranks: frozenset[int]) -> bool:
    if kind == "slow_link":
        return job.ranks <= ranks and len(ranks) // job.loop.ranks <= len(job.ranks) // job.loop.ranks  # not all
    if kind not in BLAMING:
        return True
    mine = [set(getattr(job.loop, field)) for field in FAULTS[kind]]
    return ranks == (frozenset(set().union(*mine)) if any(mine) and len(job.planted) > 1 else job.ranks)


def judge(job: Job, case: Case, findings: list[dict]) -> list[str]:
    """Returns what is wrong with the findings, in sentences."""
    total = seconds(case.traces)
    step, wrong, found = total / job.loop.steps, [], False
    truth = (total - measured(job.loop.but(**job.planted))) / job.loop.steps if job.planted else 0.0
    for f in findings:
        if "cost" not in f:
            continue
        kind, claimed, ranks = f["kind"], f["cost"]["ns_per_step"], frozenset(ranks_of(f["ranks"]))
        says = f"{kind} {f['ranks']} says {claimed / MS:.2f} ms"
        if abs(f["cost"]["share"] - claimed / step) > max(0.03, 0.1 * claimed / step):
            wrong.append(f"{says}, which is {100 * claimed / step:.0f} % and not {100 * f['cost']['share']:.0f} %")
        if kind in job.expected and blames_well(job, kind, ranks):
            true, found = truth, True
            of_kind = {field: none for field, none in job.planted.items() if field in FAULTS.get(kind, ())}
            if of_kind and of_kind != job.planted:
                # Time that another rank's fault hides is to be had when that one is mended, too.
                others = {field: none for field, none in job.planted.items() if field not in of_kind}
                either = (gain(job.loop, **of_kind), gain(job.loop.but(**others), **of_kind))
                true = min(either, key=lambda ns: abs(ns - claimed))
        elif kind == "slow_cpu" and f.get("in_steps") and job.loop.checkpoint == "first" and ranks == {0}:
            true = gain(job.loop, checkpoint_every=0)
        elif kind in BLAMING:
            wrong.append(f"{says}, and nothing of the kind is there")
            continue
        elif kind in WITHOUT:
            # Ranks that were told before are as fast as the others then.
            either = [gain(loop, **WITHOUT[kind]) for loop in (job.loop, job.loop.but(**job.planted))]
            true = min(either, key=lambda ns: abs(ns - claimed))
        else:
            continue
        doubt = min(f["cost"].get("doubt_ns", 0) / job.loop.steps, claimed)
        slack = max(MAY_BE_SAID * step, (0.4 if kind in ESTIMATES else 0.25) * true, doubt + 0.05 * true)
        if claimed - true > slack or (true - claimed > slack and kind not in ESTIMATES + AT_LEAST):
            wrong.append(f"{says}, the truth is {true / MS:.2f} of {step / MS:.2f}")
    if job.expected and truth > HAS_TO_BE_SAID * step and not found:
        wrong.append(f"no {' or '.join(job.expected)} of {sorted(job.ranks)}, {truth / MS:.2f} of {step / MS:.2f} ms")
    return wrong

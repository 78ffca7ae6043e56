"""Jobs with one planted cause, or none, and the truth about each.

The cost of a cause is never computed by a formula: the same job is simulated with and without it,
with the same seed, and the difference of their steps is the truth.
"""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable

from generator.layouts import LAYOUTS, Layout, Model
from generator.operations import Collective, Host, Operation
from generator.simulate import Machine, RankTrace, simulate


@dataclasses.dataclass
class Plan:
    """A job before it runs."""

    layout: str
    ranks: int
    model: Model
    machine: Machine
    seed: int
    # Changes one rank's program: (rank, operations) -> operations.
    edit: Callable[[int, list[Operation]], list[Operation]] | None = None

    def lay_out(self) -> Layout:
        return LAYOUTS[self.layout](self.model, self.ranks)

    def run(self) -> tuple[Layout, dict[int, RankTrace]]:
        layout = self.lay_out()
        programs = layout.programs
        if self.edit is not None:
            programs = {r: self.edit(r, ops) for r, ops in programs.items()}
        return layout, simulate(programs, layout.comms, self.machine, self.seed)


@dataclasses.dataclass
class Truth:
    """The finding that a diagnosis has to make: none where `cause` is None."""

    cause: str | None
    ranks: list[int] = dataclasses.field(default_factory=list)  # to blame; []: all alike
    hosts: list[int] = dataclasses.field(default_factory=list)
    steps: list[int] | None = None  # None: all
    comm: str | None = None
    function: str | None = None
    cost_ns_per_step: float | None = None  # None: the job did not end, or nothing is planted


@dataclasses.dataclass
class Case:
    layout: Layout
    machine: Machine
    traces: dict[int, RankTrace]
    truth: Truth
    killed: bool = False  # by SIGKILL, all of them
    missing: list[int] = dataclasses.field(default_factory=list)  # without a file
    quota: int | None = None  # lines a rank


def steps_ns(traces: dict[int, RankTrace], skip: int = 1) -> float:
    """Returns the mean length of a step over all ranks, without the first `skip` steps."""
    lengths = [
        (trace.end - trace.steps[skip].begin) / (len(trace.steps) - skip)
        for trace in traces.values()
    ]
    return sum(lengths) / len(lengths)


def _slow_gpu(plan: Plan, rng: random.Random) -> Truth:
    rank = rng.randrange(plan.ranks)
    plan.machine.gpu_factor[rank] = rng.uniform(1.15, 1.6)
    return Truth("slow_rank", [rank])


def _slow_rank_sometimes(plan: Plan, rng: random.Random) -> Truth:
    rank = rng.randrange(plan.ranks)
    steps = sorted(rng.sample(range(1, plan.model.steps), max(1, plan.model.steps // 3)))
    stall = round(plan.model.forward_ns * plan.model.layers * rng.uniform(0.4, 1.0))

    def edit(r: int, ops: list[Operation]) -> list[Operation]:
        if r != rank:
            return ops
        out: list[Operation] = []
        for op in ops:
            out.append(op)
            if getattr(op, "number", None) in steps:
                out.append(Host(stall))
        return out

    plan.edit = edit
    return Truth("slow_rank", [rank], steps=steps)


def _slow_host(plan: Plan, rng: random.Random) -> Truth:
    host = rng.randrange(max(1, plan.ranks // plan.machine.ranks_per_host))
    members = [r for r in range(plan.ranks) if plan.machine.host_of(r) == host]
    for rank in members:
        plan.machine.gpu_factor[rank] = 1.3
    return Truth("slow_host", members, [host])


def _slow_link(plan: Plan, rng: random.Random) -> Truth:
    rank = rng.randrange(plan.ranks)
    plan.machine.link_factor[rank] = rng.uniform(0.15, 0.4)
    return Truth("slow_link", [rank], [plan.machine.host_of(rank)])


def _slow_loader(plan: Plan, rng: random.Random) -> Truth:
    ranks = sorted(rng.sample(range(plan.ranks), rng.choice([1, 1, 2])))
    extra = round(plan.model.forward_ns * plan.model.layers * rng.uniform(0.3, 1.0))
    plan.model = dataclasses.replace(plan.model, load_extra_ns={r: extra for r in ranks})
    return Truth("slow_loader", ranks)


def _mistake(cause: str, **fields) -> Callable[[Plan, random.Random], Truth]:
    """A mistake of the program, alike on all ranks."""

    def apply(plan: Plan, rng: random.Random) -> Truth:
        plan.model = dataclasses.replace(plan.model, **fields)
        return Truth(cause)

    return apply


def _place(plan: Plan, rng: random.Random, rank: int) -> int:
    """Returns the index of a collective of `rank` in the middle of the job."""
    ops = plan.lay_out().programs[rank]
    found = [
        i for i, op in enumerate(ops)
        if isinstance(op, Collective) and op.function not in ("ncclSend", "ncclRecv")
    ]  # fmt: skip
    return rng.choice(found[len(found) // 3 : -2])


def _diverge(plan: Plan, rng: random.Random) -> Truth:
    rank = rng.randrange(plan.ranks)
    at = _place(plan, rng, rank)
    there = plan.lay_out().programs[rank][at]

    def edit(r: int, ops: list[Operation]) -> list[Operation]:
        if r != rank:
            return ops
        return [*ops[:at], dataclasses.replace(there, count=there.count + 16), *ops[at + 1 :]]

    plan.edit = edit
    return Truth("mismatch", [rank], comm=there.comm, function=there.function)


def _stops(cause: str) -> Callable[[Plan, random.Random], Truth]:
    """One rank does not come to a collective: it hangs in its own code, or is killed."""

    def apply(plan: Plan, rng: random.Random) -> Truth:
        rank = rng.randrange(plan.ranks)
        at = _place(plan, rng, rank)
        there = plan.lay_out().programs[rank][at]
        plan.edit = lambda r, ops: ops[:at] if r == rank else ops
        return Truth(cause, [rank], comm=there.comm, function=there.function)

    return apply


def _nothing_but(cause: str) -> Callable[[Plan, random.Random], Truth]:
    """The job is healthy, and its files are not."""
    return lambda plan, rng: Truth(cause, [rng.randrange(plan.ranks)])


CAUSES: dict[str, Callable[[Plan, random.Random], Truth]] = {
    "slow_gpu": _slow_gpu,
    "slow_sometimes": _slow_rank_sometimes,
    "slow_host": _slow_host,
    "slow_link": _slow_link,
    "slow_loader": _slow_loader,
    "late_prefetch": _mistake("late_prefetch", prefetch=False),
    "gathers_behind": _mistake("gathers_behind", gathers_behind=4),
    "pageable_copies": _mistake("pageable_copies", pageable_each_layer=True),
    "item_each_layer": _mistake("sync_each_layer", item_each_layer=True),
    "gather_twice": _mistake("gather_twice", reshard_after_forward=True),
    "reduce_each_micro_batch": _mistake("reduce_each_micro_batch", reduce_each_micro_batch=True),
    "fp32": _mistake("wide_dtype", dtype="float32"),
    "divergence": _diverge,
    "hang": _stops("hang"),
    "killed": _stops("killed"),
    "missing": _nothing_but("missing"),
    "quota": _nothing_but("quota"),
}
# Fields of the job without the mistake, where healthy jobs are of either kind.
WITHOUT = {
    "gather_twice": {"reshard_after_forward": False},
    "reduce_each_micro_batch": {"reduce_each_micro_batch": False, "micro_batches": 4},
}
SHARDED = ("fsdp", "hsdp", "fsdp_tp", "zero3_offload")
ONLY_IN = dict.fromkeys(
    ("late_prefetch", "gathers_behind", "gather_twice", "reduce_each_micro_batch"), SHARDED
)
ENDLESS = ("divergence", "hang", "killed")
GIVEN_UP_NS = 60_000_000_000  # whoever watches the job ends it so long after it stands still


def healthy(layout: str, ranks: int, seed: int, steps: int = 6) -> Plan:
    """A job without a fault, drawn from `seed`: sizes, jitter and habits vary as real jobs' do."""
    rng = random.Random(f"healthy {layout} {ranks} {seed}")
    model = Model(
        layers=rng.choice([4, 8, 12]),
        params=rng.choice([5_000_000, 25_000_000, 80_000_000]),
        forward_ns=rng.choice([1_500_000, 3_000_000, 6_000_000]),
        micro_batches=rng.choice([1, 1, 2, 4]),
        load_ns=rng.choice([50_000, 400_000, 2_000_000]),
        steps=steps,
        reshard_after_forward=rng.random() < 0.7,
        reduce_each_micro_batch=rng.random() < 0.5,
        checkpoint_every=rng.choice([0, 0, 3]),
        checkpoint_ns=40_000_000,
    )
    machine = Machine(jitter=rng.choice([0.002, 0.01, 0.03]))
    return Plan(layout, ranks, model, machine, seed)


def case(
    layout: str,
    ranks: int,
    cause: str | None,
    seed: int,
    steps: int = 6,
    changed: dict | None = None,
    again: int | None = None,
) -> Case:
    """Simulates one job. Raises KeyError for an unknown cause or layout.

    `changed`: fields of its model that are to be otherwise, whatever its cause is. With `again` it
    is the job of `seed` on another day: all durations are drawn anew."""
    plan = healthy(layout, ranks, seed, steps)
    if again is not None:
        plan.seed = again
    plan.model = dataclasses.replace(plan.model, **WITHOUT.get(cause, {}))
    without = copy.deepcopy(plan)
    truth = Truth(None)
    if cause is not None:
        truth = CAUSES[cause](plan, random.Random(f"{cause} {layout} {ranks} {seed}"))
    plan.model = dataclasses.replace(plan.model, **(changed or {}))
    layout_, traces = plan.run()
    made = Case(layout_, plan.machine, traces, truth)
    if cause in ENDLESS:
        made.killed = True
        end = max(trace.end for trace in traces.values()) + GIVEN_UP_NS
        for rank, trace in traces.items():
            if cause != "killed" or rank not in truth.ranks:
                trace.end = end
            trace.finished = trace.finished and rank not in truth.ranks  # within a step
    elif cause == "missing":
        made.missing = truth.ranks
    elif cause == "quota":
        made.quota = len(traces[0].calls) // 2
        truth.ranks = list(traces)
    elif cause is not None:
        truth.cost_ns_per_step = steps_ns(traces) - steps_ns(without.run()[1])
    return made

"""Jobs with one planted cause, or none, and the truth about each.

The cost of a cause is never computed by a formula: the same job is simulated with and without it,
with the same seed, and the difference of their steps is the truth.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

from generator.habits import Case, Truth, measured, programs_of, run
from generator.loop import SHAPES, Loop
from generator.operations import Collective, Operation
from generator.simulate import RankTrace

LAYOUTS = SHAPES[:6]
Edit = Callable[[int, list[Operation]], list[Operation]]  # of a rank's program


def steps_ns(traces: dict[int, RankTrace], skip: int = 1) -> float:
    """Returns the mean length of a step over all ranks, without the first `skip` steps."""
    lengths = [(t.end - t.steps[skip].begin) / (len(t.steps) - skip) for t in traces.values()]
    return sum(lengths) / len(lengths)


def _extra(loop: Loop, rng: random.Random, least: float) -> int:
    return round(loop.layer_ns * loop.layers * rng.uniform(least, 1.0))


def _slow_gpu(loop: Loop, rng: random.Random) -> tuple[Loop, Truth]:
    rank = rng.randrange(loop.ranks)
    return loop.but(gpu={rank: rng.uniform(1.15, 1.6)}), Truth("slow_rank", [rank])


def _slow_sometimes(loop: Loop, rng: random.Random) -> tuple[Loop, Truth]:
    rank = rng.randrange(loop.ranks)
    steps = sorted(rng.sample(range(1, loop.steps), max(1, loop.steps // 3)))
    changed = loop.but(loader={rank: _extra(loop, rng, 0.4)}, loader_steps=tuple(steps))
    return changed, Truth("slow_rank", [rank], steps=steps)


def _slow_host(loop: Loop, rng: random.Random) -> tuple[Loop, Truth]:
    host = rng.randrange(max(1, loop.ranks // loop.per_host))
    members = [r for r in range(loop.ranks) if r // loop.per_host == host]
    return loop.but(gpu=dict.fromkeys(members, 1.3)), Truth("slow_host", members, [host])


def _slow_link(loop: Loop, rng: random.Random) -> tuple[Loop, Truth]:
    rank = rng.randrange(loop.ranks)
    return loop.but(links={rank: rng.uniform(0.15, 0.4)}), Truth("slow_link", [rank], [rank // loop.per_host])


def _slow_loader(loop: Loop, rng: random.Random) -> tuple[Loop, Truth]:
    ranks = sorted(rng.sample(range(loop.ranks), rng.choice([1, 1, 2])))
    return loop.but(loader=dict.fromkeys(ranks, _extra(loop, rng, 0.3))), Truth("slow_loader", ranks)


def _mistake(cause: str, **fields) -> Callable:
    """A mistake of the program, alike on all ranks."""
    return lambda loop, rng: (loop.but(**fields), Truth(cause))


CAUSES: dict[str, Callable[[Loop, random.Random], tuple[Loop, Truth]]] = {
    "slow_gpu": _slow_gpu,
    "slow_sometimes": _slow_sometimes,
    "slow_host": _slow_host,
    "slow_link": _slow_link,
    "slow_loader": _slow_loader,
    "late_prefetch": _mistake("late_prefetch", prefetch=False),
    "gathers_behind": _mistake("gathers_behind", norm_every=1),
    "pageable_copies": _mistake("pageable_copies", pageable_each=True),
    "item_each_layer": _mistake("sync_each_layer", item_each=True),
    "gather_twice": _mistake("gather_twice", reshard=True),
    "reduce_each_micro_batch": _mistake("reduce_each_micro_batch", reduce_each=True),
    "fp32": _mistake("wide_dtype", dtype="float32"),
}
ENDLESS = ("divergence", "hang", "killed")  # one rank calls something else, or does not come: it hangs or is killed
ONLY_THE_FILES = ("missing", "quota")  # are not healthy
# Fields of the job without the mistake, where healthy jobs are of either kind.
WITHOUT = {
    "gather_twice": {"reshard": False},
    "reduce_each_micro_batch": {"reduce_each": False, "micro_batches": 4},
}
SHARDED = ("fsdp", "hsdp", "fsdp_tp", "zero3_offload")
ONLY_IN = dict.fromkeys(("late_prefetch", "gathers_behind", "gather_twice", "reduce_each_micro_batch"), SHARDED)
GIVEN_UP_NS = 60_000_000_000  # whoever watches the job ends it so long after it stands still


def healthy(layout: str, ranks: int, seed: int, steps: int = 6) -> Loop:
    """A job without a fault, drawn from `seed`: sizes, jitter and habits vary as real jobs' do."""
    rng = random.Random(f"healthy {layout} {ranks} {seed}")
    return Loop(
        layout, ranks, seed=seed, steps=steps, dtype="bfloat16", reduce_dtype="bfloat16", item_pinned=True,
        layers=rng.choice([4, 8, 12]),
        params=rng.choice([5_000_000, 25_000_000, 80_000_000]),
        layer_ns=rng.choice([1_500_000, 3_000_000, 6_000_000]),
        micro_batches=rng.choice([1, 1, 2, 4]),
        load_ns=rng.choice([50_000, 400_000, 2_000_000]),
        reshard=rng.random() < 0.7,
        reduce_each=rng.random() < 0.5,
        checkpoint_every=rng.choice([0, 0, 3]), checkpoint="pause", checkpoint_ns=40_000_000,
        jitter=rng.choice([0.002, 0.01, 0.03]),
    )  # fmt: skip


def _stopped(cause: str, loop: Loop, rng: random.Random) -> tuple[Truth, Edit]:
    """A rank goes wrong at a collective in the middle of the job."""
    rank = rng.randrange(loop.ranks)
    program = programs_of(loop)[rank]
    calls = [i for i, op in enumerate(program) if isinstance(op, Collective) and op.function not in ("ncclSend", "ncclRecv")]
    at = rng.choice(calls[len(calls) // 3 : -2])
    there = program[at]
    rest = [dataclasses.replace(there, count=there.count + 16), *program[at + 1 :]] if cause == "divergence" else []
    truth = Truth("mismatch" if cause == "divergence" else cause, [rank], comm=there.comm, function=there.function)
    return truth, lambda r, ops: [*ops[:at], *rest] if r == rank else ops


def case(
    layout: str, ranks: int, cause: str | None, seed: int, steps: int = 6, changed: dict | None = None,
    again: int | None = None,
) -> Case:  # fmt: skip
    """Simulates one job. `changed`: fields of its loop that are to be otherwise, whatever its cause is. With `again` it
    is the job of `seed` on another day: all durations are drawn anew."""
    without = healthy(layout, ranks, seed, steps).but(seed=seed if again is None else again, **WITHOUT.get(cause, {}))
    rng = random.Random(f"{cause} {layout} {ranks} {seed}")
    loop, truth, edits = without, Truth(None), {}
    if cause in ENDLESS:
        truth, edits["edit"] = _stopped(cause, without, rng)
    elif cause in ONLY_THE_FILES:
        truth = Truth(cause, [rng.randrange(ranks)])
    elif cause is not None:
        loop, truth = CAUSES[cause](without, rng)
    made = run(loop.but(**(changed or {})), **edits)
    made.truth = truth
    if cause in ENDLESS:
        made.killed = True
        end = max(trace.end for trace in made.traces.values()) + GIVEN_UP_NS
        for rank, trace in made.traces.items():
            if cause != "killed" or rank not in truth.ranks:
                trace.end = end
            trace.finished = trace.finished and rank not in truth.ranks  # within a step
    elif cause == "missing":
        made.missing = truth.ranks
    elif cause == "quota":
        made.quota = len(made.traces[0].calls) // 2
        truth.ranks = list(made.traces)
    elif cause is not None:
        truth.cost_ns_per_step = steps_ns(made.traces) - measured(without, steps_ns)
    return made

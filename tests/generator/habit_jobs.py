"""Jobs of habits.py with what a report has to say of them, and the judgement of what it does say.

    python -m generator.habit_jobs FOLDER [NAME…]

prints for each job what is wrong with the report's findings about it.
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys

from generator.causes import Case
from generator.habits import MS, Loop, gain, run, seconds
from generator.rank_files import Settings, write
from generator.score import ranks_of
from lib.tool import told

# The job would have these fields without what a finding of a kind is about, unless it says so itself.
WITHOUT = {
    "uneven_ranks": {"even": True, "pauses_ns": 0},
    "late_prefetch": {"prefetch": True},
    "gathers_behind": {"norm_every": 0},
    "exposed_gathers": {"metric": 0},
    "late_reductions": {"overlap": True, "bucket_bytes": 4_000_000},
    "idle_devices": {
        "loader": {}, "load_ns": 0, "python_ns": 0, "norm_python_ns": 0, "leak_ns": 0, "item_every": 0, "clip": False,
        "pageable": 0,
    },  # a host that is never late
    "blocking_h2d": {"pageable": 0},
    "blocking_d2h": {"clip": False},
    "gathered_again": {"reshard": False},
    "reduced_again": {"reduce_each": False},
    "wide_dtype": {"dtype": "bfloat16", "metric_dtype": "bfloat16"},
    "long_steps": {"eval_every": 0, "checkpoint_every": 0, "loader": {}, "pauses_ns": 0, "gpu": {}},
    "periodic_steps": {"eval_every": 0, "checkpoint_every": 0, "loader": {}, "gpu": {}},
    "jumping_steps": {"jump": (0, 1.0)},
    "drifting_steps": {"leak_ns": 0, "leak_gpu": 0.0},
}
# Fields of a loop that a kind is about, where more than one thing is planted.
FAULTS = {"slow_gpu": ("gpu",), "slow_input": ("loader", "logs", "augment"), "slow_cpu": ("cpu", "stalls"), "slow_link": ("links",)}
BLAMING = ("slow_gpu", "slow_input", "slow_cpu", "slow_link")
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


def _job(loop: Loop, expected: str = "", ranks=(), settings: Settings = Settings(unsure=True), **planted):
    blamed = frozenset(ranks)
    return Job(loop, tuple(expected.split()), blamed, planted, settings)


def blames_well(job: Job, kind: str, ranks: frozenset[int]) -> bool:
    if kind == "slow_link":
        return job.ranks <= ranks
    if kind not in BLAMING:
        return True
    mine = [set(getattr(job.loop, field)) for field in FAULTS[kind]]
    return ranks == (frozenset(set().union(*mine)) if any(mine) and len(job.planted) > 1 else job.ranks)


def judge(job: Job, case: Case, findings: list[dict]) -> list[str]:
    """Returns what is wrong with the findings, in sentences."""
    total = seconds(case.traces)
    step, wrong, found = total / job.loop.steps, [], False
    truth = (total - seconds(run(job.loop.but(**job.planted)).traces)) / job.loop.steps if job.planted else 0.0
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
        elif kind in BLAMING:
            wrong.append(f"{says}, and nothing of the kind is there")
            continue
        elif kind in WITHOUT:
            true = gain(job.loop, **WITHOUT[kind])
        else:
            continue
        doubt = min(f["cost"].get("doubt_ns", 0) / job.loop.steps, claimed)
        slack = max(MAY_BE_SAID * step, (0.4 if kind in ESTIMATES else 0.25) * true, doubt + 0.05 * true)
        if claimed - true > slack or (true - claimed > slack and kind not in ESTIMATES + AT_LEAST):
            wrong.append(f"{says}, the truth is {true / MS:.2f} of {step / MS:.2f}")
    if job.expected and truth > HAS_TO_BE_SAID * step and not found:
        wrong.append(f"no {' or '.join(job.expected)} of {sorted(job.ranks)}, {truth / MS:.2f} of {step / MS:.2f} ms")
    return wrong


B = {"dtype": "bfloat16"}
HOST_BOUND = Loop("fsdp", **B, kernels=20, layer_ns=100_000, python_ns=20_000, params=1_000_000, steps=6)
PIPELINE = Loop("pipeline", **B, steps=6)
TENSOR = Loop("tensor", 16, 4, **B, steps=6)
NORM = Loop("fsdp", 16, **B, params=25_000_000, norm_every=1)
LONG = Loop(**B, steps=26, layers=4)
TWO = LONG.but(ranks=2, kernels=10, python_ns=450_000, jitter=0.05, gpu={1: 2.0})
# A host that is behind its device's kernels has to wake it for each.
WAKES = Loop(
    "fsdp", ranks=2, per_host=2, layers=3, kernels=25, layer_ns=500_000, python_ns=150_000, wake_ns=100_000,
    params=50_000, sizes_bytes=840, steps=20, item_every=10, jitter=0.05,
)
NO_TIMES, NO_MARKS = Settings(timing=False), Settings(marks=False, unsure=True)

JOBS = {
    # Nothing is wrong, or nobody is to blame.
    "ddp": _job(Loop(**B)),
    "ddp in float32": _job(Loop(ranks=16)),
    "no item": _job(Loop(**B, item_every=0, kernels=20, steps=12)),
    "item every 10th": _job(Loop(**B, item_every=10, kernels=20, steps=20)),
    "accumulation": _job(Loop(**B, micro_batches=4, steps=6)),
    "accumulation, reduced each time": _job(Loop(**B, micro_batches=4, reduce_each=True, steps=6)),
    "fsdp, reduced each time": _job(Loop("fsdp", **B, micro_batches=4, reduce_each=True, params=80_000_000, steps=4)),
    "clipping": _job(Loop(**B, clip=True)),
    "clipping in fsdp": _job(Loop("fsdp", **B, clip=True)),
    "evaluation": _job(LONG.but(eval_every=6), "periodic_steps", eval_every=0),
    "checkpoint of all": _job(LONG.but(checkpoint_every=6), "periodic_steps", checkpoint_every=0),
    "checkpoint of rank 0": _job(
        LONG.but(checkpoint_every=6, checkpoint="first"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "checkpoint, others at a barrier": _job(
        LONG.but(checkpoint_every=6, checkpoint="barrier"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "checkpoint of rank 0, every 2nd": _job(
        LONG.but(checkpoint_every=2, checkpoint="first"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "evaluation in fsdp": _job(LONG.but(shape="fsdp", eval_every=6), "periodic_steps", eval_every=0),
    "evaluation in fsdp, in each step": _job(NORM.but(layers=4, norm_every=0, eval_every=1)),
    "optimizer's state is sharded": _job(Loop(ranks=16, params=80_000_000, **B, zero1=True)),
    "optimizer's state is sharded, sequence parallelism": _job(
        TENSOR.but(params=80_000_000, zero1=True, sequence=True)
    ),
    "marks within the forward pass": _job(
        NORM.but(norm_every=0, params=80_000_000, layer_ns=500_000, mark_within=True)
    ),
    "fsdp, reduced each time, no marks": _job(
        Loop("fsdp", **B, micro_batches=4, reduce_each=True, steps=12), settings=NO_MARKS
    ),
    "marks within the forward pass, weights are kept": _job(
        NORM.but(norm_every=0, params=80_000_000, layer_ns=500_000, reshard=False, mark_within=True)
    ),
    "compilation": _job(Loop(**B, compile_ns=5000 * MS)),
    "lengths 20 %": _job(LONG.but(uneven=0.2), "uneven_ranks", even=True),
    "lengths 40 %": _job(LONG.but(uneven=0.4), "uneven_ranks", even=True),
    "lengths, tensor": _job(TENSOR.but(uneven=0.3, steps=12), "uneven_ranks", even=True),
    "lengths, pipeline": _job(PIPELINE.but(uneven=0.2, steps=12), "uneven_ranks", even=True),
    "pauses": _job(LONG.but(ranks=16, pauses_ns=80 * MS, pauses=0.05), "uneven_ranks", pauses_ns=0),
    "pauses, often": _job(LONG.but(ranks=16, pauses_ns=60 * MS, pauses=0.3), "uneven_ranks", pauses_ns=0),
    "host-bound": _job(HOST_BOUND),
    "host-bound, no prefetch": _job(HOST_BOUND.but(prefetch=False)),
    "host-bound, reduced each time": _job(HOST_BOUND.but(micro_batches=4, reduce_each=True)),
    "small messages": _job(Loop("fsdp", 16, layer_ns=30_000, params=50_000)),
    "tensor": _job(TENSOR),
    "pipeline": _job(PIPELINE),
    "200 short steps": _job(Loop(steps=200, layers=2, layer_ns=800_000, params=500_000)),
    "2 ranks": _job(Loop(**B, ranks=2)),
    "jitter 10 %": _job(Loop(**B, jitter=0.1, steps=12)),
    "64 ranks": _job(Loop(**B, ranks=64, layers=4, steps=4)),
    "loader, every 10th on all": _job(
        LONG.but(loader=dict.fromkeys(range(8), 100 * MS), loader_every=6), "periodic_steps", loader={}
    ),
    "leak of the GPUs": _job(LONG.but(leak_gpu=0.02), "drifting_steps", leak_gpu=0.0),
    "leak of the hosts": _job(LONG.but(leak_ns=MS), "drifting_steps", leak_ns=0),
    "jump": _job(LONG.but(jump=(12, 1.3)), "jumping_steps", jump=(0, 1.0)),
    # One thing is wrong.
    **{
        f"gpu x{factor}, {shape}": _job(Loop(shape, 16, 4, **B, steps=6, gpu={5: factor}), "slow_gpu", [5], gpu={})
        for shape in ("ddp", "fsdp", "tensor")
        for factor in (1.05, 1.2, 3)
    },
    "gpu x1.2, no item": _job(
        Loop(**B, item_every=0, kernels=20, steps=12, gpu={5: 1.2}), "slow_gpu", [5], gpu={}
    ),
    "gpu x1.3, hidden by communication": _job(
        Loop("fsdp", 16, **B, params=150_000_000, steps=4, gpu={5: 1.3}), "slow_gpu", [5], gpu={}
    ),
    "gpu x1.5, lengths 30 %": _job(LONG.but(uneven=0.3, gpu={3: 1.5}), "slow_gpu", [3], gpu={}),
    "gpu x1.5, 2 of 24 steps": _job(
        LONG.but(gpu={3: 2}, gpu_steps=(7, 16)), "slow_gpu", [3], gpu={}
    ),
    "gpu x1.3, second half": _job(
        LONG.but(gpu={3: 1.3}, gpu_steps=tuple(range(12, 24))), "slow_gpu", [3], gpu={}
    ),
    "gpu x1.2 in 200 short steps": _job(
        Loop(steps=200, layers=2, layer_ns=800_000, params=500_000, gpu={6: 1.2}), "slow_gpu", [6], gpu={}
    ),
    "two gpus": _job(Loop(**B, ranks=16, steps=6, gpu={3: 1.2, 12: 1.4}), "slow_gpu", [3, 12], gpu={}),
    "all gpus of a host": _job(
        Loop(**B, ranks=16, steps=6, gpu=dict.fromkeys(range(8, 16), 1.3)), "slow_gpu", range(8, 16), gpu={}
    ),
    **{
        f"gpu x1.3, stage {r // 2}": _job(PIPELINE.but(gpu={r: 1.3}), "slow_gpu", [r], gpu={}) for r in (0, 3, 5, 7)
    },
    "gpu beside a stage with the head": _job(
        PIPELINE.but(ranks=16, micro_batches=8, head=0.3, gpu={6: 1.1}), "slow_gpu", range(12, 16), head=0
    ),
    "gpu and loader of one rank": _job(
        Loop(**B, gpu={3: 1.2}, loader={3: 10 * MS}), "slow_gpu slow_input", [3], gpu={}, loader={}
    ),
    "gpu, and loader of another rank": _job(
        Loop(**B, gpu={3: 1.2}, loader={6: 10 * MS}), "slow_gpu slow_input", [3], gpu={}, loader={}
    ),
    "loader, and a slow nic": _job(
        TENSOR.but(params=30_000_000, loader={2: 10 * MS}, links={5: 0.2}),
        "slow_link slow_input", [5], links={}, loader={},
    ),
    "gpu, and a slow nic": _job(
        TENSOR.but(params=30_000_000, gpu={2: 1.2}, links={5: 0.2}), "slow_link slow_gpu", [5], links={}, gpu={}
    ),
    "loader, and a checkpoint of rank 0": _job(
        LONG.but(checkpoint_every=6, checkpoint="first", loader={3: 15 * MS}), "slow_input", [3], loader={}
    ),
    "gpu, and an evaluation": _job(LONG.but(eval_every=6, gpu={3: 1.2}), "slow_gpu", [3], gpu={}),
    "three gpus": _job(Loop(**B, ranks=16, steps=6, gpu={1: 1.3, 9: 1.2, 13: 1.1}), "slow_gpu", [1, 9, 13], gpu={}),
    "host-bound, gpu x6 and cpu of others": _job(
        HOST_BOUND.but(ranks=16, gpu={2: 6}, cpu={9: 1.5}), "slow_gpu slow_cpu", [2], gpu={}, cpu={}
    ),
    "leak in 18 steps": _job(LONG.but(steps=18, leak_gpu=0.02), "drifting_steps", leak_gpu=0.0),
    "jump in 18 steps": _job(LONG.but(steps=18, jump=(9, 1.3)), "jumping_steps", jump=(0, 1.0)),
    "logs of rank 0 in a pipeline": _job(
        PIPELINE.but(logs={0: 150 * MS}), "slow_cpu slow_input", [0], logs={}
    ),
    "loader of a tensor group, every 5th, no item": _job(
        Loop("tensor", 8, 4, params=40_000_000, kernels=20, item_every=0, clip=True, micro_batches=2,
             layers=4, steps=15, loader={5: 200 * MS}, loader_every=5),
        "slow_cpu slow_input", [5], loader={},
    ),
    "host-bound, loader": _job(
        HOST_BOUND.but(shape="ddp", loader={6: 3 * MS}), "slow_input", [6], loader={}
    ),
    "loader of one of 2 ranks, lengths 30 %": _job(
        Loop(**B, ranks=2, steps=12, uneven=0.3, clip=True, kernels=20, loader={1: 25 * MS}),
        "slow_input", [1], loader={},
    ),
    "nobody waits for the gpu": _job(Loop(**B, aside={4: 30 * MS}), "slow_gpu", [4], aside={}),
    "cpu x10": _job(Loop(**B, kernels=20, python_ns=20_000, cpu={4: 10}), "slow_cpu", [4], cpu={}),
    "cpu x2, hidden": _job(Loop(**B, kernels=20, python_ns=20_000, cpu={4: 2}), "slow_cpu", [4], cpu={}),
    **{
        f"host-bound, cpu x{factor}": _job(HOST_BOUND.but(cpu={4: factor}), "slow_cpu", [4], cpu={})
        for factor in (1.2, 2)
    },
    "host-bound, cpus of a host": _job(
        HOST_BOUND.but(ranks=16, cpu=dict.fromkeys(range(8, 16), 2)), "slow_cpu", range(8, 16), cpu={}
    ),
    "host-bound, gpu x3": _job(
        HOST_BOUND.but(shape="ddp", gpu={3: 3}), "slow_gpu", [3], gpu={}
    ),
    "gpu x2 of one of 2 ranks whose hosts are late": _job(TWO, "slow_gpu", [1], gpu={}),
    "stall in the forward pass": _job(Loop(**B, stalls={2: 20 * MS}), "slow_cpu", [2], stalls={}),
    "stall in the forward pass of fsdp": _job(
        Loop("fsdp", **B, stalls={2: 30 * MS}), "slow_cpu", [2], stalls={}
    ),
    "stall before the update, every 4th": _job(
        LONG.but(shape="fsdp", stalls={2: 60 * MS}, stalls_at_update=True, stalls_every=4), "slow_cpu", [2], stalls={}
    ),
    "item every 6th, slow loading on all": _job(
        LONG.but(item_every=6, load_ns=25 * MS), "periodic_steps", item_every=0
    ),
    "logs of rank 0": _job(Loop(**B, logs={0: 15 * MS}), "slow_cpu slow_input", [0], logs={}),
    "loader": _job(Loop(**B, loader={2: 20 * MS}), "slow_input", [2], loader={}),
    **{
        f"augmentation behind the copy of the batch, {how}": _job(
            Loop(
                **B, steps=20, layers=4, layer_ns=MS, params=params, item_every=items, kernels=20, jitter=0.05,
                overlap=False, augment={2: 60 * MS},
            ),
            "slow_input slow_cpu", [2], settings=settings, augment={},
        )
        for how, params, items, settings in (
            ("no marks", 6_000_000, 0, NO_MARKS),
            ("no marks, long reductions", 100_000_000, 0, NO_MARKS),
            ("no marks, item every 2nd", 100_000_000, 2, NO_MARKS),
            ("item every 2nd", 100_000_000, 2, Settings(unsure=True)),
            ("item each", 100_000_000, 1, Settings(unsure=True)),
        )
    },
    "loader, launches wake the device": _job(WAKES.but(loader={1: 80 * MS}), "slow_cpu slow_input", [1], loader={}),
    "loader of each micro-batch, launches wake the device": _job(
        WAKES.but(micro_batches=2, load_each=True, loader={1: 60 * MS}), "slow_cpu slow_input", [1], loader={}
    ),
    "stall, launches wake the device": _job(WAKES.but(stalls={1: 80 * MS}), "slow_cpu", [1], stalls={}),
    "host-bound, loader of each micro-batch": _job(
        WAKES.but(wake_ns=0, micro_batches=2, load_each=True, loader={1: 60 * MS}),
        "slow_cpu slow_input", [1], loader={},
    ),
    "loader of all ranks": _job(
        Loop(**B, loader=dict.fromkeys(range(8), 20 * MS)), "idle_devices", loader={}
    ),
    # Nobody's host waits for its device, so who is ahead stays ahead, and gains nothing by others that are quicker.
    **{
        f"loaders of all {ranks}, out of step": _job(
            Loop(**B, ranks=ranks, steps=12, item_every=0, kernels=20, load_ns=150 * MS, late={1: 45 * MS}),
            "idle_devices", load_ns=400_000,
        )
        for ranks in (2, 3, 8)
    },
    "loader, every 6th": _job(
        LONG.but(loader={2: 60 * MS}, loader_every=6), "slow_input", [2], loader={}
    ),
    "loader, lengths 30 %": _job(LONG.but(uneven=0.3, loader={3: 30 * MS}), "slow_input", [3], loader={}),
    "loader, hidden": _job(
        LONG.but(kernels=20, layers=8, item_every=12, loader={2: 60 * MS}, loader_every=12),
        "slow_input", [2], loader={},
    ),
    "nic of one of two communicators": _job(
        TENSOR.but(per_host=2, params=20_000_000, links={9: 0.2}), "slow_link", [9], links={}
    ),
    "nic x0.3": _job(TENSOR.but(params=50_000_000, links={5: 0.3}), "slow_link", [5], links={}),
    "nic x0.1": _job(TENSOR.but(params=30_000_000, links={5: 0.1}), "slow_link", [5], links={}),
    "pageable copies": _job(Loop(**B, pageable=4), "blocking_h2d", pageable=0),
    "pageable copies, host-bound": _job(HOST_BOUND.but(pageable=4), "blocking_h2d", pageable=0),
    "norm of the weights": _job(NORM, "gathers_behind", norm_every=0),
    "norm of the weights, which are kept": _job(NORM.but(reshard=False), "gathers_behind", norm_every=0),
    "norm of the weights, accumulation": _job(NORM.but(micro_batches=4), "gathers_behind", norm_every=0),
    "norm of the weights, slow host": _job(
        NORM.but(norm_python_ns=400_000, params=2_000_000), "gathers_behind", norm_every=0
    ),
    "host-bound, norm of the weights": _job(
        HOST_BOUND.but(norm_every=1, norm_python_ns=100_000), "gathers_behind", norm_every=0
    ),
    "norm of the weights, no marks": _job(NORM, "gathers_behind", settings=NO_MARKS, norm_every=0),
    "norm of the weights, every 6th step": _job(
        LONG.but(shape="fsdp", norm_every=6, norm_python_ns=2 * MS), "periodic_steps", norm_every=0
    ),
    "no prefetch": _job(
        Loop("fsdp", 16, **B, prefetch=False, params=25_000_000, steps=4), "late_prefetch", prefetch=True
    ),
    **{
        f"reduced behind the backward pass{what}": _job(
            Loop(**B, overlap=False).but(**fields), "late_reductions", settings=settings, overlap=True
        )
        for what, fields, settings in (
            ("", {}, Settings(unsure=True)),
            (", float32", {"dtype": "float32"}, Settings(unsure=True)),
            (", accumulation", {"micro_batches": 4}, Settings(unsure=True)),
            (", parameter by parameter", {"bucket_bytes": 400_000}, Settings(unsure=True)),
            (", clipping", {"clip": True}, Settings(unsure=True)),
            (", a loader", {"loader": dict.fromkeys(range(8), 10 * MS)}, Settings(unsure=True)),
            (", no marks", {}, NO_MARKS),
            (", more than is computed", {"params": 60_000_000}, Settings(unsure=True)),
            (", host-bound", {"kernels": 20, "layer_ns": 400_000, "python_ns": 20_000}, Settings(unsure=True)),
            (", lengths 40 %", {"uneven": 0.4, "steps": 20}, Settings(unsure=True)),
            (", evaluation", {"eval_every": 4, "steps": 20}, Settings(unsure=True)),
        )
    },
    **{
        f"a metric of all ranks in each step{what}": _job(
            Loop(**B, metric=60_000_000).but(**fields), "exposed_gathers", settings=settings, metric=0
        )
        for what, fields, settings in (
            ("", {}, Settings(unsure=True)),
            (", no marks", {}, NO_MARKS),
            (", reduced by hand", {"overlap": False}, NO_MARKS),
            (", accumulation", {"micro_batches": 4, "layer_ns": MS}, Settings(unsure=True)),
        )
    },
    "all gradients in one bucket": _job(
        Loop(**B, bucket_bytes=1 << 30), "late_reductions", bucket_bytes=4_000_000
    ),
    "reduced behind the backward pass of each micro-batch": _job(
        Loop(**B, overlap=False, micro_batches=4, reduce_each=True)
    ),
    # Less is known.
    "ddp, not timed": _job(Loop(**B), settings=NO_TIMES),
    "loader, not timed": _job(Loop(**B, loader={2: 20 * MS}), settings=NO_TIMES),
    "runs ahead for 10 steps, not timed": _job(LONG.but(item_every=10), settings=NO_TIMES),
    "evaluation, not timed": _job(LONG.but(eval_every=6), "periodic_steps", settings=NO_TIMES, eval_every=0),
    "ddp, no marks": _job(Loop(**B), settings=NO_MARKS),
    "fsdp, no marks": _job(Loop("fsdp", **B), settings=NO_MARKS),
    "gpu x1.2, no marks": _job(Loop(**B, gpu={5: 1.2}), "slow_gpu", [5], NO_MARKS, gpu={}),
    "loader, no marks": _job(Loop(**B, loader={2: 20 * MS}), "slow_input slow_cpu", [2], NO_MARKS, loader={}),
}  # fmt: skip


def wrong_with(name: str, folder: pathlib.Path) -> list[str]:
    job = JOBS[name]
    case = run(job.loop)
    write(case, folder, job.loop.seed, job.settings)
    return judge(job, case, told("report", folder)[1]["findings"])


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    for number, name in enumerate(sys.argv[2:] or JOBS):
        wrong = wrong_with(name, place / str(number))
        print(f"{'wrong' if wrong else 'right'}: {name}", *wrong, sep="\n    ", flush=True)

"""Jobs of habits.py with what a report has to say of them.

    python -m generator.habit_jobs FOLDER [NAME…]

prints for each job what is wrong with the report's findings about it.
"""

from __future__ import annotations

import pathlib
import sys

from generator.habits import run
from generator.judgement import job_of, judge
from generator.loop import MS, Loop
from generator.rank_files import Settings, write
from lib.tool import told

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
    "ddp": job_of(Loop(**B)),
    "ddp in float32": job_of(Loop(ranks=16)),
    "no item": job_of(Loop(**B, item_every=0, kernels=20, steps=12)),
    "accumulation": job_of(Loop(**B, micro_batches=4, steps=6)),
    "accumulation, reduced each time": job_of(Loop(**B, micro_batches=4, reduce_each=True, steps=6)),
    "clipping": job_of(Loop(**B, clip=True)),
    "evaluation": job_of(LONG.but(eval_every=6), "periodic_steps", eval_every=0),
    "checkpoint of all": job_of(LONG.but(checkpoint_every=6), "periodic_steps", checkpoint_every=0),
    "checkpoint of rank 0": job_of(
        LONG.but(checkpoint_every=6, checkpoint="first"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "checkpoint, others at a barrier": job_of(
        LONG.but(checkpoint_every=6, checkpoint="barrier"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "checkpoint of rank 0, every 2nd": job_of(
        LONG.but(checkpoint_every=2, checkpoint="first"), "periodic_steps slow_cpu", [0], checkpoint_every=0
    ),
    "evaluation in fsdp, in each step": job_of(NORM.but(layers=4, norm_every=0, eval_every=1)),
    "optimizer's state is sharded": job_of(Loop(ranks=16, params=80_000_000, **B, zero1=True)),
    "marks within the forward pass": job_of(
        NORM.but(norm_every=0, params=80_000_000, layer_ns=500_000, mark_within=True)
    ),
    "fsdp, reduced each time, no marks": job_of(
        Loop("fsdp", **B, micro_batches=4, reduce_each=True, steps=12), settings=NO_MARKS
    ),
    "compilation": job_of(Loop(**B, compile_ns=5000 * MS)),
    "lengths 40 %": job_of(LONG.but(uneven=0.4), "uneven_ranks", even=True),
    "lengths, tensor": job_of(TENSOR.but(uneven=0.3, steps=12), "uneven_ranks", even=True),
    "lengths, pipeline": job_of(PIPELINE.but(uneven=0.2, steps=12), "uneven_ranks", even=True),
    "pauses, often": job_of(LONG.but(ranks=16, pauses_ns=60 * MS, pauses=0.3), "uneven_ranks", pauses_ns=0),
    "host-bound": job_of(HOST_BOUND),
    "host-bound, reduced each time": job_of(HOST_BOUND.but(micro_batches=4, reduce_each=True)),
    "small messages": job_of(Loop("fsdp", 16, layer_ns=30_000, params=50_000)),
    "tensor": job_of(TENSOR),
    "pipeline": job_of(PIPELINE),
    "jitter 10 %": job_of(Loop(**B, jitter=0.1, steps=12)),
    "64 ranks": job_of(Loop(**B, ranks=64, layers=4, steps=4)),
    "loader, every 10th on all": job_of(
        LONG.but(loader=dict.fromkeys(range(8), 100 * MS), loader_every=6), "periodic_steps", loader={}
    ),
    "leak of the GPUs": job_of(LONG.but(leak_gpu=0.02), "drifting_steps", leak_gpu=0.0),
    "leak of the GPUs, few steps": job_of(LONG.but(steps=12, leak_gpu=0.05), "drifting_steps", leak_gpu=0.0),
    "leak of the hosts": job_of(LONG.but(leak_ns=MS), "drifting_steps", leak_ns=0),
    "jump": job_of(LONG.but(jump=(12, 1.3)), "jumping_steps", jump=(0, 1.0)),
    "more calls from a step on": job_of(LONG.but(reduce_each=True, more_micros=(12, 3))),
    # One thing is wrong.
    **{
        f"gpu x{factor}, {shape}": job_of(Loop(shape, 16, 4, **B, steps=6, gpu={5: factor}), "slow_gpu", [5], gpu={})
        for shape in ("ddp", "fsdp", "tensor")
        for factor in (1.05, 1.2)
    },
    "gpu x1.2, no item": job_of(
        Loop(**B, item_every=0, kernels=20, steps=12, gpu={5: 1.2}), "slow_gpu", [5], gpu={}
    ),
    "gpu x1.3, hidden by communication": job_of(
        Loop("fsdp", 16, **B, params=150_000_000, steps=4, gpu={5: 1.3}), "slow_gpu", [5], gpu={}
    ),
    "gpu x1.5, lengths 30 %": job_of(LONG.but(uneven=0.3, gpu={3: 1.5}), "slow_gpu", [3], gpu={}),
    "gpu x1.3, second half": job_of(
        LONG.but(gpu={3: 1.3}, gpu_steps=tuple(range(12, 24))), "slow_gpu", [3], gpu={}
    ),
    "gpu x1.2 in 200 short steps": job_of(
        Loop(steps=200, layers=2, layer_ns=800_000, params=500_000, gpu={6: 1.2}), "slow_gpu", [6], gpu={}
    ),
    "all gpus of a host": job_of(
        Loop(**B, ranks=16, steps=6, gpu=dict.fromkeys(range(8, 16), 1.3)), "slow_gpu", range(8, 16), gpu={}
    ),
    **{
        f"gpu x1.3, stage {r // 2}": job_of(PIPELINE.but(gpu={r: 1.3}), "slow_gpu", [r], gpu={}) for r in (0, 3, 5, 7)
    },
    "head of a pipeline": job_of(
        PIPELINE.but(ranks=16, micro_batches=8, head=0.3), "slow_gpu", range(12, 16), head=0
    ),
    "gpu and loader of one rank": job_of(
        Loop(**B, gpu={3: 1.2}, loader={3: 10 * MS}), "slow_gpu slow_input", [3], gpu={}, loader={}
    ),
    "loader, and a slow nic": job_of(
        TENSOR.but(params=30_000_000, loader={2: 10 * MS}, links={5: 0.2}),
        "slow_link slow_input", [5], links={}, loader={},
    ),
    "loader, and a checkpoint of rank 0": job_of(
        LONG.but(checkpoint_every=6, checkpoint="first", loader={3: 15 * MS}), "slow_input", [3], loader={}
    ),
    "gpu, and an evaluation": job_of(LONG.but(eval_every=6, gpu={3: 1.2}), "slow_gpu", [3], gpu={}),
    "three gpus": job_of(Loop(**B, ranks=16, steps=6, gpu={1: 1.3, 9: 1.2, 13: 1.1}), "slow_gpu", [1, 9, 13], gpu={}),
    "host-bound, gpu x6 and cpu of others": job_of(
        HOST_BOUND.but(ranks=16, gpu={2: 6}, cpu={9: 1.5}), "slow_gpu slow_cpu", [2], gpu={}, cpu={}
    ),
    "logs of rank 0 in a pipeline": job_of(
        PIPELINE.but(logs={0: 150 * MS}), "slow_cpu slow_input", [0], logs={}
    ),
    "loader of a tensor group, every 5th, no item": job_of(
        Loop("tensor", 8, 4, params=40_000_000, kernels=20, item_every=0, clip=True, micro_batches=2,
             layers=4, steps=15, loader={5: 200 * MS}, loader_every=5),
        "slow_cpu slow_input", [5], loader={},
    ),
    "loader, then many launches": job_of(
        Loop(**B, kernels=20, layer_ns=MS, python_ns=30_000, micro_batches=4, loader={3: 25 * MS}), "slow_input", [3],
        loader={},
    ),
    "host-bound, sharded tensor groups, loader": job_of(
        Loop("fsdp_tp", 16, python_ns=310_000, layer_ns=353_000, micro_batches=2, jitter=0.03, params=5_000_000,
             steps=12, loader={5: 5_600_000}),
        "slow_input", [5], loader={},
    ),
    "host-bound, loader": job_of(
        HOST_BOUND.but(shape="ddp", loader={6: 3 * MS}), "slow_input", [6], loader={}
    ),
    "loader of one of 2 ranks, lengths 30 %": job_of(
        Loop(**B, ranks=2, steps=12, uneven=0.3, clip=True, kernels=20, loader={1: 25 * MS}),
        "slow_input", [1], loader={},
    ),
    "nobody waits for the gpu": job_of(Loop(**B, aside={4: 30 * MS}), "slow_gpu", [4], aside={}),
    "cpu x10": job_of(Loop(**B, kernels=20, python_ns=20_000, cpu={4: 10}), "slow_cpu", [4], cpu={}),
    "cpu x2, hidden": job_of(Loop(**B, kernels=20, python_ns=20_000, cpu={4: 2}), "slow_cpu", [4], cpu={}),
    **{
        f"host-bound, cpu x{factor}": job_of(HOST_BOUND.but(cpu={4: factor}), "slow_cpu", [4], cpu={})
        for factor in (1.2, 2)
    },
    "gpu x1.3 of a rank that loads no batch, no marks": job_of(
        TENSOR.but(sequence=True, loads_each=4, steps=12, gpu={5: 1.3}), "slow_gpu", [5], settings=NO_MARKS, gpu={}
    ),
    "ddp, reduced each time, exposed": job_of(
        Loop(ranks=16, **B, micro_batches=4, load_each=True, reduce_each=True, params=150_000_000, steps=6),
        "reduced_again", reduce_each=False,
    ),
    "gpu x2 of one of 2 ranks whose hosts are late": job_of(TWO, "slow_gpu", [1], gpu={}),
    "stall in the forward pass": job_of(Loop(**B, stalls={2: 20 * MS}), "slow_cpu", [2], stalls={}),
    "stall in the forward pass of fsdp": job_of(
        Loop("fsdp", **B, stalls={2: 30 * MS}), "slow_cpu", [2], stalls={}
    ),
    "stall before the update, every 4th": job_of(
        LONG.but(shape="fsdp", stalls={2: 60 * MS}, stalls_at_update=True, stalls_every=4), "slow_cpu", [2], stalls={}
    ),
    "item every 6th, slow loading on all": job_of(
        LONG.but(item_every=6, load_ns=25 * MS), "periodic_steps", item_every=0
    ),
    "logs of rank 0": job_of(Loop(**B, logs={0: 15 * MS}), "slow_cpu slow_input", [0], logs={}),
    "loader": job_of(Loop(**B, loader={2: 20 * MS}), "slow_input", [2], loader={}),
    **{
        f"augmentation behind the copy of the batch, {how}": job_of(
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
    "loader, launches wake the device": job_of(WAKES.but(loader={1: 80 * MS}), "slow_cpu slow_input", [1], loader={}),
    "loader of each micro-batch, launches wake the device": job_of(
        WAKES.but(micro_batches=2, load_each=True, loader={1: 60 * MS}), "slow_cpu slow_input", [1], loader={}
    ),
    "stall, launches wake the device": job_of(WAKES.but(stalls={1: 80 * MS}), "slow_cpu", [1], stalls={}),
    "host-bound, loader of each micro-batch": job_of(
        WAKES.but(wake_ns=0, micro_batches=2, load_each=True, loader={1: 60 * MS}),
        "slow_cpu slow_input", [1], loader={},
    ),
    "loader of all ranks": job_of(
        Loop(**B, loader=dict.fromkeys(range(8), 20 * MS)), "idle_devices", loader={}
    ),
    # Nobody's host waits for its device, so who is ahead stays ahead, and gains nothing by others that are quicker.
    **{
        f"loaders of all {ranks}, out of step": job_of(
            Loop(**B, ranks=ranks, steps=12, item_every=0, kernels=20, load_ns=150 * MS, late={1: 45 * MS}),
            "idle_devices", load_ns=400_000,
        )
        for ranks in (2, 3, 8)
    },
    "loader, every 6th": job_of(
        LONG.but(loader={2: 60 * MS}, loader_every=6), "slow_input", [2], loader={}
    ),
    "loader, hidden": job_of(
        LONG.but(kernels=20, layers=8, item_every=12, loader={2: 60 * MS}, loader_every=12),
        "slow_input", [2], loader={},
    ),
    "nic of one of two communicators": job_of(
        TENSOR.but(per_host=2, params=20_000_000, links={9: 0.2}), "slow_link", [9], links={}
    ),
    "nic x0.3": job_of(TENSOR.but(params=50_000_000, links={5: 0.3}), "slow_link", [5], links={}),
    "link in some steps": job_of(
        LONG.but(ranks=16, params=20_000_000, links={11: 0.2}, links_steps=(7, 8, 15, 16, 21)),
        "slow_link", range(16), links={},
    ),
    "link in some steps, tensor groups": job_of(
        TENSOR.but(params=60_000_000, steps=20, links={11: 0.1}, links_steps=(7, 8, 15, 16)), "slow_link", [11], links={}
    ),
    "two links in some steps, tensor groups": job_of(
        TENSOR.but(params=60_000_000, steps=20, links={11: 0.1, 13: 0.1}, links_steps=(7, 8, 15, 16)),
        "slow_link", range(1, 16, 2), links={},
    ),
    "copies of one rank": job_of(
        Loop("fsdp", **B, batch_bytes=50_000_000, pcie={5: 0.1}), "slow_copies", [5], pcie={}
    ),
    "copies of one rank, not marked": job_of(
        Loop(**B, batch_bytes=80_000_000, pcie={3: 0.2}), "slow_copies", [3], NO_MARKS, pcie={}
    ),
    "pageable copies": job_of(Loop(**B, pageable=4), "blocking_h2d", pageable=0),
    "norm of the weights": job_of(NORM, "gathers_behind", norm_every=0),
    "norm of the weights, slow host": job_of(
        NORM.but(norm_python_ns=400_000, params=2_000_000), "gathers_behind", norm_every=0
    ),
    "norm of the weights, no marks": job_of(NORM, "gathers_behind", settings=NO_MARKS, norm_every=0),
    "norm of the weights, every 6th step": job_of(
        LONG.but(shape="fsdp", norm_every=6, norm_python_ns=2 * MS), "periodic_steps", norm_every=0
    ),
    "no prefetch": job_of(
        Loop("fsdp", 16, **B, prefetch=False, params=25_000_000, steps=4), "late_prefetch", prefetch=True
    ),
    **{
        f"reduced behind the backward pass{what}": job_of(
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
        f"a metric of all ranks in each step{what}": job_of(
            Loop(**B, metric=60_000_000).but(**fields), "exposed_gathers", settings=settings, metric=0
        )
        for what, fields, settings in (
            ("", {}, Settings(unsure=True)),
            (", no marks", {}, NO_MARKS),
            (", reduced by hand", {"overlap": False}, NO_MARKS),
            (", accumulation", {"micro_batches": 4, "layer_ns": MS}, Settings(unsure=True)),
        )
    },
    "all gradients in one bucket": job_of(
        Loop(**B, bucket_bytes=1 << 30), "late_reductions", bucket_bytes=4_000_000
    ),
    "reduced behind the backward pass of each micro-batch": job_of(
        Loop(**B, overlap=False, micro_batches=4, reduce_each=True)
    ),
    # Less is known.
    "ddp, not timed": job_of(Loop(**B), settings=NO_TIMES),
    "loader, not timed": job_of(Loop(**B, loader={2: 20 * MS}), settings=NO_TIMES),
    "runs ahead for 10 steps, not timed": job_of(LONG.but(item_every=10), settings=NO_TIMES),
    "evaluation, not timed": job_of(LONG.but(eval_every=6), "periodic_steps", settings=NO_TIMES, eval_every=0),
    "ddp, no marks": job_of(Loop(**B), settings=NO_MARKS),
    "fsdp, no marks": job_of(Loop("fsdp", **B), settings=NO_MARKS),
    "gpu x1.2, no marks": job_of(Loop(**B, gpu={5: 1.2}), "slow_gpu", [5], NO_MARKS, gpu={}),
    "loader, no marks": job_of(Loop(**B, loader={2: 20 * MS}), "slow_input slow_cpu", [2], NO_MARKS, loader={}),
    # Micro-batches differ.
    "lengths, accumulation": job_of(LONG.but(uneven=0.4, uneven_each=True, micro_batches=4), "uneven_ranks", even=True),
    "texts of unlike length": job_of(TENSOR.but(texts=40, steps=16), "uneven_ranks", even=True),
    **{
        f"host x{factor}, in ncclGroupEnd": job_of(
            TENSOR.but(layer_ns=MS, group_ns=400_000, cpu={5: factor}), "slow_cpu", [5], cpu={}
        )
        for factor in (3, 6)
    },
    "rank 0 evaluates alone": job_of(
        LONG.but(eval_every=6, eval_ranks=(0,), layer_ns=2 * MS), "slow_gpu", [0], eval_every=0
    ),
    "pauses, often, on one host": job_of(
        LONG.but(ranks=16, pauses_ns=60 * MS, pauses=0.3, pauses_of=tuple(range(8))), "slow_cpu", range(8), pauses_ns=0
    ),
    "gpu x1.3, groups behind values": job_of(
        TENSOR.but(layer_ns=MS, group_ns=1 * MS, loads_each=4, mark_within=True, gpu={5: 1.3}), "slow_gpu", [5], gpu={}
    ),
    "tensor, reduced in each of 4 micro-batches": job_of(
        TENSOR.but(micro_batches=4, reduce_each=True, layer_ns=MS, params=150_000_000), "reduced_again", reduce_each=False
    ),
    "tensor, a value behind each all-reduce": job_of(
        TENSOR.but(item_each=True, layer_ns=MS, kernels=2, python_ns=200_000), "blocking_d2h", item_each=False
    ),
    "pageable batches in two parts": job_of(
        Loop(**B, batch_bytes=100_000_000, batch_parts=2, batch_memory="pageable"), "blocking_h2d",
        batch_memory="pinned", batch_bytes=2_000_000,
    ),
    "logs of rank 0, which shows where it reads a value": job_of(
        LONG.but(item_every=10, steps=38, logs={0: 33 * MS}), "long_steps periodic_steps", [0], logs={}
    ),
    "optimizer x12 of a rank": job_of(
        LONG.but(zero1=True, layer_ns=MS, params=30_000_000, update={5: 12.0}), "slow_gpu", [5], update={}
    ),
    "nic x0.05 of a stage": job_of(
        PIPELINE.but(ranks=16, micro_batches=8, links={6: 0.05}), "slow_link", [6], links={}
    ),
    "a jump in 11 steps": job_of(LONG.but(steps=12, jump=(6, 1.3)), "jumping_steps", jump=(0, 1.0)),
    "stalls from the first step that counts": job_of(
        LONG.but(steps=13, stalls={3: 200 * MS}, stalls_at_update=True, stalls_steps=(2, 6, 10)), "slow_cpu slow_input",
        [3], stalls={},
    ),
    "gpu x1.3, cupti": job_of(
        Loop("fsdp", **B, kernels=60, steps=16, item_every=0, gpu={5: 1.3}), "slow_gpu", [5], Settings(cupti=True), gpu={}
    ),
    "evaluation of all in short steps": job_of(
        Loop(**B, steps=7, eval_every=3, layer_ns=MS), "long_steps periodic_steps", eval_every=0
    ),
    "pinned batches of 300 MB": job_of(
        Loop(**B, batch_bytes=300_000_000), "exposed_copies", batch_bytes=1
    ),
    "pageable batches of a pipeline": job_of(
        PIPELINE.but(ranks=16, micro_batches=4, kernels=20, batch_bytes=54_000_000, batch_memory="pageable", item_every=5),
        "blocking_h2d", batch_memory="pinned", batch_bytes=2_000_000,
    ),
    "loader of all in a pipeline": job_of(
        PIPELINE.but(ranks=16, micro_batches=8, layers=4, params=10_000_000, layer_ns=1_500_000, kernels=20,
                     python_ns=54_000, clip=True, loader=dict.fromkeys(range(16), 5_400_000)),
        "idle_devices", loader={},
    ),
    "nic x0.05 one way": job_of(
        PIPELINE.but(ranks=16, micro_batches=8, links={6: 0.05}, links_send=True), "slow_link", [6], links={}
    ),
    "trainers and generators": job_of(Loop("rl", 16, **B)),
    "gpu x1.3 of a generator": job_of(Loop("rl", 16, **B, gpu={12: 1.3}), "slow_gpu", [12], gpu={}),
    "gpu x1.3 of a trainer": job_of(Loop("rl", 16, **B, gpu={5: 2.6}), "slow_gpu", [5], gpu={}),
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

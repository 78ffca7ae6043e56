"""Describes training jobs as people write them: loops with an `.item()` now and then, gradient accumulation,
evaluations, checkpoints of one rank, a slow first step, batches of unlike length, hosts that launch
slower than the device computes."""

from __future__ import annotations

import dataclasses

MS = 1_000_000
# fsdp and ddp are of PyTorch 2.x. In hsdp weights are sharded within hosts and replicated between them, in fsdp_tp shared by
# groups of four ranks as in Megatron's tensor parallelism, which `tensor` has within hosts, beside ddp. zero3_offload is
# DeepSpeed's, and pipeline 1F1B over four stages; moe has two all-to-alls a layer. In rl half of the ranks train by fsdp, and
# the others generate.
SHAPES = ("fsdp", "hsdp", "fsdp_tp", "pipeline", "zero3_offload", "moe", "rl", "ddp", "tensor")


@dataclasses.dataclass(frozen=True)
class Loop:
    shape: str = "ddp"  # of SHAPES
    ranks: int = 8
    per_host: int = 8
    seed: int = 0
    steps: int = 10
    layers: int = 8
    params: int = 6_000_000  # in a layer
    layer_ns: int = 3 * MS  # of a layer's forward pass
    kernels: int = 1  # of a layer
    python_ns: int = 0  # of the host before each kernel
    wake_ns: int = 0  # of the host for a kernel on an idle device, more than behind others
    dtype: str = "float32"  # of what is communicated
    reduce_dtype: str = ""  # fsdp: of gradients; "": dtype
    jitter: float = 0.01
    load_ns: int = 400_000
    batch_bytes: int = 2_000_000
    batch_parts: int = 1  # copies that a batch takes
    batch_memory: str = "pinned"
    loads_each: int = 1  # only each so many-th rank copies a batch, as the first of a tensor group
    micro_batches: int = 1
    more_micros: tuple[int, int] = (0, 1)  # ddp, fsdp: from this step on there are so many times as many
    load_each: bool = False  # ddp, fsdp: True: each micro-batch is loaded and copied by itself
    reduce_each: bool = False  # False: no_sync() until the last micro-batch
    overlap: bool = True  # ddp: False: reduces when the backward pass is over
    bucket_bytes: int = 25 * 1024 * 1024  # ddp: gradients that are reduced together
    reshard: bool = True
    prefetch: bool = True
    sizes_bytes: int = 0  # fsdp: copied to the device behind each all-gather, as FSDP2 does
    item_every: int = 1  # steps between two loss.item(); 0: never
    item_ranks: tuple[int, ...] = ()  # that read it; (): all
    item_of: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: another item_every
    item_pinned: bool = False  # a pinned copy and a wait for the stream, as newer PyTorch does
    clip: bool = False  # clip_grad_norm_ with an .item() of the norm
    pageable: int = 0  # copies from pageable memory in the middle of each step
    pageable_each: bool = False  # fsdp, pipeline, moe: one in each layer, forward and backward
    offload: bool = True  # zero3_offload: the optimizer's state is on the host
    eval_every: int = 0
    eval_ranks: tuple[int, ...] = ()  # ddp: that evaluate, each alone; (): all, together
    norm_every: int = 0  # fsdp: steps between two norms of the whole weights, for which each tensor is gathered
    norm_python_ns: int = 0  # of the host before each of these
    setup: bool = False  # a small all-gather before the first step, as DDP makes of the sizes of parameters
    metric: int = 0  # elements that each rank gives to an all-gather behind its update
    metric_dtype: str = "float32"
    metrics: bool = False  # a small all-reduce of each step, on a second communicator of all ranks
    zero1: bool = False  # ddp, tensor: gradients are scattered, and updated weights gathered
    sequence: bool = False  # tensor: activations are gathered and scattered (sequence parallelism)
    mark_within: bool = False  # each step is marked in the middle of its forward pass
    checkpoint_every: int = 0
    # all, pause (all, and nothing is copied), first (rank 0 alone, the others go on), barrier (they wait for it)
    checkpoint: str = "all"
    checkpoint_ns: int = 300 * MS
    compile_ns: int = 0  # of each of the first `compile_steps`
    compile_steps: int = 1
    compile_more: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns more, in every second of them
    uneven: float = 0  # batches of unlike length: each rank's and step's work is 1 ± this
    uneven_each: bool = False  # of each micro-batch by itself
    item_each: bool = False  # an .item() in each layer; tensor: behind each all-reduce of the forward pass
    group_ns: int = 0  # tensor: of the host in ncclGroupEnd of each all-reduce within a model
    texts: int = 0  # tensor: each model generates 0.5 to 1.5 times so many words first, an all-reduce each
    even: bool = False  # the same work, alike on all ranks and in all micro-batches
    tied: bool = False  # the first and the last stage of a pipeline share weights, and reduce their gradients
    head: float = 0  # the last stage of a pipeline has so much more to compute
    # Faults.
    gpu: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: times of its kernels
    gpu_steps: tuple[int, ...] = ()  # only in these; (): in all
    update: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: times of its optimizer's kernels
    cpu: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: times of its host's work
    pcie: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: of its copies' speed
    links: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: of its NIC's speed
    links_steps: tuple[int, ...] = ()  # only in these; (): in all
    links_send: bool = False  # messages: only those that the rank sends
    loader: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns more
    loader_every: int = 1  # steps
    loader_steps: tuple[int, ...] = ()  # only in these; (): in all
    augment: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns behind the copy of the batch
    stalls: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns in the middle of its forward pass
    stalls_at_update: bool = False  # before its optimizer instead
    stalls_every: int = 1  # steps
    stalls_steps: tuple[int, ...] = ()  # only in these, counted from 1
    late: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns before its first step
    logs: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns behind its step
    pauses_ns: int = 0  # garbage collection, at random
    pauses: float = 0  # probability in a rank's step
    pauses_of: tuple[int, ...] = ()  # only these; (): all
    leak_ns: int = 0  # each step's host work grows by this
    leak_gpu: float = 0  # each step's kernels take so much longer, of the first
    jump: tuple[int, float] = (0, 1.0)  # from this step on kernels take so many times as long
    batch: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: times the bytes of its batches
    aside: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: ns on a stream nobody waits for
    alone: tuple[int, int] | None = None  # rank and step: it alone gathers metrics there, and waits

    def but(self, **fields) -> Loop:
        return dataclasses.replace(self, **fields)

"""The programs of ranks, as frameworks issue them: one function for each way to lay out a model.

Each is written from how the framework schedules its streams (PyTorch 2.x, DeepSpeed), not from what
a trace shows: FSDP all-gathers the next unit while it computes this one, reduces gradients on a
stream of their own; tensor parallelism waits for its all-reduce; a pipeline passes activations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from generator.operations import (
    Collective,
    Copy,
    Host,
    Kernel,
    Operation,
    Record,
    StepMark,
    Synchronize,
    Wait,
)


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of equal layers, and how a job trains it."""

    layers: int = 8
    params: int = 25_000_000  # in a layer
    dtype: str = "bfloat16"
    reduce_dtype: str = "bfloat16"
    forward_ns: int = 3_000_000  # of a layer and micro-batch
    micro_batches: int = 1
    load_ns: int = 400_000  # the host's part of getting a batch that is ready
    batch_bytes: int = 2_000_000
    steps: int = 6
    # A mistake can be planted in each of these; real programs make all of them.
    prefetch: bool = True  # FSDP: gather the next unit ahead of its computation
    item_each_layer: bool = False  # a .item() or print(loss) in each layer
    pageable_each_layer: bool = False  # a copy from pageable memory in each layer
    reshard_after_forward: bool = True  # False: weights stay, no gather in backward
    reduce_each_micro_batch: bool = True  # False: no_sync() until the last one
    offload: bool = True  # of zero3_offload
    gathers_behind: int = 0  # of each layer, in each step: full_tensor() to log a norm of the weights
    load_extra_ns: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: slow loader
    checkpoint_every: int = 0  # steps; 0: never
    checkpoint_ns: int = 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """Says which ranks talk to each other, and what each rank does."""

    name: str
    comms: dict[str, list[int]]
    programs: dict[int, list[Operation]]


def _world(n: int) -> dict[str, list[int]]:
    return {"world": list(range(n))}


def _begin_step(model: Model, rank: int, step: int) -> Iterator[Operation]:
    yield StepMark(step)
    yield Host(model.load_ns + model.load_extra_ns.get(rank, 0))
    yield Copy("H2D", model.batch_bytes, "compute")


def _end_step(model: Model, step: int) -> Iterator[Operation]:
    yield Kernel(model.forward_ns // 4)  # the optimizer
    yield Copy("D2H", 4, "compute", "pinned")
    yield Synchronize()  # loss.item()
    if model.checkpoint_every and step % model.checkpoint_every == model.checkpoint_every - 1:
        yield Host(model.checkpoint_ns)


def _mistakes(model: Model, backward: bool = False) -> Iterator[Operation]:
    if model.pageable_each_layer:
        yield Copy("H2D", 1_000_000, "compute", "pageable", backward)
    if model.item_each_layer:
        yield Copy("D2H", 4, "compute", "pinned", backward)
        yield Synchronize()


def _fsdp_step(model: Model, shard: str, n: int, replicas: str | None) -> Iterator[Operation]:
    """One step of FSDP's schedule over communicator `shard` of `n` ranks."""
    count = -(-model.params // n)

    def gather(layer: int, backward: bool) -> Iterator[Operation]:
        yield Collective(
            "ncclAllGather", shard, count, model.dtype, "gather",
            backward=backward,
        )  # fmt: skip
        yield Record("gather", f"gathered {backward} {layer}")

    for micro in range(model.micro_batches):
        last = micro == model.micro_batches - 1
        order = list(range(model.layers))
        for backward in (False, True):
            gathers = not backward or model.reshard_after_forward
            layers = order[::-1] if backward else order
            if gathers:
                yield from gather(layers[0], backward)
            for i, layer in enumerate(layers):
                if gathers and model.prefetch and i + 1 < len(layers):
                    yield from gather(layers[i + 1], backward)
                if gathers:
                    yield Wait("compute", f"gathered {backward} {layer}")
                yield Kernel(model.forward_ns * (2 if backward else 1))
                yield from _mistakes(model, backward)
                if backward and (last or model.reduce_each_micro_batch):
                    yield Record("compute", f"computed {layer}")
                    yield Wait("reduce", f"computed {layer}")
                    yield Collective(
                        "ncclReduceScatter", shard, count, model.reduce_dtype, "reduce",
                        reduce="avg", backward=True,
                    )  # fmt: skip
                    if replicas is not None:
                        yield Collective(
                            "ncclAllReduce", replicas, count, model.reduce_dtype, "reduce",
                            reduce="avg", backward=True,
                        )  # fmt: skip
                if gathers and not model.prefetch and i + 1 < len(layers):
                    # The gather is issued only when the host comes to the layer, behind its work.
                    yield Record("compute", f"late {layer}")
                    yield Wait("gather", f"late {layer}")
                    yield from gather(layers[i + 1], backward)
    yield Record("reduce", "reduced")
    yield Wait("compute", "reduced")


def _behind(model: Model, shard: str, n: int) -> Iterator[Operation]:
    """Gathers the layers' tensors one by one, each of which the program then reads."""
    for _ in range(model.layers * model.gathers_behind):
        count = -(-model.params // n // model.gathers_behind)
        yield Collective("ncclAllGather", shard, count, model.dtype, "compute")
        yield Kernel(20_000)


def fsdp(model: Model, ranks: int) -> Layout:
    """Fully sharded over all ranks (PyTorch FSDP1, FSDP2)."""

    def program(rank: int) -> Iterator[Operation]:
        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            yield from _fsdp_step(model, "world", ranks, None)
            yield from _behind(model, "world", ranks)
            yield from _end_step(model, step)

    return Layout("fsdp", _world(ranks), {r: list(program(r)) for r in range(ranks)})


def hsdp(model: Model, ranks: int, per_host: int = 8) -> Layout:
    """Sharded within hosts, replicated between them (HYBRID_SHARD)."""
    comms = _world(ranks)
    for host in range(ranks // per_host):
        comms[f"shard {host}"] = list(range(host * per_host, (host + 1) * per_host))
    for place in range(per_host):
        comms[f"replicate {place}"] = list(range(place, ranks, per_host))

    def program(rank: int) -> Iterator[Operation]:
        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            shard, replicas = f"shard {rank // per_host}", f"replicate {rank % per_host}"
            yield from _fsdp_step(model, shard, per_host, replicas)
            yield from _behind(model, "world", ranks)  # all_gather() where no group is named
            yield from _end_step(model, step)

    return Layout("hsdp", comms, {r: list(program(r)) for r in range(ranks)})


def fsdp_tp(model: Model, ranks: int, tensor: int = 4) -> Layout:
    """FSDP between groups of `tensor` ranks, which share each layer (Megatron's column and row)."""
    comms = _world(ranks)
    for group in range(ranks // tensor):
        comms[f"tensor {group}"] = list(range(group * tensor, (group + 1) * tensor))
    for place in range(tensor):
        comms[f"data {place}"] = list(range(place, ranks, tensor))
    tokens = 4_000_000  # activations that a layer all-reduces

    def program(rank: int) -> Iterator[Operation]:
        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            for op in _fsdp_step(model, f"data {rank % tensor}", ranks // tensor, None):
                if isinstance(op, Kernel):
                    # Attention and MLP, each with its all-reduce, for which the next must wait.
                    for half in range(2):
                        yield Kernel(op.ns // 2)
                        yield Collective(
                            "ncclAllReduce", f"tensor {rank // tensor}", tokens, model.dtype, "compute",
                            reduce="sum",
                        )  # fmt: skip
                else:
                    yield op
            yield from _behind(model, f"data {rank % tensor}", ranks // tensor)
            yield from _end_step(model, step)

    return Layout("fsdp_tp", comms, {r: list(program(r)) for r in range(ranks)})


def pipeline(model: Model, ranks: int, stages: int = 4) -> Layout:
    """GPipe: forward of all micro-batches, then backward, data-parallel all-reduce at the end."""
    comms = _world(ranks)
    width = ranks // stages
    for column in range(width):
        comms[f"pipe {column}"] = [stage * width + column for stage in range(stages)]
    for stage in range(stages):
        comms[f"data {stage}"] = list(range(stage * width, (stage + 1) * width))
    activations = 4_000_000

    def program(rank: int) -> Iterator[Operation]:
        stage, column = divmod(rank, width)
        pipe = f"pipe {column}"
        layers = max(1, model.layers // stages)

        def pass_on(function: str, peer: int, backward: bool) -> Iterator[Operation]:
            name = f"{function} {backward}"
            if function == "ncclSend":
                yield Record("compute", f"to {name}")
                yield Wait(f"p2p {name}", f"to {name}")
            yield Collective(
                function, pipe, activations, model.dtype, f"p2p {name}",
                peer=peer, backward=backward,
            )  # fmt: skip
            if function == "ncclRecv":
                yield Record(f"p2p {name}", f"got {name}")
                yield Wait("compute", f"got {name}")

        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            for backward in (False, True):
                before, after = (stage + 1, stage - 1) if backward else (stage - 1, stage + 1)
                for _ in range(max(model.micro_batches, 4)):
                    if 0 <= before < stages:
                        yield from pass_on("ncclRecv", before, backward)
                    yield Kernel(model.forward_ns * layers * (2 if backward else 1))
                    yield from _mistakes(model, backward)
                    if 0 <= after < stages:
                        yield from pass_on("ncclSend", after, backward)
            if width > 1:
                yield Collective(
                    "ncclAllReduce", f"data {stage}", model.params * layers, model.reduce_dtype, "compute",
                    reduce="avg", backward=True,
                )  # fmt: skip
            yield from _end_step(model, step)

    return Layout("pipeline", comms, {r: list(program(r)) for r in range(ranks)})


def zero3_offload(model: Model, ranks: int) -> Layout:
    """DeepSpeed ZeRO-3 with the optimizer's state on the host: gradients go out, weights come in."""
    shard = -(-model.params // ranks)

    def program(rank: int) -> Iterator[Operation]:
        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            for op in _fsdp_step(model, "world", ranks, None):
                yield op
                if model.offload and isinstance(op, Collective) and op.function == "ncclReduceScatter":
                    yield Copy("D2H", shard * 2, "reduce", "pinned", True)
            yield Synchronize("reduce")
            if model.offload:
                yield Host(model.layers * 300_000)  # the optimizer on the CPU
                for _ in range(model.layers):
                    yield Copy("H2D", shard * 2, "compute")
            yield from _behind(model, "world", ranks)
            yield from _end_step(model, step)

    return Layout("zero3_offload", _world(ranks), {r: list(program(r)) for r in range(ranks)})


def moe(model: Model, ranks: int) -> Layout:
    """Experts over all ranks: two all-to-alls a layer, data-parallel all-reduce of the rest."""
    tokens = 500_000

    def program(rank: int) -> Iterator[Operation]:
        for step in range(model.steps):
            yield from _begin_step(model, rank, step)
            for backward in (False, True):
                for layer in range(model.layers):
                    for part in ("dispatch", "combine"):
                        yield Kernel(model.forward_ns * (1 + backward) // 2)
                        yield Collective(
                            "ncclAlltoAll", "world", tokens, model.dtype, "compute",
                            backward=backward,
                        )  # fmt: skip
                    yield from _mistakes(model, backward)
                    if backward:
                        yield Record("compute", f"computed {layer}")
                        yield Wait("reduce", f"computed {layer}")
                        yield Collective(
                            "ncclAllReduce", "data", model.params // 4, model.reduce_dtype, "reduce",
                            reduce="avg", backward=True,
                        )  # fmt: skip
            yield Record("reduce", "reduced")
            yield Wait("compute", "reduced")
            yield from _end_step(model, step)

    comms = _world(ranks) | {"data": list(range(ranks))}
    return Layout("moe", comms, {r: list(program(r)) for r in range(ranks)})


LAYOUTS = {f.__name__: f for f in (fsdp, hsdp, fsdp_tp, pipeline, zero3_offload, moe)}

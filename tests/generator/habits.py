"""Runs the training jobs that loop.py describes. They are written from how frameworks schedule their streams, not
from what a trace shows. The cost of a fault or habit is the difference of two simulations, with and without it."""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections.abc import Callable, Iterator

from generator.loop import Loop
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
from generator.simulate import Machine, RankTrace, simulate

TOKENS = 4_000_000  # elements of what a layer passes on


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
    """A job that ran."""

    loop: Loop
    comms: dict[str, list[int]]
    machine: Machine
    traces: dict[int, RankTrace]
    truth: Truth = dataclasses.field(default_factory=lambda: Truth(None))
    killed: bool = False  # by SIGKILL, all of them
    missing: list[int] = dataclasses.field(default_factory=list)  # without a file
    quota: int | None = None  # lines a rank


def _comms(loop: Loop) -> dict[str, list[int]]:
    n = loop.ranks
    comms = {"world": list(range(n))}
    if loop.metrics:
        comms["metrics"] = list(range(n))
    within, across, width = {
        "tensor": ("tensor", "data", loop.per_host), "fsdp_tp": ("tensor", "data", 4), "hsdp": ("shard", "replicate", loop.per_host),
    }.get(loop.shape, ("", "", n))  # fmt: skip
    for group in range(n // width if within else 0):
        comms[f"{within} {group}"] = list(range(group * width, (group + 1) * width))
    for place in range(width if within else 0):
        comms[f"{across} {place}"] = list(range(place, n, width))
    if loop.shape == "moe":
        comms["data"] = list(range(n))
    if loop.shape == "rl":
        comms["train"] = list(range(n // 2))
    if loop.shape == "pipeline":
        width = n // 4
        for column in range(width):
            comms[f"pipe {column}"] = [stage * width + column for stage in range(4)]
        for stage in range(4):
            comms[f"data {stage}"] = list(range(stage * width, (stage + 1) * width))
        for column in range(width if loop.tied else 0):
            comms[f"embedding {column}"] = [column, 3 * width + column]
    return {name: ranks for name, ranks in comms.items() if len(ranks) > 1 or name == "world"}


class _Program:
    """The program of one rank."""

    def __init__(self, loop: Loop, rank: int):
        self.loop, self.rank = loop, rank
        self.step = 0
        self.scale = 1.0
        self.micros = max(4, loop.micro_batches) if loop.shape == "pipeline" else loop.micro_batches

    def host(self, ns: float) -> Host:
        return Host(round(ns * self.loop.cpu.get(self.rank, 1.0)))

    def kernels(self, ns: float) -> Iterator[Operation]:
        loop, each = self.loop, round(ns * self.scale / self.loop.kernels)
        for _ in range(loop.kernels):
            if loop.python_ns:
                yield self.host(loop.python_ns)
            yield Kernel(each)

    def length_of_batch(self, micro: int = 0) -> float:
        loop = self.loop
        # Ranks that share a model's layers, or are its stages, have the same batch.
        batches, mine = loop.ranks, self.rank
        if loop.shape == "tensor":
            batches, mine = loop.ranks // loop.per_host, self.rank // loop.per_host
        elif loop.shape == "pipeline":
            batches, mine = loop.ranks // 4, self.rank % (loop.ranks // 4)

        def drawn(micro: int) -> list[float]:
            lengths = random.Random(f"lengths {loop.seed} {self.step}{f' {micro}' if micro else ''}")
            return [lengths.uniform(1 - loop.uneven, 1 + loop.uneven) for _ in range(batches)]

        if not loop.even:
            return drawn(micro)[mine]
        return statistics.mean(statistics.mean(drawn(m)) for m in range(self.micros if loop.uneven_each else 1))

    def micro_batch(self, micro: int) -> None:
        """The kernels from here on are of this one."""
        if self.loop.uneven_each:
            self.scale = self.scale_of_step * self.length_of_batch(micro)

    def begin_step(self) -> Iterator[Operation]:
        loop, rank, step = self.loop, self.rank, self.step
        of_step = random.Random(f"{loop.seed} {rank} {step}")
        self.scale = 1.0 + loop.leak_gpu * step
        if loop.uneven and not loop.uneven_each:
            self.scale *= self.length_of_batch()
        if not loop.gpu_steps or step in loop.gpu_steps:
            self.scale *= loop.gpu.get(rank, 1.0)
        if loop.jump[0] and step >= loop.jump[0]:
            self.scale *= loop.jump[1]
        self.scale_of_step = self.scale
        if loop.more_micros[0] and step == loop.more_micros[0]:
            self.micros *= loop.more_micros[1]
        if loop.setup and step == 0:
            yield Collective("ncclAllGather", "world", 1, "float32", "compute")
        if not loop.mark_within:
            yield StepMark(step)
        if step < loop.compile_steps and loop.compile_ns:
            yield self.host(loop.compile_ns + step % 2 * loop.compile_more.get(rank, 0))
        if step == 0:
            yield Host(loop.late.get(rank, 0))
        yield from self.load()
        if loop.augment.get(rank):
            yield Host(loop.augment[rank])
        if loop.aside.get(rank):
            yield Kernel(loop.aside[rank], "aside")
        if loop.texts:
            yield from self.generate()
        pauses = of_step.random() < loop.pauses and (not loop.pauses_of or rank in loop.pauses_of)
        self.pause = loop.pauses_ns if pauses else 0

    def generate(self) -> Iterator[Operation]:
        loop, model = self.loop, self.rank // self.loop.per_host
        models = loop.ranks // loop.per_host
        times = [random.Random(f"texts {loop.seed} {self.step} {m}").uniform(0.5, 1.5) for m in range(models)]
        for _ in range(round(loop.texts * (statistics.mean(times) if loop.even else times[model]))):
            yield Kernel(400_000)
            yield Collective("ncclAllReduce", f"tensor {model}", 65536, loop.dtype, "compute", reduce="sum")

    def load(self) -> Iterator[Operation]:
        loop = self.loop
        slow = loop.loader.get(self.rank, 0) if self.step % loop.loader_every == loop.loader_every - 1 else 0
        if loop.loader_steps and self.step not in loop.loader_steps:
            slow = 0
        yield Host(loop.load_ns + slow + loop.leak_ns * self.step)
        if self.rank % loop.loads_each == 0:
            size = round(loop.batch_bytes * loop.batch.get(self.rank, 1.0) / loop.batch_parts)
            for _ in range(loop.batch_parts):
                yield Copy("H2D", size, "compute", loop.batch_memory)

    def maybe_stall(self, at_update: bool) -> Iterator[Operation]:
        loop = self.loop
        stalls = self.step + 1 in (loop.stalls_steps or (self.step + 1,))
        if stalls and loop.stalls_at_update == at_update and self.step % loop.stalls_every == loop.stalls_every - 1:
            yield Host(loop.stalls.get(self.rank, 0))

    def end_step(self) -> Iterator[Operation]:
        loop, rank, step = self.loop, self.rank, self.step
        yield from self.maybe_stall(at_update=True)
        if loop.clip:
            if loop.shape != "ddp":
                yield Collective("ncclAllReduce", "world", 1, "float32", "compute", reduce="sum")
            yield Copy("D2H", 4, "compute", "pageable")
        if loop.norm_every and step % loop.norm_every == loop.norm_every - 1:
            comm = f"data {rank % 4}" if loop.shape == "fsdp_tp" else "world"
            for _ in range(loop.layers * 4):
                yield self.host(loop.norm_python_ns)
                count = -(-loop.params // (loop.ranks // 4 if loop.shape == "fsdp_tp" else loop.ranks) // 4)
                yield Collective("ncclAllGather", comm, count, loop.dtype, "compute")
                yield Kernel(10_000)
        yield from self.kernels(round(loop.layer_ns // 4 * loop.update.get(rank, 1.0)))  # the optimizer
        if loop.metrics:
            yield Collective("ncclAllReduce", "metrics", 2, "float32", "compute", reduce="sum")
        if loop.metric:
            yield Collective("ncclAllGather", "world", loop.metric, loop.metric_dtype, "compute")
        if loop.zero1:
            comm = f"data {rank % loop.per_host}" if loop.shape == "tensor" else "world"
            for _ in range(loop.layers):
                yield Collective("ncclAllGather", comm, loop.params // loop.ranks, loop.dtype, "compute")
        every = loop.item_of.get(rank, loop.item_every)
        if every and step % every == every - 1 and (not loop.item_ranks or rank in loop.item_ranks):
            yield Copy("D2H", 4, "compute", "pinned" if loop.item_pinned else "pageable")
            if loop.item_pinned:
                yield Synchronize()
        if loop.checkpoint_every and step % loop.checkpoint_every == loop.checkpoint_every - 1:
            if loop.checkpoint == "all" or (rank == 0 and loop.checkpoint != "pause"):
                yield Copy("D2H", loop.params * loop.layers * 2, "compute", "pageable")
            if loop.checkpoint in ("all", "pause") or rank == 0:
                yield Host(loop.checkpoint_ns)
            if loop.checkpoint == "barrier":
                yield Collective("ncclAllReduce", "world", 1, "float32", "compute", reduce="sum")
                yield Synchronize()
        evaluates = not loop.eval_ranks or rank in loop.eval_ranks
        if evaluates and loop.eval_every and step % loop.eval_every == loop.eval_every - 1:
            for _ in range(10):
                yield Host(loop.load_ns)
                yield Copy("H2D", loop.batch_bytes, "compute")
                for _ in range(loop.layers):
                    if loop.shape == "fsdp":
                        count = -(-loop.params // loop.ranks)
                        yield Collective("ncclAllGather", "world", count, loop.dtype, "compute")
                    yield from self.kernels(loop.layer_ns)
            if not loop.eval_ranks:
                yield Collective("ncclAllReduce", "world", 2, "float32", "compute", reduce="sum")
            yield Copy("D2H", 8, "compute", "pageable")
        if loop.logs.get(rank):
            yield Host(loop.logs[rank])
        if step == loop.steps - 1:
            for stream in ("compute", "reduce", "gather", "aside"):
                yield Synchronize(stream)

    def reduce(self, comm: str, function: str, count: int, name: str) -> Iterator[Operation]:
        yield Record("compute", name)
        yield Wait("reduce", name)
        if self.loop.zero1:
            function, count = "ncclReduceScatter", count // self.loop.ranks
        dtype = self.loop.reduce_dtype or self.loop.dtype
        yield Collective(function, comm, count, dtype, "reduce", reduce="avg", backward=True)

    def mistakes(self, backward: bool) -> Iterator[Operation]:
        if self.loop.pageable_each:
            yield Copy("H2D", 1_000_000, "compute", "pageable", backward)
        if self.loop.item_each:
            yield Copy("D2H", 4, "compute", "pinned", backward)
            yield Synchronize()

    def maybe_pause(self, layer: int) -> Iterator[Operation]:
        if layer == self.loop.layers // 2 and self.pause:
            yield Host(self.pause)
        if layer == self.loop.layers // 2:
            yield from self.maybe_stall(at_update=False)
        if layer == self.loop.layers // 2 and self.loop.alone == (self.rank, self.step):
            yield Collective("ncclAllGather", "metrics", 10_000, "float32", "compute")
            yield Synchronize()
        if layer == self.loop.layers // 2 and self.loop.mark_within:
            yield StepMark(self.step)
        if layer < self.loop.pageable:
            yield Copy("H2D", 4_000_000, "compute", "pageable")

    def ddp(self, comm: str, tensor: str | None = None) -> Iterator[Operation]:
        """Buckets are reduced as soon as the backward pass has filled them, or all behind it."""
        loop = self.loop
        size = {"float32": 4, "bfloat16": 2}[loop.dtype]
        bucket = loop.bucket_bytes // size
        for micro in range(self.micros):
            reduces = loop.reduce_each or micro == self.micros - 1
            self.micro_batch(micro)
            if micro and loop.load_each:
                yield from self.load()
            for layer in range(loop.layers):
                yield from self.layer(layer, 1, tensor)
                yield from self.maybe_pause(layer)
            left = 0
            for layer in reversed(range(loop.layers)):
                yield from self.layer(layer, 2, tensor)
                left += loop.params
                while reduces and (loop.overlap or layer == 0) and (left >= bucket or (layer == 0 and left)):
                    full = min(left, bucket)
                    yield from self.reduce(comm, "ncclAllReduce", full, f"bucket {layer}")
                    left -= full
        yield Record("reduce", "reduced")
        yield Wait("compute", "reduced")

    def layer(self, layer: int, times: int, tensor: str | None) -> Iterator[Operation]:
        for half in range(2 if tensor else 1):
            if tensor and self.loop.sequence:
                yield Collective(
                    "ncclAllGather", tensor, 4_000_000 // self.loop.per_host, "bfloat16", "compute",
                    backward=times == 2,
                )  # fmt: skip
            yield from self.kernels(self.loop.layer_ns * times // (2 if tensor else 1))
            if tensor and self.loop.sequence:
                yield Collective(
                    "ncclReduceScatter", tensor, 4_000_000 // self.loop.per_host, "bfloat16", "compute",
                    reduce="sum", backward=times == 2,
                )  # fmt: skip
            elif tensor:
                end_ns = self.host(self.loop.group_ns).ns
                yield Collective(
                    "ncclAllReduce", tensor, 4_000_000, "bfloat16", "compute",
                    reduce="sum", backward=times == 2, group_ns=end_ns,
                )  # fmt: skip
                if self.loop.item_each and times == 1:
                    yield Copy("D2H", 4, "compute", "pinned")
                    yield Synchronize()

    def fsdp(self, comm: str, shards: int, replicas: str = "", tensor: str = "") -> Iterator[Operation]:
        """Each unit is gathered ahead of its computation, and its gradients are reduced on a stream of their own."""
        loop = self.loop
        count = -(-loop.params // shards)

        def gather(layer: int, backward: bool) -> Iterator[Operation]:
            yield Collective("ncclAllGather", comm, count, loop.dtype, "gather", backward=backward)
            yield Record("gather", f"gathered {layer} {backward}")

        for micro in range(self.micros):
            reduces = loop.reduce_each or micro == self.micros - 1
            self.micro_batch(micro)
            if micro and loop.load_each:
                yield from self.load()
            for backward in (False, True):
                order = list(range(loop.layers))[:: -1 if backward else 1]
                gathers = loop.reshard or not backward
                if gathers:
                    yield from gather(order[0], backward)
                for i, layer in enumerate(order):
                    following = order[i + 1 : i + 2] if gathers else []
                    if loop.prefetch:
                        for other in following:
                            yield from gather(other, backward)
                    if gathers:
                        yield Wait("compute", f"gathered {layer} {backward}")
                        if loop.sizes_bytes:
                            yield Copy("H2D", loop.sizes_bytes, "compute", backward=backward)
                    # Attention and MLP, each with its all-reduce, for which the next must wait.
                    for _ in range(2 if tensor else 1):
                        yield from self.kernels(loop.layer_ns * (1 + backward) // (2 if tensor else 1))
                        if tensor:
                            yield Collective(
                                "ncclAllReduce", tensor, TOKENS, loop.dtype, "compute", reduce="sum", backward=backward
                            )
                    yield from self.mistakes(backward)
                    if not backward:
                        yield from self.maybe_pause(layer)
                    elif reduces:
                        yield from self.reduce(comm, "ncclReduceScatter", count, f"done {layer}")
                        if loop.shape == "zero3_offload" and loop.offload:
                            yield Copy("D2H", count * 2, "reduce", "pinned", True)
                        if replicas:
                            dtype = loop.reduce_dtype or loop.dtype
                            yield Collective("ncclAllReduce", replicas, count, dtype, "reduce", reduce="avg", backward=True)
                    if not loop.prefetch:
                        yield Record("compute", f"late {layer}")
                        yield Wait("gather", f"late {layer}")
                        for other in following:
                            yield from gather(other, backward)
        yield Record("reduce", "reduced")
        yield Wait("compute", "reduced")

    def zero3_offload(self) -> Iterator[Operation]:
        """Gradients go out, weights come in."""
        loop = self.loop
        yield from self.fsdp("world", loop.ranks)
        yield Synchronize("reduce")
        if loop.offload:
            yield Host(loop.layers * 300_000)  # the optimizer on the CPU
            for _ in range(loop.layers):
                yield Copy("H2D", -(-loop.params // loop.ranks) * 2, "compute")

    def moe(self) -> Iterator[Operation]:
        """Experts over all ranks, and a data-parallel all-reduce of the rest."""
        loop = self.loop
        for backward in (False, True):
            for layer in range(loop.layers):
                for _ in ("dispatch", "combine"):
                    yield from self.kernels(loop.layer_ns * (1 + backward) // 2)
                    yield Collective("ncclAlltoAll", "world", 500_000, loop.dtype, "compute", backward=backward)
                yield from self.mistakes(backward)
                if backward:
                    yield from self.reduce("data", "ncclAllReduce", loop.params // 4, f"done {layer}")
        yield Record("reduce", "reduced")
        yield Wait("compute", "reduced")

    def rl(self) -> Iterator[Operation]:
        """The first half of the ranks trains, the others generate, and get the weights at the end."""
        loop = self.loop
        if self.rank < loop.ranks // 2:
            yield from self.fsdp("train", loop.ranks // 2)
        else:
            for _ in range(loop.layers):
                yield from self.kernels(6 * loop.layer_ns)
        yield Collective("ncclBroadcast", "world", loop.params, loop.dtype, "compute")

    def pipeline(self) -> Iterator[Operation]:
        """1F1B over four stages."""
        loop, width = self.loop, self.loop.ranks // 4
        stage, column = divmod(self.rank, width)
        pipe = f"pipe {column}"
        micros = self.micros
        layers = max(1, loop.layers // 4) * (1 + (loop.head if stage == 3 else 0))

        def receive(peer: int, what: str) -> Iterator[Operation]:
            yield Collective("ncclRecv", pipe, 4_000_000, "bfloat16", f"get {what}", peer=peer)
            yield Record(f"get {what}", f"got {what}")
            yield Wait("compute", f"got {what}")

        def send(peer: int, what: str) -> Iterator[Operation]:
            yield Record("compute", f"made {what}")
            yield Wait(f"put {what}", f"made {what}")
            yield Collective("ncclSend", pipe, 4_000_000, "bfloat16", f"put {what}", peer=peer)

        def forward(micro: int) -> Iterator[Operation]:
            self.micro_batch(micro)
            if stage > 0:
                yield from receive(stage - 1, "activations")
            yield from self.kernels(loop.layer_ns * layers)
            yield from self.mistakes(False)
            if stage < 3:
                yield from send(stage + 1, "activations")

        def backward(micro: int) -> Iterator[Operation]:
            self.micro_batch(micro)
            if stage < 3:
                yield from receive(stage + 1, "gradients")
            yield from self.kernels(2 * loop.layer_ns * layers)
            yield from self.mistakes(True)
            if stage > 0:
                yield from send(stage - 1, "gradients")

        ahead = min(micros, 3 - stage)
        for micro in range(ahead):
            yield from forward(micro)
        for micro in range(micros - ahead):
            yield from forward(micro + ahead)
            yield from backward(micro)
        for micro in range(micros - ahead, micros):
            yield from backward(micro)
        if width > 1:
            count = loop.params * loop.layers // 4
            yield from self.reduce(f"data {stage}", "ncclAllReduce", count, "done")
            yield Record("reduce", "reduced")
            yield Wait("compute", "reduced")
        if loop.tied and stage in (0, 3):
            yield Collective("ncclAllReduce", f"embedding {column}", loop.params, loop.dtype, "compute", reduce="sum")

    def middle(self) -> Iterator[Operation]:
        loop, rank = self.loop, self.rank
        group, place = divmod(rank, 4 if loop.shape == "fsdp_tp" else loop.per_host)
        match loop.shape:
            case "ddp":
                return self.ddp("world")
            case "tensor":
                return self.ddp(f"data {place}", f"tensor {group}")
            case "fsdp":
                return self.fsdp("world", loop.ranks)
            case "hsdp":
                replicas = f"replicate {place}" if loop.ranks > loop.per_host else ""
                return self.fsdp(f"shard {group}", loop.per_host, replicas)
            case "fsdp_tp":
                return self.fsdp(f"data {place}", loop.ranks // 4, tensor=f"tensor {group}")
            case "zero3_offload":
                return self.zero3_offload()
            case "moe":
                return self.moe()
            case "rl":
                return self.rl()
        return self.pipeline()

    def run(self) -> Iterator[Operation]:
        for self.step in range(self.loop.steps):
            yield from self.begin_step()
            yield from self.middle()
            self.scale = self.scale_of_step
            yield from self.end_step()


def _with_sound_links(loop: Loop, rank: int) -> Iterator[Operation]:
    step, comms = 0, _comms(loop)

    def received_from_others(op: Collective) -> bool:
        sender = rank if op.function == "ncclSend" else comms[op.comm][op.peer]
        return sender not in loop.links

    for op in _Program(loop, rank).run():
        step = op.number if isinstance(op, StepMark) else step
        sound = isinstance(op, Collective) and (
            (loop.links_steps and step not in loop.links_steps)
            or (loop.links_send and op.peer is not None and received_from_others(op))
        )
        yield dataclasses.replace(op, sound=True) if sound else op


def programs_of(loop: Loop) -> dict[int, list[Operation]]:
    return {rank: list(_with_sound_links(loop, rank)) for rank in range(loop.ranks)}


def run(loop: Loop, edit: Callable[[int, list[Operation]], list[Operation]] | None = None) -> Case:
    """Simulates a job. `edit` changes a rank's program."""
    comms = _comms(loop)
    machine = Machine(
        ranks_per_host=loop.per_host, jitter=loop.jitter, link_factor=dict(loop.links), pcie_factor=dict(loop.pcie),
        wake_ns=loop.wake_ns,
    )
    programs = programs_of(loop)
    if edit:
        programs = {rank: edit(rank, ops) for rank, ops in programs.items()}
    made = Case(loop, comms, machine, simulate(programs, comms, machine, loop.seed))
    if not edit:
        _measured[seconds, repr(loop)] = seconds(made.traces)
    return made


def seconds(traces: dict[int, RankTrace]) -> float:
    """Returns how long the job took, in ns, hosts and devices: the mean over ranks."""
    return sum(trace.end - trace.steps[0].begin for trace in traces.values()) / len(traces)


_measured: dict[tuple, float] = {}


def measured(loop: Loop, how: Callable[[dict[int, RankTrace]], float] = seconds) -> float:
    """Returns a figure of the job's traces. A job is simulated once for it: most figures are differences from a few."""
    if (how, repr(loop)) not in _measured:
        _measured[how, repr(loop)] = how(run(loop).traces)
    return _measured[how, repr(loop)]


def gain(loop: Loop, **without) -> float:
    """Returns by how many ns a step of the job would be shorter with these fields changed."""
    return (measured(loop) - measured(loop.but(**without))) / loop.steps

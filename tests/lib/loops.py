"""Training loops as rank files: who calls what in which order, and where each step and micro-batch begins.

Each loop makes the calls that frameworks make (their collectives per step are known). The truth is
recorded while the calls are made, and is not derived from their order.
"""

import contextlib
import dataclasses
import random

from lib import jobs
from lib.tool import told

BATCH = 1 << 16  # bytes


class Loop:
    """Calls of a job, in the order of one clock."""

    def __init__(self, comms: list[list[int]], seed: int = 0):
        self.job = jobs.Job(comms, [], seed)
        for rank in range(1 + max(map(max, comms))):
            order = [comm for comm, members in enumerate(comms) if rank in members]
            self.job.ranks.append(jobs.Rank([], order))
        self.at = 1
        self.steps: list[int] = []  # where each begins
        self.micro_batches: list[int] = []
        self.autograd = False  # True: PyTorch's backward thread makes the calls

    @contextlib.contextmanager
    def backward(self):
        self.autograd = True
        yield
        self.autograd = False

    def step(self):
        self.steps.append(self.at)

    def micro_batch(self, copies=1, size=BATCH):
        self.micro_batches.append(self.at)
        for _ in range(copies):
            self.copy("cudaMemcpyAsync", size)

    def copy(self, function, size, ranks=None):
        self._add(ranks or range(self.job.size), jobs.Op(function, self.at, size))

    def gather(self, count, comm=0):
        self._call("ncclAllGather", count, comm)

    def scatter(self, count, comm=0):
        self._call("ncclReduceScatter", count, comm, "avg")

    def reduce(self, count, comm=0):
        self._call("ncclAllReduce", count, comm, "sum")

    def run(self, program: str):
        """Makes the calls that words name: S begins a step, b a micro-batch, | the backward pass, which a dot ends; g, s
        and r with a count and perhaps @communicator gather, scatter and reduce; c and d with a size copy to the device and back."""
        for word in program.split():
            if word in "|.":
                self.autograd = word == "|"
            elif word in "Sb":
                (self.step if word == "S" else self.micro_batch)()
            elif word[0] in "cd":
                self.copy("cudaMemcpyAsync" if word[0] == "c" else "cudaMemcpy", int(word[1:]))
            else:
                count, _, comm = word[1:].partition("@")
                {"g": self.gather, "s": self.scatter, "r": self.reduce}[word[0]](int(count), int(comm or 0))
        return self

    def send(self, a, b, count, comm=0):
        """Sends from `a` to `b`, which are ranks of the communicator."""
        members = self.job.comms[comm]
        for me, other, function in ((a, b, "ncclSend"), (b, a, "ncclRecv")):
            op = jobs.Op(function, self.at, count, comm=comm, dtype="bfloat16", peer=other)
            self.job.ranks[members[me]].ops.append(op)
        self.at += 1

    def _call(self, function, count, comm, reduce=None):
        op = jobs.Op(function, self.at, count, comm, "float32", reduce, autograd=self.autograd)
        self._add(self.job.comms[comm], op)

    def _add(self, ranks, op):
        for rank in ranks:
            self.job.ranks[rank].ops.append(op)
        self.at += 1


@dataclasses.dataclass
class Shape:
    """The options that people change in a loop."""

    steps: int = 8
    accumulate: int = 1
    turns: tuple[int, ...] = ()  # micro-batches of each step in turn, instead of `accumulate`
    no_sync: bool = False  # gradients are reduced in the last micro-batch only
    evaluate: int = 0  # every so many steps
    clip: bool = False
    log: int = 0  # every so many steps the loss is reduced and copied back
    layers: int = 6
    root: bool = True  # parameters outside the layers
    copies: int = 1  # per batch; 0: data are made on the device
    prefetch: bool = False  # the next batch comes in between forward and backward
    batch: int = BATCH  # bytes of each of its copies, where FSDP trains
    alike: bool = False  # batches of an evaluation are as large as those of training
    addresses: bool = False  # FSDP2 copies the addresses of what it gathers and reduces to the device

    def micro_batches(self, step: int) -> int:
        return self.turns[step % len(self.turns)] if self.turns else self.accumulate


def draw(rng: random.Random) -> Shape:
    return Shape(
        steps=rng.randrange(5, 40),
        accumulate=rng.choice([1, 1, 2, 4]),
        no_sync=rng.random() < 0.5,
        evaluate=rng.choice([0, 0, 1, 2, 5]),
        clip=rng.random() < 0.5,
        log=rng.choice([0, 0, 3]),
        layers=rng.randrange(2, 9),
        root=rng.random() < 0.7,
        copies=rng.choice([1, 1, 2]),
    )


def between(loop: Loop, shape: Shape, step: int, forward):
    """Makes the calls after a step that belong to no step."""
    if shape.log and (step + 1) % shape.log == 0:
        loop.reduce(1)
        loop.copy("cudaMemcpy", 4)
    if shape.evaluate and (step + 1) % shape.evaluate == 0:
        for _ in range(3):
            for _ in range(shape.copies if shape.alike else 1):
                loop.copy("cudaMemcpyAsync", shape.batch if shape.alike else BATCH // 2)
            forward()
        loop.reduce(2)


def fsdp(shape: Shape, ranks=2, checkpoint=0, head=None) -> Loop:
    """Each layer's parameters are gathered in forward and backward, and its gradients reduce-scattered."""
    loop = Loop([list(range(ranks))])
    layer, root = 16544, 4160
    loop.copy("cudaMemcpyAsync", 1 << 22)
    if head is not None:
        head(loop)

    def gather(count):
        loop.gather(count)
        if shape.addresses:
            loop.copy("cudaMemcpyAsync", 2104 if count == layer else 3240)

    def scatter(count):
        if shape.addresses:
            loop.copy("cudaMemcpyAsync", 4000 if count == layer else 6368)
        loop.scatter(count)

    def forward():
        if shape.root:
            gather(root)
        for _ in range(shape.layers):
            gather(layer)

    for step in range(shape.steps):
        loop.step()
        for i in range(shape.micro_batches(step)):
            loop.micro_batch(0 if shape.prefetch else shape.copies, shape.batch)
            forward()
            if shape.prefetch:
                loop.copy("cudaMemcpyAsync", shape.batch)
            last = i + 1 == shape.micro_batches(step)
            for n in range(shape.layers):
                gather(layer)
                if (last or not shape.no_sync) and n > 0:
                    scatter(layer)
            if last or not shape.no_sync:
                scatter(layer)
                if shape.root:
                    scatter(root)
        if shape.clip:
            loop.reduce(1)
        between(loop, shape, step, forward)
        if checkpoint and (step + 1) % checkpoint == 0:
            forward()
            loop.copy("cudaMemcpy", 1 << 20)
    return loop


def ddp(shape: Shape, ranks=2, buckets=(37248, 33088, 33088, 4160)) -> Loop:
    """Gradients are reduced in buckets, which are made anew after the first backward pass."""
    loop = Loop([list(range(ranks))])
    for step in range(shape.steps):
        loop.step()
        for i in range(shape.micro_batches(step)):
            loop.micro_batch(shape.copies)
            if i + 1 < shape.micro_batches(step) and shape.no_sync:
                continue
            for bucket in [sum(buckets)] if len(loop.micro_batches) == 1 else buckets:
                loop.reduce(bucket)
        between(loop, shape, step, lambda: None)
    return loop


def zero3(shape: Shape, ranks=2) -> Loop:
    """DeepSpeed: the optimizer gathers what it keeps whole, and the first step fetches on demand."""
    loop = Loop([list(range(ranks))])
    for step in range(shape.steps):
        loop.step()
        for _ in range(shape.accumulate):
            loop.micro_batch(shape.copies)
            if len(loop.micro_batches) == 1:
                for n in range(2 * shape.layers):
                    loop.gather(2048 + 32 * (n % 3))
            else:
                for _ in range(2 * shape.layers):
                    loop.gather(9000)
            loop.scatter(70336)
        loop.reduce(1)
        loop.copy("cudaMemcpyAsync", 4)
        for n in range(shape.layers):
            loop.gather(8192 if n % 2 else 128)
    return loop


def tensor_parallel(shape: Shape, data_parallel=2) -> Loop:
    """Megatron: activations are reduced in every layer within pairs, gradients at the end across them."""
    pairs = [[2 * n, 2 * n + 1] for n in range(data_parallel)]
    across = [[2 * n + side for n in range(data_parallel)] for side in range(2)]
    loop = Loop([list(range(2 * data_parallel)), *pairs, *across])

    def layers(n):
        for _ in range(n * shape.layers):
            for comm in range(1, 1 + data_parallel):
                loop.reduce(1 << 20, comm)

    for step in range(shape.steps):
        loop.step()
        for _ in range(shape.micro_batches(step)):
            loop.micro_batch(shape.copies)
            layers(4)
        for comm in range(1 + data_parallel, 3 + data_parallel):
            loop.reduce(1 << 18, comm)
        if shape.clip:
            loop.reduce(1)
        between(loop, dataclasses.replace(shape, evaluate=0), step, lambda: None)
    return loop


def two_models(shape: Shape, each: int) -> Loop:
    """Each step makes `each` updates of an actor, then as many of a critic."""
    loop = Loop([[0, 1]])
    for _ in range(shape.steps):
        loop.step()
        for layer, root in ((16544, 4160), (2080, 512)):
            for _ in range(each):
                loop.micro_batch(size=BATCH + layer)
                loop.gather(root)
                for _ in range(2 * shape.layers):
                    loop.gather(layer)
                for _ in range(shape.layers):
                    loop.scatter(layer)
                loop.scatter(root)
    return loop


def trained(loop, steps: int, evaluate: int):
    """Copies the model to the device, and trains; `evaluate`: every so many steps, 0: never."""
    loop.copy("cudaMemcpyAsync", 1 << 20)
    for step in range(1, steps + 1):
        loop.train()
        if evaluate and step % evaluate == 0:
            loop.evaluate()
    return loop


def has_its_steps(loop: Loop, folder):
    """Each rank by itself has the loop's steps, and all of them together do."""
    path = loop.job.write(folder)
    for only in ([], ["--ranks", "0"], ["--ranks", "1"]):
        report = told("summary", path, "--by", "step", *only)[1]
        assert report["steps_unknown"] == []
        steps = [round((step["ts"] - jobs.BASE_NS) / jobs.STEP_NS) for step in report["steps"]]
        assert steps == loop.steps, only

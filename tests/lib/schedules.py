"""Pipelines as rank files: which stage runs which part of which micro-batch in which order, from the definitions of
the schedules (GPipe: Huang et al. 2019; 1F1B: Narayanan et al. 2019; interleaved 1F1B: Narayanan et al. 2021)."""

import dataclasses

from lib import jobs

BATCH = 1 << 16  # bytes
ACTIVATION = 4096  # elements


@dataclasses.dataclass(frozen=True)
class Pass:
    """One micro-batch through one part (chunk) of the model that a stage holds."""

    forward: bool
    chunk: int
    batch: int


def gpipe(stage: int, stages: int, batches: int, chunks: int = 1) -> list[Pass]:
    """All forward passes, then all backward passes."""
    assert chunks == 1
    return [Pass(True, 0, n) for n in range(batches)] + [Pass(False, 0, n) for n in range(batches)]


def one_f_one_b(stage: int, stages: int, batches: int, chunks: int = 1) -> list[Pass]:
    """As many forward passes as there are stages behind; then forward and backward in turn; then what is left."""
    assert chunks == 1
    return _in_turn([Pass(forward, 0, n) for forward in (True, False) for n in range(batches)], stages - stage - 1)


def interleaved(stage: int, stages: int, batches: int, chunks: int = 2) -> list[Pass]:
    """Each stage holds several parts of the model, through which groups of micro-batches go one after the other."""
    assert batches % stages == 0
    passes = []
    for forward in (True, False):
        for group in range(0, batches, stages):
            for chunk in range(chunks) if forward else reversed(range(chunks)):
                passes += [Pass(forward, chunk, group + n) for n in range(stages)]
    warm = batches * chunks if batches == stages else 2 * (stages - stage - 1) + (chunks - 1) * stages
    return _in_turn(passes, warm)


def _in_turn(passes: list[Pass], warm: int) -> list[Pass]:
    half = len(passes) // 2
    warm = min(warm, half)
    order = passes[:warm]
    for forward, backward in zip(passes[warm:half], passes[half:]):
        order += [forward, backward]
    return order + passes[2 * half - warm :]


@dataclasses.dataclass(frozen=True)
class Shape:
    """A training loop around a pipeline."""

    schedule: object = one_f_one_b
    stages: int = 4
    batches: int = 8
    chunks: int = 1
    steps: int = 20
    replicas: int = 1  # data parallel: gradients are reduced across them
    loss: int = 1  # every so many steps it is reduced over all ranks; 0: never
    evaluate: int = 0  # every so many steps there are forward passes alone
    turns: tuple[int, ...] = ()  # micro-batches of each step in turn, instead of `batches`
    tensors: int = 1  # that go from stage to stage, for each micro-batch
    pairs: bool = False  # each pair of ranks has a communicator, else all share one
    copies: bool = True  # micro-batches come in at the first stage, and labels at the last
    lengths: bool = False  # what goes from stage to stage has another size for each micro-batch
    handshake: bool = False  # neighbours exchange something before the first step
    tensor_parallel: int = 0  # all-reduces of a pass, with another rank that has the same part of the model


class Pipeline:
    """The calls of all ranks, and for each of them the number of its step (0: it is in none)."""

    def __init__(self, shape: Shape):
        self.shape = shape
        width = 2 if shape.tensor_parallel else 1
        self.size = shape.stages * shape.replicas * width
        self.comms = [list(range(self.size))]
        self.numbers: dict[frozenset, int] = {frozenset(self.comms[0]): 0}
        self.plans: list[list] = [[] for _ in range(self.size)]  # (op, waits for, step)
        self.sent: dict = {}
        for rank in range(self.size):
            self.rank(rank, width)
        self.job = self.timed()

    def rank(self, rank: int, width: int):
        shape, plan = self.shape, self.plans[rank]
        stage, line = rank // width % shape.stages, rank // width // shape.stages
        first = rank - stage * width

        def call(step, function, count, comm=None, peer=None, dtype="float32", reduce=None):
            plan.append((jobs.Op(function, 0, count, comm, dtype, reduce, peer), step))

        def pass_on(step, function, other, batch):
            count = ACTIVATION + (step * 31 + batch * 7) % 64 if shape.lengths else ACTIVATION
            for _ in range(shape.tensors):
                if shape.pairs:
                    comm = self.comm([rank, other])
                    peer = self.comms[comm].index(other)
                else:
                    comm, peer = 0, other
                call(step, function, count, comm, peer)

        def layers(step):
            for _ in range(shape.tensor_parallel):
                call(step, "ncclAllReduce", 1 << 20, self.comm([rank, rank ^ 1]), reduce="sum")

        def run(step, p: Pass):
            before = first + (stage - 1) % shape.stages * width
            behind = first + (stage + 1) % shape.stages * width
            begins = stage == 0 and p.chunk == 0
            ends = stage == shape.stages - 1 and p.chunk == shape.chunks - 1
            if p.forward:
                if not begins:
                    pass_on(step, "ncclRecv", before, p.batch)
                if shape.copies and (begins or ends):
                    call(step, "cudaMemcpyAsync", BATCH if begins else BATCH // 2, dtype="byte")
                layers(step)
                if not ends:
                    pass_on(step, "ncclSend", behind, p.batch)
            else:
                if not ends:
                    pass_on(step, "ncclRecv", behind, p.batch)
                layers(step)
                if not begins:
                    pass_on(step, "ncclSend", before, p.batch)

        for _ in range(4):
            call(0, "cudaMemcpyAsync", 1 << 20, dtype="byte")
        if shape.handshake:
            for other in (stage - 1, stage + 1):
                if 0 <= other < shape.stages:
                    for function in ("ncclSend", "ncclRecv"):
                        call(0, function, 1, 0, first + other * width)
        for step in range(1, shape.steps + 1):
            batches = shape.turns[(step - 1) % len(shape.turns)] if shape.turns else shape.batches
            for p in shape.schedule(stage, shape.stages, batches, shape.chunks):
                run(step, p)
            if shape.replicas > 1:
                across = [first - line * shape.stages * width + stage * width + n * shape.stages * width
                          for n in range(shape.replicas)]  # fmt: skip
                call(step, "ncclAllReduce", 50000 + 1000 * stage, self.comm(across), reduce="avg")
            if shape.loss and step % shape.loss == 0:
                call(step, "ncclAllReduce", 1, 0, reduce="sum")
                call(step, "cudaMemcpy", 4, dtype="byte")
            if shape.evaluate and step % shape.evaluate == 0:
                for n in range(batches):
                    run(step, Pass(True, 0, n))

    def comm(self, members) -> int:
        members = sorted(members)
        if frozenset(members) not in self.numbers:
            self.numbers[frozenset(members)] = len(self.comms)
            self.comms.append(members)
        return self.numbers[frozenset(members)]

    def timed(self) -> jobs.Job:
        """Lets all ranks run at once: each goes on from a receive when what it receives was sent."""
        ranks = [jobs.Rank([], [c for c, members in enumerate(self.comms) if r in members]) for r in range(self.size)]
        sent: dict = {}
        received: dict = {}
        waits: list = [None] * self.size
        at, left = 1, [list(reversed(plan)) for plan in self.plans]
        while any(left):
            moved = False
            for rank in range(self.size):
                if waits[rank] and sent.get(waits[rank][0], 0) < waits[rank][1]:
                    continue
                if not left[rank]:
                    continue
                op, _ = left[rank].pop()
                members = self.comms[op.comm] if op.comm is not None else None
                if op.function == "ncclSend":
                    channel = (op.comm, rank, members[op.peer])
                    sent[channel] = sent.get(channel, 0) + 1
                waits[rank] = None
                if op.function == "ncclRecv":
                    channel = (op.comm, members[op.peer], rank)
                    received[channel] = received.get(channel, 0) + 1
                    waits[rank] = (channel, received[channel])
                ranks[rank].ops.append(dataclasses.replace(op, at=at))
                at += 1
                moved = True
            assert moved, "the schedule stands still"
        return jobs.Job(self.comms, ranks)

    def steps_of(self, rank: int, functions=("ncclSend", "ncclRecv", "ncclAllReduce")) -> list[int]:
        """Returns the step of each call of these functions, in the order of calls."""
        return [step for op, step in self.plans[rank] if op.function in functions]

"""A discrete-event simulation of a training job: hosts that issue work, devices' streams that run it
in order, and collectives at which ranks meet.

It knows nothing of how tprof reads a trace. Its rules are CUDA's and NCCL's:

- A host issues the operations of its rank in order. Each costs host time; none waits for the
  device, except where the program synchronises or is far ahead.
- A stream holds so many operations; a host that is further ahead waits for one to run.
- A stream runs its operations in the order of issue, each no earlier than it was issued and than
  the one before it on that stream has ended.
- A collective begins on a rank's device when its stream comes to it and the rank's previous
  operation on the same communicator has ended. It ends everywhere a transfer time after the last
  rank began. The others wait meanwhile.
- A transfer takes latency + bytes · busbw factor / bandwidth of the slowest link between the ranks.

All times are integers in ns on one true clock; the files put each host's own clock over them.
"""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Callable, Iterable

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
from lib.jobs import bytes_of
from lib.spans import covered, union

_EVENTS, _CALLS = (Record, Wait), (Collective, Copy)


@dataclasses.dataclass
class Machine:
    """The cluster that a job runs on. Bandwidths are bytes per ns, which is GB/s."""

    ranks_per_host: int = 8
    within: float = 300.0  # between the GPUs of a host
    between: float = 40.0  # between hosts, per GPU
    latency_ns: int = 12_000
    pcie: float = 25.0  # pinned copies
    pageable: float = 6.0
    launch_ns: int = 5_000  # of the host, for a kernel or an asynchronous call
    launches: int = 1024  # that a stream holds; behind them the host waits
    wake_ns: int = 0  # of the host, for a kernel that its stream has to begin at once
    jitter: float = 0.01  # of each duration: relative standard deviation
    link_factor: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: of its NIC
    pcie_factor: dict[int, float] = dataclasses.field(default_factory=dict)  # by rank: of its copies

    def host_of(self, rank: int) -> int:
        return rank // self.ranks_per_host


# Bytes on the wire per rank and byte of the operation, as nccl-tests' busbw counts them.
def busbw_factor(function: str, n: int) -> float:
    if function == "ncclAllReduce":
        return 2 * (n - 1) / n
    if function in ("ncclAllGather", "ncclReduceScatter", "ncclAlltoAll"):
        return (n - 1) / n
    return 1.0


@dataclasses.dataclass
class Call:
    """A call of the host, and when the device ran it (None: it never did)."""

    op: Collective | Copy
    host_begin: int
    host_end: int | None  # None: the host is still inside
    seq: int = 0
    device_begin: int | None = None
    device_end: int | None = None
    computes: bool = False  # a copy in a stream that computes
    exposed_ns: int | None = None
    group_end: int | None = None  # when ncclGroupEnd returned
    arrivals: dict[int, int] = dataclasses.field(default_factory=dict)  # by rank: when it came


@dataclasses.dataclass
class Step:
    number: int
    begin: int


@dataclasses.dataclass
class RankTrace:
    calls: list[Call] = dataclasses.field(default_factory=list)
    steps: list[Step] = dataclasses.field(default_factory=list)
    busy: list[tuple[int, int]] = dataclasses.field(default_factory=list)  # kernels, in order
    dry: list[tuple[int, int]] = dataclasses.field(default_factory=list)  # between kernels: the host was late
    copied: list[tuple[int, int, str]] = dataclasses.field(default_factory=list)  # in streams that compute; memory
    waits: list[tuple[int, int]] = dataclasses.field(default_factory=list)  # of the host, for the device
    end: int = 0  # when the host was through, or stuck
    finished: bool = False

    def computing(self) -> list[tuple[int, int]]:
        """Returns when its streams computed, as the library has it: a copy in such a stream is work of it. A
        pageable copy returns when the stream is empty, so nobody knows when it began."""
        return union(self.busy + [(begin, end) for begin, end, memory in self.copied if memory == "pinned"])


@dataclasses.dataclass
class _Meeting:
    """One collective of one communicator, or one message of point-to-point."""

    expected: int
    transfer_ns: Callable[[], int]
    arrivals: dict[int, int] = dataclasses.field(default_factory=dict)
    signature: set = dataclasses.field(default_factory=set)
    end: int | None = None

    def arrive(self, rank: int, at: int, what: tuple) -> None:
        self.arrivals[rank] = at
        self.signature.add(what)
        # Ranks that call different operations wait for each other for ever.
        if len(self.arrivals) == self.expected and len(self.signature) == 1:
            self.end = max(self.arrivals.values()) + self.transfer_ns()


@dataclasses.dataclass
class _Stream:
    free: int = 0  # when what it has run so far has ended
    # Operation, when it was issued, how long it takes (kernels and copies), and its call or event.
    queue: collections.deque = dataclasses.field(default_factory=collections.deque)
    computed: bool = False  # what it ran last was a kernel
    computes: bool = False  # it has run one
    begun: list[int] = dataclasses.field(default_factory=list)  # when each that it has run began


class _Rank:
    def __init__(self, job: _Job, rank: int, program: Iterable[Operation]):
        self.job, self.rank = job, rank
        self.program = iter(program)
        self.current: Operation | None = None
        self.now = 0
        self.streams: dict[str, _Stream] = collections.defaultdict(_Stream)
        # A wait is for the latest record that was issued before it, so events are told apart by
        # how often their name was recorded.
        self.recorded: dict[str, int] = collections.Counter()
        self.events: dict[tuple[str, int], int] = {}  # when the stream came to the record
        # By channel: calls issued, calls that have ended here, and when the last one did.
        self.seq: dict[tuple, int] = collections.Counter()
        self.ended: dict[tuple, int] = collections.Counter()
        self.free: dict[tuple, int] = collections.Counter()
        self.trace = RankTrace()

    def jittered(self, op: Operation, ns: float) -> int:
        return round(ns * self.job.jitter(self.rank, type(op).__name__))

    def wait(self, until: int) -> None:
        if until > self.now:
            self.trace.waits.append((self.now, until))
            self.now = until

    def issue(self, op: Operation) -> bool:
        """Does what the host does for `op`. False: the host has to wait."""
        m = self.job.machine
        if isinstance(op, Host):
            self.now += self.jittered(op, op.ns)
            return True
        if isinstance(op, StepMark):
            self.trace.steps.append(Step(op.number, self.now))
            return True
        stream = self.streams[op.stream]
        if isinstance(op, Synchronize):
            if stream.queue:
                return False
            self.wait(stream.free)
            return True
        if isinstance(op, Copy) and op.memory == "pageable":
            if stream.queue:
                return False
            begin = max(self.now + m.launch_ns, stream.free)
            end = begin + m.launch_ns + self.jittered(op, op.bytes / m.pageable / m.pcie_factor.get(self.rank, 1.0))
            self.trace.calls.append(Call(op, self.now, end, 0, begin, end, stream.computes))
            if stream.computes:
                self.trace.copied.append((begin, end, op.memory))
            stream.free = self.now = end
            return True
        wakes = m.wake_ns and isinstance(op, Kernel)
        if wakes and stream.queue:
            return False  # not known yet whether it is idle
        behind = len(stream.begun) + len(stream.queue) - m.launches
        if behind >= len(stream.begun):
            return False
        if behind >= 0:
            self.wait(stream.begun[behind])
        begin, takes = self.now, 0
        what: Call | tuple[str, int] | None = None
        if isinstance(op, _EVENTS):
            self.recorded[op.event] += isinstance(op, Record)
            what = (op.event, self.recorded[op.event])
        else:
            self.now += max(1, round(m.launch_ns * self.job.jitter(self.rank, "launch")))
        if wakes and stream.free <= begin:
            self.now += m.wake_ns
        if isinstance(op, Kernel):
            takes = self.jittered(op, op.ns)
        elif isinstance(op, _CALLS):
            what = Call(op, begin, self.now)
            self.trace.calls.append(what)
            if isinstance(op, Copy):
                takes = self.jittered(op, op.bytes / m.pcie / m.pcie_factor.get(self.rank, 1.0)) + 2_000
            else:
                channel = self.job.channel(op, self.rank)
                what.seq = self.seq[channel]
                self.seq[channel] += 1
                if op.group_ns:
                    self.now += self.jittered(op, op.group_ns)
                    what.group_end = self.now
                    # NCCL enqueues it last, and the host has still to return.
                    enqueued = self.now - (self.now - what.host_end) // 10
                    stream.queue.append((op, enqueued, takes, what))
                    return True
        stream.queue.append((op, self.now, takes, what))
        return True

    def run_stream(self, stream: _Stream) -> bool:
        """Runs what the stream can run. True: it got on."""
        moved = False
        while stream.queue:
            op, issued, takes, what = stream.queue[0]
            begin = max(stream.free, issued)
            if isinstance(op, Kernel):
                end = begin + takes
                stream.computes = True
                self.trace.busy.append((begin, end))
                if stream.computed and issued > stream.free:
                    self.trace.dry.append((stream.free, issued))
            elif isinstance(op, Record):
                end = stream.free
                self.events[what] = end
            elif isinstance(op, Wait):
                if what not in self.events:
                    return moved
                end = max(stream.free, self.events[what])
            elif isinstance(op, Copy):
                end = begin + takes
                what.device_begin, what.device_end, what.computes = begin, end, stream.computes
                if stream.computes:
                    self.trace.copied.append((begin, end, op.memory))
            else:
                channel = self.job.channel(op, self.rank)
                if what.seq > self.ended[channel]:
                    return moved  # the one before it on the communicator is on another stream
                meeting = self.job.meeting(op, self.rank, what.seq)
                if self.rank not in meeting.arrivals:
                    what.device_begin = max(begin, self.free[channel])
                    what.arrivals = meeting.arrivals
                    meeting.arrive(self.rank, what.device_begin, self.job.what(op))
                    moved = True
                if meeting.end is None:
                    return moved
                end = what.device_end = meeting.end
                self.free[channel] = end
                self.ended[channel] += 1
            stream.free = end
            stream.computed = isinstance(op, Kernel)
            stream.queue.popleft()
            stream.begun.append(min(end, max(begin, issued)))
            moved = True
        return moved

    def run_streams(self) -> bool:
        moved = False
        for stream in self.streams.values():
            moved |= self.run_stream(stream)
        return moved

    def run(self) -> bool:
        """Runs as far as it gets. True: it got on."""
        moved = self.run_streams()
        while self.current is not None or (op := next(self.program, None)) is not None:
            self.current = self.current or op
            # Streams run when the host waits for what they do: it need not know before.
            if self.issue(self.current):
                self.current = None
            elif not self.run_streams():
                return moved
            moved = True
        while self.run_streams():
            moved = True
        self.trace.finished = all(not s.queue for s in self.streams.values())
        return moved


class _Job:
    def __init__(self, machine: Machine, comms: dict[str, list[int]], seed: int):
        self.machine, self.comms, self.seed = machine, comms, seed
        self.meetings: dict[tuple, _Meeting] = {}
        self.random: dict[tuple, random.Random] = {}

    def jitter(self, of: int | tuple, kind: str) -> float:
        """Returns a factor for the next duration of its kind. Each rank and kind has a series of its
        own, so that a cause changes nothing but what it is about."""
        if (of, kind) not in self.random:
            self.random[of, kind] = random.Random(f"{self.seed} {of} {kind}")
        return max(0.5, self.random[of, kind].gauss(1.0, self.machine.jitter))

    def channel(self, op: Collective, rank: int) -> tuple:
        if op.function in ("ncclSend", "ncclRecv"):
            return (op.comm, op.function, op.peer)
        return (op.comm,)

    def what(self, op: Collective) -> tuple:
        if op.function in ("ncclSend", "ncclRecv"):
            return (op.count, op.dtype)
        return (op.function, op.count, op.dtype, op.reduce, op.peer)

    def meeting(self, op: Collective, rank: int, seq: int) -> _Meeting:
        members = self.comms[op.comm]
        key: tuple = (op.comm, seq)
        taking_part = members
        if op.function in ("ncclSend", "ncclRecv"):
            me = members.index(rank)
            ends = (me, op.peer) if op.function == "ncclSend" else (op.peer, me)
            key = (op.comm, "p2p", ends, seq)
            taking_part = [members[e] for e in ends]
        if key not in self.meetings:
            self.meetings[key] = _Meeting(
                len(set(taking_part)), lambda: self.transfer_ns(op, taking_part, key)
            )
        return self.meetings[key]

    def transfer_ns(self, op: Collective, members: list[int], key: tuple) -> int:
        m, n = self.machine, len(members)
        apart = len({m.host_of(r) for r in members}) > 1
        bandwidth = m.between if apart else m.within
        bandwidth *= min(m.link_factor.get(r, 1.0) for r in members) if apart and not op.sound else 1.0
        size = bytes_of(op, n) * busbw_factor(op.function, n)
        return round((m.latency_ns + size / bandwidth) * self.jitter(key[:-1], "transfer"))


def simulate(
    programs: dict[int, Iterable[Operation]],
    comms: dict[str, list[int]],
    machine: Machine,
    seed: int = 0,
) -> dict[int, RankTrace]:
    """Runs the programs of all ranks, until they end or wait for each other for ever."""
    job = _Job(machine, comms, seed)
    ranks = [_Rank(job, rank, program) for rank, program in programs.items()]
    moved = True
    while moved:
        moved = False
        for rank in ranks:
            moved |= rank.run()
    for rank in ranks:
        trace = rank.trace
        trace.end = rank.now
        busy = trace.computing()
        for call in trace.calls:
            if call.device_end is not None and isinstance(call.op, Collective):
                length = call.device_end - call.device_begin
                call.exposed_ns = length - covered(call.device_begin, call.device_end, busy)
    return {rank.rank: rank.trace for rank in ranks}

"""Makes rank files of whole jobs as the contract's page describes them, healthy or with one fault.

A job is a list of operations on communicators, drawn from a seed; each rank's file follows from it.
Signatures are computed by the formula of the page (signatures.py). No code is shared with the tool
or the library, so that the files test them independently.
"""

import collections
import copy
import dataclasses
import functools
import json
import os
import pathlib
import random
import struct

from lib import handmade
from lib.signatures import fnv1a, mix, mix64, of_calls

BASE_NS = 1763683200_000000000  # 2025-11-21 00:00:00 UTC
STEP_NS = 100_000  # between the starts of two operations

SIZES = {  # of an element, in bytes
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "float16": 2, "float32": 4, "float64": 8,
    "bfloat16": 2,
}  # fmt: skip
THREADS = {7: "python", 8: "pt_autograd_0"}
BUCKETS = {
    "ncclAllGather": "ALLGATHER", "ncclReduceScatter": "RESHARDING", "ncclAllReduce": "ALLREDUCE",
    "ncclBroadcast": "BROADCAST", "ncclReduce": "REDUCE", "ncclAlltoAll": "ALLTOALL",
    "ncclSend": "P2P", "ncclRecv": "P2P", "cudaMemcpyAsync": "H2D", "cudaMemcpy": "D2H",
}  # fmt: skip
REDUCING = ("ncclReduceScatter", "ncclAllReduce", "ncclReduce")
ROOTED = ("ncclBroadcast", "ncclReduce")
TIMES_RANKS = ("ncclAllGather", "ncclReduceScatter", "ncclAlltoAll")
COLLECTIVES = [name for name, bucket in BUCKETS.items() if bucket not in ("P2P", "H2D", "D2H")]
# Most ranks of a job say the same, so costly parts are computed once (@functools.cache).
json_of = json.JSONEncoder(separators=(",", ":")).encode


def snapshot(base_ns, cut, text):
    """Returns the snapshot file that holds this text, which follows `cut` bytes of a rank file."""
    entry = struct.pack("<8s6Q", b"tprofsn1", 2, base_ns, cut, 4096, len(text), fnv1a(text))
    entry += struct.pack("<Q", fnv1a(entry))
    return entry + bytes(4096 - len(entry)) + text


@functools.cache
def signature(calls):
    """Returns signature and marks of collectives, each given as (function, count, dtype, root, reduction)."""
    return of_calls([mix(seq, *call) for seq, call in enumerate(calls)])


@dataclasses.dataclass(frozen=True)
class Op:
    """A call of one rank. `comm` is an index into Job.comms; copies have none."""

    function: str
    at: int  # place in the job's program: when it is called
    count: int
    comm: int | None = None
    dtype: str = "byte"
    reduce: str | None = None
    peer: int | None = None  # root, or the other end, as a rank of the communicator
    captured: bool = False
    autograd: bool = False  # called by PyTorch's thread for the backward pass
    stream: int = 0  # the default stream
    group: int | None = None
    ns: int = 5000  # on the host
    begin_ns: int | None = None  # in its rank's file, instead of its place
    device: tuple[int, int] | None = None  # from the call to its begin on the device, and how long it took there, in ns
    timed_calls: int = 1  # of a group: it, and those before it, have this time together

    @property
    def collective(self):
        return self.function in COLLECTIVES

    @property
    def call(self):
        """The values that the signature covers."""
        return (self.function, self.count, self.dtype, self.peer, self.reduce)


@dataclasses.dataclass
class Rank:
    """The calls that one rank makes, and how much of them its file holds."""

    ops: list
    order: list  # the rank's communicators; the first gets number 1
    # or "recovered" (killed, read from its ring file), "lost" (nothing follows its lines),
    # "snapshot" (known as of `until` by the snapshot beside its file)
    end: str = "closed"
    inside: list = dataclasses.field(default_factory=list)  # calls that never returned
    lines: bool = True  # False: TPROF_RANKS leaves the rank out
    quota: int | None = None  # at most this many event lines are written
    dropped: dict = dataclasses.field(default_factory=dict)
    no_line: set = dataclasses.field(default_factory=set)  # indices of ops without a line
    launches: int = 0  # of the graph that holds its captured calls
    clock_step_ns: int = 0  # step of the wall clock before the last anchor
    ledger_error: dict = dataclasses.field(default_factory=dict)  # function -> calls too many
    until: int | None = None  # where its time ends, as a place in the program
    clock_ns: int = 0  # how far its host's wall clock is ahead
    host: int | None = None  # None: one host for every eight ranks
    exit_status: int | None = None  # what the file says of it
    header: dict = dataclasses.field(default_factory=dict)  # what its header says in another way
    split_at: int | None = None  # the op before which its communicators but the first are made
    shuffle: random.Random | None = None  # several threads: lines are not in the order of issue


@dataclasses.dataclass
class Job:
    comms: list  # the ranks of each communicator
    ranks: list
    seed: int = 0

    @property
    def size(self):
        return len(self.ranks)

    def id(self, comm):
        return f"{mix64(self.seed * 1000 + comm):016x}"

    def collectives(self, rank, comm):
        return [op for op in self.ranks[rank].ops if op.comm == comm and op.collective]

    def copy(self):
        """Returns a copy whose `ops` and `inside` may be changed; the operations themselves never are."""
        ranks = [copy.copy(rank) for rank in self.ranks]
        for rank in ranks:
            rank.ops, rank.inside = list(rank.ops), list(rank.inside)
        return dataclasses.replace(self, ranks=ranks)

    def write(self, folder, base=None):
        """Writes the files of all ranks. Files that are the same in `base`, a Written, are linked."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.size):
            self._write_rank(folder, rank, base)
        return folder

    def _write_rank(self, folder, rank, base):
        name = f"rank-{rank:05}.json"
        if base is not None and base.job.ranks[rank] == self.ranks[rank]:
            os.link(base.folder / name, folder / name)
            return
        file = _RankFile(self, rank)
        (folder / name).write_text(file.text())
        if file.snapshot:
            (folder / f".rank-{rank:05}.snapshot").write_bytes(file.snapshot)


@dataclasses.dataclass(frozen=True)
class Written:
    """A job and where its files are."""

    job: Job
    folder: pathlib.Path


def micros(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def drawn(cat, name, pid, tid, ts, dur, args):
    """Returns the line of what is no call: of a device's time, computation or a range."""
    return (
        f'{{"cat":"{cat}","name":"{name}","ph":"X","pid":{pid},"tid":{tid},"ts":{micros(ts)},"dur":{micros(dur)},"args":{args}}}'
    )


def bytes_of(op, nranks):
    if op.comm is None:
        return op.count
    return op.count * (nranks if op.function in TIMES_RANKS else 1) * SIZES[op.dtype]


@functools.cache
def event_args(op, place, size, unfinished):
    """Returns JSON. `place`: a copy's device; else the communicator's number and the place in its sequence."""
    args = {"unfinished": True} if unfinished else {}
    if op.captured:
        args["captured"] = True
    if op.comm is None:
        return json_of(args | {"bytes": size, "device": place})
    number, seq = place
    args |= {"comm": number, "seq": seq, "count": op.count, "dtype": op.dtype, "bytes": size}
    if op.peer is not None:
        args["peer"] = op.peer
    if op.reduce is not None:
        args["reduce"] = op.reduce
    if op.stream:
        args["stream"] = op.stream
    if op.group is not None:
        args["group"] = op.group
    return json_of(args)


@functools.cache
def ledger_row(function, dtype, place, bytes_class, mode, calls, count, size, host_ns, device_ns, timed, host_ns_max,
               unfinished, too_many, autograd):  # fmt: skip
    """Returns JSON. `place`: the communicator's number, or a copy's device."""
    copies = BUCKETS[function] in ("H2D", "D2H")
    return json_of(handmade.row(
        bucket=BUCKETS[function], name=function, dtype=dtype, comm=None if copies else place,
        bytes_class=bytes_class, mode=mode, calls=calls + too_many, count=count, elements=size // SIZES.get(dtype, 1),
        bytes=size, host_ns=host_ns, host_ns_max=host_ns_max, device_ns=device_ns, device_timed=timed, unfinished=unfinished,
        **({"device": place} if copies else {}), **({"thread": "autograd"} if autograd else {}),
    ))  # fmt: skip


def ledger(pid, reason, ts, rows, calls):
    """Returns the line of these rows, which are JSON. `calls`: the collectives by the communicator's number."""
    comms = []
    for comm, made in calls.items():
        total, marks = signature(tuple(made))
        comms.append({"comm": comm, "collectives": len(made), "signature": total, "marks": marks})
    args = f'{{"epoch":0,"reason":"{reason}","ts":{micros(ts)},"rows":[{",".join(rows)}],"comms":{json_of(comms)}}}'
    return f'{{"name":"tprof_ledger","ph":"M","pid":{pid},"tid":0,"args":{args}}}'


class _RankFile:
    def __init__(self, job, rank):
        self.job, self.rank, self.plan = job, rank, job.ranks[rank]
        self.number = {comm: n for n, comm in enumerate(self.plan.order, start=1)}
        self.seq = {}
        self.rows = {}
        self.calls = {comm: [] for comm in self.plan.order}
        self.sizes = {comm: len(job.comms[comm]) for comm in self.plan.order}
        self.now = 0
        self.base = BASE_NS + rank + self.plan.clock_ns
        self.snapshot = b""

    def text(self):
        plan = self.plan
        events, ledgers, written = [], [], 0
        dropped = dict(plan.dropped)
        for place, op in enumerate(plan.ops):
            line = self._event(op)
            if place == plan.split_at:
                events += self._comms(plan.order[1:])
            if not plan.lines:
                dropped["window"] = dropped.get("window", 0) + 1
            elif plan.quota is not None and written >= plan.quota:
                dropped["quota"] = dropped.get("quota", 0) + 1
            elif place not in plan.no_line:
                events.append(line)
                written += 1
            if place == len(plan.ops) // 2:
                ledgers.append((len(events), [self._clock(), self._ledger("interval")]))
        if plan.shuffle:
            for i in range(0, len(events) - 1, 2):
                if plan.shuffle.random() < 0.5:
                    events[i], events[i + 1] = events[i + 1], events[i]
        for at, lines in reversed(ledgers):
            events[at:at] = lines
        lines = [*self._head(), *events]
        if plan.until is not None:
            self.now = plan.until * STEP_NS
        written = "[\n" + ",\n".join(lines) + ",\n"
        if plan.end == "lost":
            return written
        end = [self._event(op, unfinished=True) for op in plan.inside]
        end += [self._clock(plan.clock_step_ns)] if plan.end == "closed" else []
        end += [self._ledger("close", plan.ledger_error), *self._comms(plan.order), self._footer(dropped)]
        if plan.end != "snapshot":
            return written + ",\n".join(end) + "\n]\n"
        self.snapshot = snapshot(self.base, len(written), (",\n".join(end) + ",\n").encode())
        return written

    def _line(self, line):
        return json_of(line | {"pid": self.rank})

    def _head(self):
        base, rank = self.base, self.rank
        host = rank // 8 if self.plan.host is None else self.plan.host
        args = {
            "run_id": f"job-{self.job.seed}", "rank": rank, "world_size": self.job.size, "local_rank": rank % 8,
            "host": f"node{host}", "boot_id": f"boot-{host}", "pid": 4000 + rank, "start_ns": base - 10**9,
            "base_time_ns": base, "clock": [[0, base, 48]],
        }  # fmt: skip
        yield self._line(handmade.header(**args | self.plan.header))
        yield from self._comms(self.plan.order if self.plan.split_at is None else self.plan.order[:1])
        if any(op.autograd for op in self.plan.ops):
            yield from (self._line(line) for line in handmade.threads(THREADS))

    def _comms(self, order):
        for comm in order:
            members = self.job.comms[comm]
            yield self._line(handmade.comm(
                comm=self.number[comm], id=self.job.id(comm), nranks=len(members), rank=members.index(self.rank),
                device=self.rank % 8,
            ))  # fmt: skip

    def _event(self, op, unfinished=False):
        start = op.at * STEP_NS + self.rank % 7 if op.begin_ns is None else op.begin_ns
        size = bytes_of(op, self.sizes.get(op.comm, 1))
        place = self.rank % 8
        if op.comm is not None:
            channel = (op.comm,) if op.collective else (op.comm, op.peer, op.function)
            seq = self.seq.get(channel, 0)
            self.seq[channel] = seq + 1
            place = (self.number[op.comm], seq)
        modes = ["captured", "replayed"] if op.captured else ["direct"]
        for mode in modes:
            key = (op.function, op.dtype, op.comm, size.bit_length() - 1, mode, op.autograd)
            row = self.rows.setdefault(key, [0] * 8)  # the longest, and seven sums
            times = self.plan.launches if mode == "replayed" else 1
            ended = self.plan.end != "snapshot"  # a rank that still runs is inside a call only for now
            row[0] = max(row[0], 0 if unfinished else op.ns)
            timed = (op.device[1], op.timed_calls) if op.device else (0, 0)
            sums = [0, 0, 0, 0, 0, 0, ended] if unfinished else [1, op.count, size, op.ns, *timed, 0]
            for i, value in enumerate(sums, start=1):
                row[i] += value * times
        if op.collective and not unfinished:
            self.calls[op.comm].append(op.call)
        self.now = max(self.now, start + op.ns, start + sum(op.device or ()))
        phase = '"B"' if unfinished else '"X"'
        duration = "" if unfinished else f',"dur":{micros(op.ns)}'
        args = event_args(op, place, size, unfinished)
        tid = 8 if op.autograd else 7
        line = (
            f'{{"name":"{op.function}","cat":"{BUCKETS[op.function]}","ph":{phase},'
            f'"pid":{self.rank},"tid":{tid},"ts":{micros(start)}{duration},"args":{args}}}'
        )
        if op.device is None:
            return line
        (queued, took), before = op.device, op.timed_calls - 1
        where = f'"device":{place}' if op.comm is None else f'"comm":{place[0]},"seq":{place[1] - before},"stream":1'
        together = f',"calls":{op.timed_calls}' if op.timed_calls > 1 else ""
        args = f'{{{where},"call_tid":{tid},"queued":{micros(queued + before * STEP_NS)}{together}}}'
        return f"{line},\n{drawn('DEVICE', op.function, self.rank, (1 << 23) + 1, start + queued, took, args)}"

    def _clock(self, step_ns=0):
        return self._line(handmade.metadata("tprof_clock", clock=[self.now, self.base + self.now + step_ns, 60]))

    def _ledger(self, reason, error={}):
        rows = []
        for (function, dtype, comm, bytes_class, mode, autograd), row in sorted(self.rows.items(), key=str):
            if mode == "replayed" and self.plan.launches == 0:
                continue
            place = self.rank % 8 if comm is None else self.number[comm]
            too_many = error.get(function, 0)
            longest, *sums, unfinished = row
            rows.append(
                ledger_row(function, dtype, place, bytes_class, mode, *sums, longest, unfinished, too_many, autograd)
            )
        return ledger(self.rank, reason, self.now, rows, {self.number[comm]: calls for comm, calls in self.calls.items()})

    def _footer(self, dropped):
        made = collections.Counter()
        for (function, *_, mode, _), (_, calls, *_) in self.rows.items():
            made[function] += calls if mode == "direct" else 0
        functions = [
            {"name": name, "library": "/usr/lib/libnccl.so.2" if name[0] == "n" else "/usr/lib/libcudart.so.13", "calls": n}
            for name, n in made.items()
        ]
        return self._line(handmade.footer(
            dropped=dropped, base_time_ns=self.base, coverage={"functions": functions, "unseen": [], "tools": []},
            **({} if self.plan.exit_status is None else {"exit_status": self.plan.exit_status}),
            complete=self.plan.end == "closed",
        ))  # fmt: skip


def draw(rng, comm, nranks, at, before=None):
    """Draws a collective that differs from the one before it on its communicator."""
    while True:
        function = rng.choice(COLLECTIVES)
        op = Op(
            function, at, comm=comm, count=rng.choice([1, 64, 1000, 4160, 16544, 1 << 20]),
            dtype=rng.choice(["float32", "bfloat16", "int64", "uint8"]),
            reduce=rng.choice(["sum", "max", "avg"]) if function in REDUCING else None,
            peer=rng.randrange(nranks) if function in ROOTED else None,
        )  # fmt: skip
        if before is None or op.call != before.call:
            return op


def healthy(ranks, operations, seed, comms=None, point_to_point=True, copies=True):
    """Makes a job without a fault: `operations` collectives on the world and on the groups it is split into."""
    rng = random.Random(seed)
    if comms is None:
        comms = [list(range(ranks))]
        if ranks >= 4:
            half = ranks // 2
            comms += [list(range(half)), list(range(half, ranks))]
            comms += [[r, r + half] for r in range(min(half, 4))]
    job = Job(comms, [], seed)
    for rank in range(ranks):
        order = [comm for comm, members in enumerate(comms) if rank in members]
        job.ranks.append(Rank([], random.Random(seed + rank).sample(order, len(order))))
    last = {}
    at = 1
    for n in range(operations):
        # The world goes first and last, so that its first and last operation are the job's.
        comm = 0 if n in (0, operations - 1) else rng.randrange(len(comms))
        last[comm] = draw(rng, comm, len(comms[comm]), at, last.get(comm))
        for rank in comms[comm]:
            job.ranks[rank].ops.append(last[comm])
        at += 1
        if point_to_point and n % 5 == 1 and len(comms[comm]) > 1:
            a, b = rng.sample(range(len(comms[comm])), 2)
            count = rng.choice([1, 333, 4096])
            for me, other, function in ((a, b, "ncclSend"), (b, a, "ncclRecv")):
                op = Op(function, at, comm=comm, count=count, dtype="float32", peer=other)
                job.ranks[comms[comm][me]].ops.append(op)
            at += 1
        if copies and n % 3 == 0:
            function = rng.choice(["cudaMemcpyAsync", "cudaMemcpy"])
            for rank in job.ranks:
                rank.ops.append(Op(function, at, count=rng.choice([4, 408, 65536])))
            at += 1
    return job


# Two gathers, a reduction of each kind and copies both ways.
STEP = [
    Op("cudaMemcpyAsync", 0, 2048),
    Op("ncclAllGather", 0, 4160, 0, "float32"),
    Op("cudaMemcpyAsync", 0, 408),
    Op("ncclAllGather", 0, 16544, 0, "bfloat16"),
    Op("ncclAllReduce", 0, 4096, 0, "bfloat16", "sum"),
    Op("ncclReduceScatter", 0, 16544, 0, "float32", "avg"),
    Op("ncclAllReduce", 0, 1, 0, "float64", "max"),
    Op("cudaMemcpy", 0, 4),
]


def plain(ranks, calls):
    """Makes a job whose ranks make the same steps on the world. A call takes 2 to 18 us."""
    job = Job([list(range(ranks))], [])
    for rank in range(ranks):
        took = [2000 + (mix64(rank * 7919 + n) >> 50) for n in range(calls)]
        ops = [dataclasses.replace(STEP[n % len(STEP)], at=n + 1, ns=ns) for n, ns in enumerate(took)]
        job.ranks.append(Rank(ops, [0]))
    return job

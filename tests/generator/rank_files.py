"""Writes a simulated job as rank files by the contract (interpose/format/README.md), and its truth
beside them.

Each host has its own wall clock, ahead by an offset and drifting; the processes of one host share
its monotonic clock. A rank's `ts` count on its host's clock.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import json
import pathlib
import random

from generator.habits import Case
from generator.operations import Collective, Copy
from generator.simulate import Call
from lib import handmade
from lib.jobs import BASE_NS, BUCKETS, SIZES, THREADS, bytes_of, drawn, json_of, ledger, micros
from lib.signatures import fnv1a, mix64
from lib.spans import union

MAIN, AUTOGRAD = THREADS
FILLED_NS = 10_000  # shorter gaps between kernels are no gaps
SAMPLED_NS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Clocks:
    """The clocks of hosts: how far ahead each is of the true time, and how fast it drifts."""

    offset_ns: list[int]
    drift_ppm: list[float]

    @staticmethod
    def draw(hosts: int, seed: int) -> Clocks:
        rng = random.Random(f"clocks {seed}")
        return Clocks(
            [round(rng.gauss(0, 2_000_000)) for _ in range(hosts)],
            [rng.gauss(0, 5) for _ in range(hosts)],
        )

    def of(self, host: int, true_ns: int) -> int:
        """Returns what the host's clock shows `true_ns` after the job began, less the job's start."""
        return true_ns + self.offset_ns[host] + round(true_ns * self.drift_ppm[host] / 1e6)


@dataclasses.dataclass(frozen=True)
class Settings:
    timing: bool = True  # TPROF_TIMING=events: calls of NCCL have device times
    # Where a stream ran dry between two kernels, as the library's events can't tell when.
    unsure: bool = False
    cupti: bool = False  # TPROF_TIMING=cupti: nothing tells how long launches waited in a full queue
    marks: bool = True  # steps are NVTX ranges; False: nobody marked them


def id_of(run_id: str, comm: str) -> str:
    """Returns the id of a communicator in the files."""
    return f"{mix64(fnv1a(run_id + comm)):016x}"


class RankFile:
    def __init__(self, case: Case, rank: int, clocks: Clocks, settings: Settings, run_id: str):
        self.case, self.rank, self.settings, self.run_id = case, rank, settings, run_id
        self.trace = case.traces[rank]
        self.host = case.machine.host_of(rank)
        self.clocks = clocks
        # tprof starts with the process, a little apart on each rank.
        self.begin = -10_000_000 + rank * 1_000
        self.comms = [c for c, members in case.comms.items() if rank in members]
        self.number = {c: n for n, c in enumerate(self.comms, start=1)}
        streams = dict.fromkeys(c.op.stream for c in self.trace.calls)
        self.streams = {s: n for n, s in enumerate(streams, start=1)}
        self.groups: dict[int, int] = {}

    def ts(self, true_ns: int) -> int:
        return self.clocks.of(self.host, true_ns) - self.clocks.of(self.host, self.begin)

    def dur(self, begin: int, end: int) -> int:
        return self.ts(end) - self.ts(begin)

    def line(self, line: dict) -> str:
        return json_of(line | {"pid": self.rank})

    def id_of(self, comm: str) -> str:
        return id_of(self.run_id, comm)

    def head(self) -> list[str]:
        base = BASE_NS + self.clocks.of(self.host, self.begin)
        local = self.rank % self.case.machine.ranks_per_host
        lines = [handmade.header(
            run_id=self.run_id, rank=self.rank, world_size=len(self.case.traces), local_rank=local,
            host=f"node{self.host:03}", boot_id=f"boot-{self.host}", pid=4000 + self.rank, start_ns=base - 10**9,
            base_time_ns=base, monotonic_ns=10**12 + self.clocks.of(self.host, self.begin), clock=[[0, base, 48]],
            config={"TPROF_TIMING": "cupti" if self.settings.cupti else "events"} if self.settings.timing else {},
        )]  # fmt: skip
        for comm in self.comms:
            members = self.case.comms[comm]
            lines.append(handmade.comm(
                comm=self.number[comm], id=self.id_of(comm), nranks=len(members), rank=members.index(self.rank),
                device=local,
            ))  # fmt: skip
        return list(map(self.line, lines + self.lanes()))

    def lanes(self) -> list[dict]:
        streams = [
            handmade.metadata("tprof_stream", stream=number, handle=f"0x{number * 4096:x}") for number in self.streams.values()
        ]
        return handmade.threads(THREADS) + streams

    def facts(self, call: Call) -> tuple[str, str, dict]:
        """Returns a call's function, bucket and args."""
        op = call.op
        if isinstance(op, Copy):
            name = "cudaMemcpyAsync"
            args = {"bytes": op.bytes, "device": self.rank % self.case.machine.ranks_per_host,
                    "host_memory": op.memory, "stream": self.streams[op.stream]}  # fmt: skip
            return name, op.kind, args
        size = bytes_of(op, len(self.case.comms[op.comm]))
        args = {"comm": self.number[op.comm], "seq": call.seq, "count": op.count,
                "dtype": op.dtype, "bytes": size}  # fmt: skip
        if op.peer is not None:
            args["peer"] = op.peer
        if op.reduce is not None:
            args["reduce"] = op.reduce
        args["stream"] = self.streams[op.stream]
        if call.group_end is not None:
            args["group"] = self.group(call)
        return op.function, BUCKETS[op.function], args

    def group(self, call: Call) -> int:
        return self.groups.setdefault(id(call), len(self.groups) + 1)

    def group_line(self, call: Call) -> str:
        begin, end = self.ts(call.host_end), self.ts(call.group_end)
        args = f'"group":{self.group(call)},"ts":{micros(begin)},"dur":{micros(end - begin)},"result":0,"calls":1'
        return f'{{"name":"tprof_group","ph":"M","pid":{self.rank},"tid":0,"args":{{{args}}}}}'

    def timed(self, call: Call) -> bool:
        return self.settings.timing and call.device_end is not None

    def event(self, call: Call) -> str:
        name, bucket, args = self.facts(call)
        tid = AUTOGRAD if call.op.backward else MAIN
        return (
            f'{{"name":"{name}","cat":"{bucket}","ph":"X","pid":{self.rank},"tid":{tid},'
            f'"ts":{micros(self.ts(call.host_begin))},'
            f'"dur":{micros(self.dur(call.host_begin, call.host_end))},"args":{json_of(args)}}}'
        )

    def device_line(self, call: Call, waited: int) -> str:
        name, _, args = self.facts(call)
        begin = self.ts(call.device_begin)
        what = ("device",) if isinstance(call.op, Copy) else ("comm", "seq", "stream")
        more = [f'"{key}":{args[key]}' for key in what]
        more.append(f'"call_tid":{AUTOGRAD if call.op.backward else MAIN}')
        more.append(f'"queued":{micros(begin - self.ts(call.host_begin))}')
        if call.computes:
            more.append('"computes":true')
        if waited != 0 and not self.settings.cupti:
            more.append(f'"waited":{micros(waited)}')
        took = self.dur(call.device_begin, call.device_end)
        return drawn("DEVICE", name, self.rank, (1 << 23) + args["stream"], begin, took, f"{{{','.join(more)}}}")

    def computing(self) -> list[tuple[int, int, bool]]:
        """Returns intervals, and whether the device may have stood idle in them.

        Where a stream ran dry, samples of a millisecond tell how much was computed: readers count half of what
        is unsure, so as much is unsure as makes that right.
        """
        busy = self.trace.computing()
        dry = union(self.trace.dry) if self.settings.unsure else []
        found = [(begin, end, True) for begin, end, memory in self.trace.copied if memory == "pageable"]
        for (begin, end), following in zip(busy, [begin for begin, _ in busy[1:]] + [None]):
            near = bisect.bisect_right(dry, end, key=lambda span: span[1])
            if not following or following - end < FILLED_NS or near == len(dry) or dry[near][0] >= following:
                found.append((begin, end, False))
                continue
            computed = min(end - begin, SAMPLED_NS // 2)
            idle = min(following - end, SAMPLED_NS - computed)
            sure = end - computed + max(0, computed - idle)
            found += [(begin, sure, False)] if sure > begin else []
            found.append((sure, sure + 2 * min(computed, idle), True))
        return sorted(found)

    def busy_lines(self) -> list[tuple[int, int, str]]:
        """Returns when the device computed: the union of its kernels. The last line says that it did
        not since."""
        device = self.rank % self.case.machine.ranks_per_host
        lane = self.line(handmade.threads({(3 << 22) + device: f"compute, device {device}"})[0])
        found = []
        for begin, end, unsure in self.computing():
            args = json_of({"device": device} | ({"unsure": True} if unsure else {}))
            text = drawn("BUSY", "compute", self.rank, (3 << 22) + device, self.ts(begin), end - begin, args)
            found.append((end, 1, text if found else f"{lane},\n{text}"))
        if found and not self.case.killed:
            end = self.trace.end
            args = json_of({"device": device, "unsure": True})
            found.append((end, 3, drawn("BUSY", "compute", self.rank, (3 << 22) + device, self.ts(end), 0, args)))
        return found

    def steps(self) -> list[tuple[int, str]]:
        """Returns the steps' lines with the true times at which they end."""
        found = []
        marks = self.trace.steps
        for mark, end in zip(marks, [m.begin for m in marks[1:]] + [self.trace.end]):
            ts, dur = self.ts(mark.begin), self.ts(end) - self.ts(mark.begin)
            found.append((end, drawn("NVTX", f"step {mark.number}", self.rank, (1 << 22) + MAIN, ts, dur, "{}")))
            if not self.trace.finished and mark is marks[-1]:
                found.pop()  # it never ended
        return found

    def ledger(self, calls: list[Call], now: int, reason: str) -> str:
        rows: dict[tuple, dict] = {}
        sequences: dict[str, list] = {c: [] for c in self.comms}
        for call in calls:
            name, bucket, args = self.facts(call)
            size = args["bytes"]
            dtype = args.get("dtype", "byte")
            key = (bucket, name, dtype, args.get("comm"), args.get("host_memory"),
                   size.bit_length() - 1, call.op.backward)  # fmt: skip
            row = rows.setdefault(key, handmade.row(
                bucket=bucket, name=name, dtype=dtype, comm=args.get("comm"), bytes_class=size.bit_length() - 1,
                **dict.fromkeys(("calls", "count", "elements", "bytes", "host_ns", "host_ns_max"), 0),
                **({} if "comm" in args else {key: args[key] for key in ("device", "host_memory")}),
                **({"thread": "autograd"} if call.op.backward else {}),
            ))  # fmt: skip
            host_ns = self.dur(call.host_begin, call.host_end)
            row["calls"] += 1
            row["count"] += args.get("count", size)
            row["bytes"] += size
            row["elements"] += size // SIZES.get(dtype, 1)
            row["host_ns"] += host_ns
            row["host_ns_max"] = max(row["host_ns_max"], host_ns)
            if self.timed(call):
                ns = self.dur(call.device_begin, call.device_end)
                values = {"device_ns": ns, "device_timed": 1, "device_bytes": size}
                if isinstance(call.op, Collective):
                    values |= {"exposure_known": 1, "exposure_known_ns": ns, "exposed_ns": call.exposed_ns,
                               "late": int(call.exposed_ns > 10_000)}  # fmt: skip
                    row["exposed_ns_max"] = max(row.get("exposed_ns_max", 0), call.exposed_ns)
                for field, value in values.items():
                    row[field] = row.get(field, 0) + value
                row["device_ns_max"] = max(row.get("device_ns_max", 0), ns)
            op = call.op
            if isinstance(op, Collective) and op.function not in ("ncclSend", "ncclRecv"):
                sequences[op.comm].append((op.function, op.count, op.dtype, op.peer, op.reduce))
        made = {self.number[comm]: calls for comm, calls in sequences.items()}
        return ledger(self.rank, reason, self.ts(now), map(json_of, rows.values()), made)

    def last(self, calls: list[Call]) -> list[str]:
        """Returns lines of what a rank that was killed did last: by thread, and by communicator."""
        latest: dict[tuple, Call] = {}
        for call in calls:
            latest["thread", call.op.backward] = call
            if isinstance(call.op, Collective):
                op = call.op
                alone = (op.function, op.peer) if op.function in ("ncclSend", "ncclRecv") else ()
                latest["comm", op.comm, *alone] = call
        lines = []
        for call in dict.fromkeys(map(id, latest.values())):
            call = next(c for c in latest.values() if id(c) == call)
            name, bucket, args = self.facts(call)
            ts, dur = micros(self.ts(call.host_begin)), micros(self.dur(call.host_begin, call.host_end))
            text = json_of({"function": name, "cat": bucket, "ts": "TS", "dur": "DUR", **args})
            text = text.replace('"TS"', ts).replace('"DUR"', dur)
            tid = AUTOGRAD if call.op.backward else MAIN
            lines.append(f'{{"name":"tprof_last","ph":"M","pid":{self.rank},"tid":{tid},"args":{text}}}')
        return lines

    def body(self) -> list[tuple[int, int, str]]:
        """Returns the lines of calls, computation and steps in order: the true time, the order among equals, the line."""
        timed: list[tuple[int, int, str]] = []
        waits = collections.deque(self.trace.waits)
        for call in self.trace.calls[: self.case.quota]:
            timed.append((call.host_end, 0, self.event(call)))
            if call.group_end is not None:
                timed.append((call.group_end, 0, self.group_line(call)))
            if self.timed(call):
                waited = 0
                while waits and waits[0][1] <= call.host_begin:
                    begin, end = waits.popleft()
                    waited += end - begin
                timed.append((max(call.device_end, call.group_end or call.host_end), 1, self.device_line(call, waited)))
        if self.settings.timing and self.case.quota is None:
            timed += self.busy_lines()
        if self.settings.marks:
            timed += [(end, 2, text) for end, text in self.steps()]
        return sorted(timed, key=lambda t: t[:2])

    def clock(self, now: int) -> str:
        wall = BASE_NS + self.clocks.of(self.host, now)
        return self.line(handmade.metadata("tprof_clock", clock=[self.ts(now), wall, 60]))

    def footer(self, dropped: dict) -> str:
        return self.line(handmade.footer(
            dropped=dropped, base_time_ns=BASE_NS + self.clocks.of(self.host, self.begin),
            coverage={"functions": [], "unseen": [], "tools": []}, complete=not self.case.killed,
        ))  # fmt: skip

    def text(self) -> str:
        calls, now, quota = self.trace.calls, self.trace.end, self.case.quota
        lines = self.head() + [text for _, _, text in self.body()]
        lines += self.last(calls) if self.case.killed else [self.clock(now)]
        dropped = {"quota": len(calls) - quota} if quota is not None and len(calls) > quota else {}
        lines += [self.ledger(calls, now, "close"), self.footer(dropped)]
        return "[\n" + ",\n".join(lines) + "\n]\n"


def exchanges(case: Case) -> list[dict]:
    """Returns for each communicator, bucket and class of sizes how long each rank waited for others and
    how long it transferred then, by step, and how often each rank came last, by how much."""
    rows: dict[tuple, dict] = {}
    seen: set[int] = set()
    for rank, trace in case.traces.items():
        marks = [mark.begin for mark in trace.steps]
        for call in trace.calls:
            op = call.op
            if not isinstance(op, Collective) or call.device_end is None or len(call.arrivals) < 2:
                continue
            size = bytes_of(op, len(case.comms[op.comm]))
            key = (op.comm, BUCKETS[op.function], size.bit_length() - 1)
            row = rows.setdefault(key, {"ranks": {}, "steps": {}, "last": {}})
            *_, before, last = sorted(call.arrivals.values())
            step = bisect.bisect(marks, call.host_begin) - 1
            for part, of in (("ranks", rank), ("steps", trace.steps[step].number)):
                sums = row[part].setdefault(of, [0, 0, 0])
                for i, more in enumerate((1, last - call.device_begin, call.device_end - last)):
                    sums[i] += more
            if id(call.arrivals) not in seen:
                seen.add(id(call.arrivals))
                late = row["last"].setdefault(max(call.arrivals, key=call.arrivals.get), [0, 0])
                late[0] += 1
                late[1] += last - before
    names = ("comm", "bucket", "bytes_class")
    return [dict(zip(names, key)) | row for key, row in rows.items()]


def write(case: Case, folder: pathlib.Path, seed: int = 0, settings: Settings = Settings()) -> None:
    """Writes rank-NNNNN.json of each rank that has a file, and the truth as FOLDER.truth.json."""
    folder.mkdir(parents=True)
    hosts = 1 + max(case.machine.host_of(rank) for rank in case.traces)
    clocks = Clocks.draw(hosts, seed)
    run_id = f"synthetic-{case.loop.shape}-{seed}"
    for rank in case.traces:
        if rank not in case.missing:
            file = RankFile(case, rank, clocks, settings, run_id)
            (folder / f"rank-{rank:05}.json").write_text(file.text())
    truth = dataclasses.asdict(case.truth)
    truth["clocks"] = dataclasses.asdict(clocks)
    truth["exchanges"] = exchanges(case)
    truth["steps_ns"] = {
        rank: [b.begin - a.begin for a, b in zip(t.steps, t.steps[1:])]
        for rank, t in case.traces.items()
    }
    folder.with_name(folder.name + ".truth.json").write_text(json.dumps(truth, indent=1))

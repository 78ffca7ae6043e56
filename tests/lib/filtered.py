"""A job whose calls are known with their step and phase, and what filters leave of it."""

import dataclasses
import json
import pathlib

from lib import jobs
from lib.loops import Loop
from lib.rankfile import parsed
from lib.tool import tprof

STEPS = 8
KIB, MIB = 1 << 10, 1 << 20
_, AUTOGRAD = jobs.THREADS
BUCKETS = set(jobs.BUCKETS.values())
LAYERS = (16 * KIB, 16 * KIB + 64, 40 * KIB)  # elements of float32 that a rank has of each


@dataclasses.dataclass(frozen=True)
class Call:
    rank: int
    op: str
    bucket: str
    comm: int | None  # place in Job.comms
    bytes: int
    step: int | None  # None: in none
    phase: str


def training() -> tuple[Loop, list[Call]]:
    """Returns HSDP on four ranks: shards on all of them, replicas in pairs. And each of its calls."""
    loop = Loop([[0, 1, 2, 3], [0, 2], [1, 3]])
    phases = {}  # by the place in the loop

    def phase(name, call, *arguments):
        phases[loop.at] = name
        call(*arguments)

    phase("other", loop.copy, "cudaMemcpyAsync", 4 * MIB)
    for _ in range(STEPS):
        loop.step()
        phase("load", loop.micro_batch)
        for layer in LAYERS:
            phase("forward", loop.gather, layer)
        with loop.backward():
            for layer in LAYERS:
                phase("backward", loop.gather, layer)
                phase("backward", loop.scatter, layer)
                for comm in (1, 2):
                    phase("backward", loop.reduce, layer, comm)
        phase("optimizer", loop.reduce, 1)
    calls = []
    for rank, of_rank in enumerate(loop.job.ranks):
        for op in of_rank.ops:
            step = sum(begin <= op.at for begin in loop.steps) or None
            size = jobs.bytes_of(op, len(loop.job.comms[op.comm]) if op.comm is not None else 1)
            bucket = jobs.BUCKETS[op.function]
            calls.append(Call(rank, op.function, bucket, op.comm, size, step, phases[op.at]))
    return loop, calls


def chosen(calls, ranks=None, steps=None, ops=None, sizes=None, comms=None, phases=None):
    """Returns those in all of these collections; None: any. `ops` are functions or buckets, `sizes` two borders."""
    return [
        c
        for c in calls
        if (ranks is None or c.rank in ranks)
        and (steps is None or c.step in steps)
        and (ops is None or c.op in ops or c.bucket in ops)
        and (sizes is None or sizes[0] <= c.bytes <= sizes[1])
        and (comms is None or c.comm in comms)
        and (phases is None or c.phase in phases)
    ]


def sums(calls) -> dict[str, tuple[int, int]]:
    """Returns calls and bytes by bucket."""
    return {
        bucket: (sum(c.bucket == bucket for c in calls), sum(c.bytes for c in calls if c.bucket == bucket))
        for bucket in sorted({c.bucket for c in calls})
    }


def tell_steps(file: pathlib.Path, begins: list[float], first: int = 1) -> None:
    """Adds to a rank's file the lines with which the library tells the counts of each step."""
    lines = parsed(file)
    calls = [x for x in lines if x["ph"] == "X" and x.get("cat") in BUCKETS]
    ends = [*begins[1:], calls[-1]["ts"] + 1]
    told = []
    for step, (begin, end) in enumerate(zip(begins, ends, strict=True), start=first):
        rows: dict[str, dict] = {}
        for x in calls:
            if not begin <= x["ts"] < end:
                continue
            args, size = x["args"], x["args"]["bytes"]
            dtype = args.get("dtype", "uint8")
            row: dict = {"bucket": x["cat"], "name": args.get("op", x["name"]), "dtype": dtype, "comm": None}
            row |= {key: args[key] for key in ("comm", "device", "host_memory") if key in args}
            row |= {"bytes_class": size.bit_length() - 1} | ({"thread": "autograd"} if x["tid"] == AUTOGRAD else {})
            row = rows.setdefault(json.dumps(row), row | dict.fromkeys(("calls", "count", "elements", "bytes", "host_ns"), 0))
            of_call = (1, args.get("count", size), size // jobs.SIZES.get(dtype, 1), size, round(1000 * x["dur"]))
            for key, value in zip(("calls", "count", "elements", "bytes", "host_ns"), of_call, strict=True):
                row[key] += value
        args = {"step": step, "ts": begin, "dur": end - begin, "rows": list(rows.values())}
        told.append({"name": "tprof_step", "ph": "M", "pid": calls[0]["pid"], "tid": 0, "args": args})
    texts = file.read_text().split("\n")
    place = next(i for i, line in enumerate(texts) if '"tprof_clock"' in line)
    texts[place:place] = [jobs.json_of(line) + "," for line in told]
    file.write_text("\n".join(texts))


def leave_step_lines(loop: Loop, folder: pathlib.Path) -> None:
    """Makes of each rank's file what TPROF_EVENTS=off leaves: no call has a line, and each step tells its counts."""
    for file in folder.glob("rank-*.json"):
        rank = int(file.stem.split("-")[1])
        tell_steps(file, [(begin * jobs.STEP_NS + rank % 7) / 1000 for begin in loop.steps])
        file.write_text("\n".join(line for line in file.read_text().split("\n") if '"ph":"X"' not in line))


def add_copies_within(file: pathlib.Path, autograd: tuple[int, int], other: tuple[int, int], **more: int) -> None:
    """Adds copies within the device to the ledgers of a rank: how many, and their bytes, by kind of thread."""
    rows = ""
    for (calls, size), thread in ((autograd, {"thread": "autograd"}), (other, {})):
        if calls == 0:
            continue
        rows += jobs.json_of(
            {"bucket": "D2D", "name": "cudaMemcpyAsync", "dtype": "uint8", "comm": None, "device": 0, "bytes_class": 5,
             "mode": "direct", "calls": calls, "count": size, "elements": size, "bytes": size, "host_ns": 1000 * calls,
             "host_ns_max": 1000, "device_ns": 0, "device_timed": 0, "failed": 0, "unfinished": 0, **thread, **more}
        ) + ","  # fmt: skip
    file.write_text(file.read_text().replace('"rows":[{', f'"rows":[{rows}{{'))


def line_of_error(*arguments: object) -> str:
    """Returns the one line with which a command refuses its arguments."""
    done = tprof(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("tprof: ")
    return line.removeprefix("tprof: ")


def write(folder: pathlib.Path) -> tuple[Loop, list[Call], pathlib.Path]:
    loop, calls = training()
    return loop, calls, loop.job.write(folder)

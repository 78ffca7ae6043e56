"""A job whose calls are known with their step and phase, and what filters leave of it."""

import dataclasses
import json
import pathlib

from lib import jobs
from lib.loops import Loop
from lib.tool import tprof

STEPS = 8
KIB, MIB = 1 << 10, 1 << 20
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


def leave_step_lines(loop: Loop, folder: pathlib.Path) -> None:
    """Makes of each rank's file what TPROF_EVENTS=off leaves: no call has a line, and each step tells its counts."""
    ends = [*loop.steps[1:], loop.at]
    for rank, of_rank in enumerate(loop.job.ranks):
        lines = []
        for step, (begin, end) in enumerate(zip(loop.steps, ends, strict=True), start=1):
            rows: dict[tuple, list[int]] = {}
            for op in of_rank.ops:
                if not begin <= op.at < end:
                    continue
                size = jobs.bytes_of(op, len(loop.job.comms[op.comm]) if op.comm is not None else 1)
                place: dict = {"comm": None, "device": rank % 8}
                if op.comm is not None:
                    place = {"comm": of_rank.order.index(op.comm) + 1}
                key = (op.function, op.dtype, size.bit_length() - 1, op.autograd, json.dumps(place))
                row = rows.setdefault(key, [0, 0, 0])
                for i, value in enumerate((1, op.count, size)):
                    row[i] += value
            told = [
                {"bucket": jobs.BUCKETS[name], "name": name, "dtype": dtype, **json.loads(place),
                 "bytes_class": bytes_class, **({"thread": "autograd"} if autograd else {}), "calls": n, "count": count,
                 "elements": size // jobs.SIZES.get(dtype, 1), "bytes": size, "host_ns": 5000 * n}
                for (name, dtype, bytes_class, autograd, place), (n, count, size) in rows.items()
            ]  # fmt: skip
            at = begin * jobs.STEP_NS + rank % 7
            args = {"step": step, "ts": at / 1000, "dur": (end - begin) * jobs.STEP_NS / 1000, "rows": told}
            lines.append(jobs.json_of({"name": "tprof_step", "ph": "M", "pid": rank, "tid": 0, "args": args}))
        file = folder / f"rank-{rank:05}.json"
        kept = [line for line in file.read_text().split("\n") if '"ph":"X"' not in line]
        place = next(i for i, line in enumerate(kept) if '"tprof_clock"' in line)
        kept[place:place] = [line + "," for line in lines]
        file.write_text("\n".join(kept))


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

"""Writes big jobs in seconds: PyTorch's FSDP2 with steps and device times, on as many ranks as are asked for.

    python -m generator.scale FOLDER RANKS LINES fsdp|fsdp_slow

A small job is simulated, in which each rank stands for those of its kind: the slow one, those that share its
weights, those that hold the same part of other copies, and the rest. The middle one of its three steps is repeated."""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Iterator

from generator.habits import run
from generator.loop import Loop
from generator.rank_files import Clocks, RankFile, Settings, id_of
from lib import handmade
from lib.jobs import BASE_NS, json_of

PER_NODE = 8
ELEMENTS = 12_582_912  # of a unit of the model
RUN = "big-fsdp"


def _shard_of(ranks: int) -> int:
    """Returns how many ranks share the weights: at most 64, of whole nodes, so that all groups are equally large."""
    return ranks if ranks <= 64 else next((n for n in range(64, 1, -PER_NODE) if ranks % n == 0), ranks)


def _repeated(block: str, times: int, period_ns: int, made: dict[str, int], first_step: int) -> Iterator[str]:
    """Yields the lines of a step again and again, each later by its length. `made`: collectives by communicator."""
    values: list[tuple[float, float]] = []  # the first, and how much more each time

    def place(found: re.Match) -> str:
        ts, comm, seq = found.groups()
        values.append((float(ts), period_ns / 1000) if ts else (int(seq), made[comm]) if comm else (first_step, 1))
        return '"ts":%.3f' if ts else f'"comm":{comm},"seq":%d' if comm else '"step %d"'

    template = re.sub(r'"ts":([\d.]+)|"comm":(\d+),"seq":(\d+)|"step \d+"', place, block)
    for n in range(times):
        yield template % tuple(first + n * more for first, more in values)


class _Kind:
    """The lines of one rank of the small job."""

    def __init__(self, case, rank: int, steps: int):
        self.file = file = RankFile(case, rank, Clocks([0, 0], [0.0, 0.0]), Settings(), RUN)
        marks, calls = [step.begin for step in file.trace.steps], file.trace.calls
        self.begin, self.device = file.begin, rank % case.machine.ranks_per_host
        of_step = [call for call in calls if marks[1] <= call.host_begin < marks[2]]
        made = {str(n): sum(getattr(c.op, "comm", None) == name for c in of_step) for name, n in file.number.items()}
        more = (steps - 3) * (period := marks[2] - marks[1])
        body = file.body()
        first = [text for at, _, text in body if at < marks[1]]
        middle = ",\n".join(text for at, _, text in body if marks[1] <= at < marks[2])
        last = ",\n".join(text for at, _, text in body if at >= marks[2])
        *_, last = _repeated(last, steps - 2, period, made, 2)
        self.end = file.trace.end + more
        all_calls = [c for c in calls if c.host_begin < marks[1]] + of_step * (steps - 2)
        all_calls += [c for c in calls if c.host_begin >= marks[2]]
        lines = [*first, *_repeated(middle, steps - 2, period, made, 1), last]
        self.text = ",\n".join([*lines, file.ledger(all_calls, self.end, "close")])
        self.lines = middle.count("\n") + 1

    def as_of(self, rank: int) -> str:
        """Returns the lines as another rank of the kind has them."""
        mine, device = self.device, rank % PER_NODE
        text = self.text.replace(f'"pid":{self.file.rank},', f'"pid":{rank},')
        text = text.replace(f'"device":{mine}', f'"device":{device}').replace(f"device {mine}", f"device {device}")
        return text.replace(f'"tid":{(3 << 22) + mine},', f'"tid":{(3 << 22) + device},')


def write(folder: pathlib.Path, ranks: int, lines: int, slow: bool) -> dict:
    """Writes about so many lines a rank, and returns what a reader should find."""
    folder.mkdir(parents=True, exist_ok=True)
    shard, slow_rank = _shard_of(ranks), ranks // 3 if slow else -1
    copies, units = ranks // shard, 1 if lines < 100 else 4 if lines < 2000 else 32
    loop = Loop(
        "hsdp" if copies > 1 else "fsdp", ranks=4 if copies > 1 else 2, per_host=2, steps=3, layers=units, jitter=0.0,
        params=2 * ELEMENTS // shard, layer_ns=1_000_000, dtype="bfloat16", clip=True, gpu={0: 1.2} if slow else {},
    )  # fmt: skip
    case = run(loop)
    real = {"world": ranks} | {name: copies if "replicate" in name else shard for name in case.comms if name != "world"}
    for name, members in case.comms.items():  # the ranks that are not simulated count, too
        case.comms[name] = [*members, *range(10**6, 10**6 + real[name] - len(members))]
    steps = max(3, lines // _Kind(case, 1, 3).lines)
    kinds = {rank: _Kind(case, rank, steps) for rank in range(loop.ranks)}
    for rank in range(ranks):
        group, place = divmod(rank, shard)
        kind = kinds[
            (0 if rank == slow_rank else 1) if group == slow_rank // shard or copies == 1
            else 2 if place == slow_rank % shard else 3
        ]  # fmt: skip
        node = rank // PER_NODE
        base = BASE_NS + kind.begin + (node * 7919 + 77) % 4_000_000 - 2_000_000
        header = handmade.header(
            run_id=RUN, rank=rank, world_size=ranks, local_rank=rank % PER_NODE, host=f"node{node}", boot_id=f"boot-{node}",
            pid=4000 + rank, start_ns=base - 10**9, base_time_ns=base, monotonic_ns=10**12 + base - BASE_NS,
            clock=[[0, base, 48]], config={"TPROF_TIMING": "events"},
        )  # fmt: skip
        parts = {"world": ("world", ranks, rank), "shard": (f"shard {group}", shard, place)}
        parts["replicate"] = (f"replicate {place}", copies, group)
        head = [header]
        for name, number in kind.file.number.items():
            full, n, mine = parts[name.split()[0]]
            head.append(handmade.comm(comm=number, id=id_of(RUN, full), nranks=n, rank=mine, device=rank % PER_NODE))
        ns = kind.end - kind.begin
        tail = [handmade.metadata("tprof_clock", clock=[ns, base + ns, 60]), handmade.footer(base_time_ns=base)]
        all_lines = [json_of(line | {"pid": rank}) for line in [*head, *kind.file.lanes()]]
        all_lines += [kind.as_of(rank), *(json_of(line | {"pid": rank}) for line in tail)]
        (folder / f"rank-{rank:05}.json").write_text("[\n" + ",\n".join(all_lines) + "\n]\n")
    step = case.traces[0].steps
    return {
        "ranks": ranks, "communicators": 1 + (copies + shard if copies > 1 else 0), "steps": steps,
        "step_ns": step[2].begin - step[1].begin, "slow_rank": slow_rank,
    }  # fmt: skip


if __name__ == "__main__":
    place, how_many, long, name = sys.argv[1:]
    print(json.dumps(write(pathlib.Path(place), int(how_many), int(long), name == "fsdp_slow")))

"""Compares what the device did: ours, and Kineto's, which comes from CUPTI."""

import collections
import dataclasses
import json
import pathlib
from collections.abc import Callable

NAMES = {
    "AllGather": "ALLGATHER", "ReduceScatter": "RESHARDING", "AllReduce": "ALLREDUCE", "Broadcast": "BROADCAST",
}  # fmt: skip
COPIES = {"HtoD": "H2D", "DtoH": "D2H"}


@dataclasses.dataclass(frozen=True)
class Work:
    """Work of the device from `start` to `end`, in ns."""

    bucket: str  # our name; COMPUTE: a kernel that is not NCCL's
    start: int
    end: int
    memory: str = ""  # the host's, of a copy: pageable or pinned
    bytes: int = 0  # of a copy


def is_nccls(work: Work) -> bool:
    return work.bucket in NAMES.values()


def of_kineto(path: pathlib.Path) -> list[Work]:
    found = []
    for event in json.loads(path.read_text())["traceEvents"]:
        if event.get("cat") not in ("kernel", "gpu_memcpy"):
            continue
        name = event["name"]
        names = COPIES if event["cat"] == "gpu_memcpy" else NAMES
        bucket = next((ours for theirs, ours in names.items() if theirs in name), None)
        if event["cat"] == "kernel" and not name.startswith("nccl"):
            bucket = "COMPUTE"
        if bucket:
            start = round(1000 * event["ts"])
            end = start + round(1000 * event["dur"])
            memory = next((m for m in ("pageable", "pinned") if m in name.lower()), "")
            found.append(Work(bucket, start, end, memory, event["args"].get("bytes", 0)))
    return found


def union(work: list[Work]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted((w.start, w.end) for w in work):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def covered(work: Work, by: list[tuple[int, int]]) -> int:
    """Returns how many ns of it lie within intervals that do not overlap."""
    return sum(max(0, min(work.end, end) - max(work.start, start)) for start, end in by)


def hidden_and_whole(work: list[Work], which: Callable[[Work], bool] = is_nccls) -> tuple[int, int]:
    """Returns the time of NCCL's kernels, or of `which`, under kernels that compute, and all of it: ns, summed."""
    compute = union([w for w in work if w.bucket == "COMPUTE"])
    chosen = [w for w in work if which(w)]
    return sum(covered(w, compute) for w in chosen), sum(w.end - w.start for w in chosen)


@dataclasses.dataclass
class Sums:
    calls: int = 0
    ns: int = 0
    exposed_ns: int = 0
    known_ns: int = 0  # the time of the calls of which it is known how much was exposed

    def mean(self) -> float:
        return self.ns / self.calls if self.calls else 0


def by_bucket(work: list[Work]) -> dict[str, Sums]:
    sums: dict[str, Sums] = collections.defaultdict(Sums)
    for w in work:
        sums[w.bucket].calls += 1
        sums[w.bucket].ns += w.end - w.start
    return sums


def of_ledger(rows: list[dict]) -> dict[str, Sums]:
    sums: dict[str, Sums] = collections.defaultdict(Sums)
    for row in rows:
        if row["mode"] != "direct" or not row["device_timed"]:
            continue
        sums[row["bucket"]].calls += row["device_timed"]
        sums[row["bucket"]].ns += row["device_ns"]
        sums[row["bucket"]].exposed_ns += row.get("exposed_ns", 0)
        sums[row["bucket"]].known_ns += row.get("exposure_known_ns", 0)
    return sums


def exposed(ours: dict[str, Sums], work: list[Work]) -> str:
    """Returns the exposed share of NCCL's time, ours of the calls of which it is known and that of the kernels."""
    hidden, whole = hidden_and_whole(work)
    ns, known, timed = (
        sum(getattr(ours.get(bucket, Sums()), field) for bucket in NAMES.values())
        for field in ("exposed_ns", "known_ns", "ns")
    )
    if not known or not whole:
        return "nothing is known of what was exposed"
    return (
        f"exposed {100 * ns / known:.1f} % of {known / 1e6:.2f} ms known ({timed / 1e6:.2f} timed),"
        f" by kernels {100 * (1 - hidden / whole):.1f} % of {whole / 1e6:.2f} ms"
    )


def compared(ours: dict[str, Sums], theirs: dict[str, Sums]) -> str:
    """Returns what a call of each bucket took on average, ours less theirs."""
    texts = []
    for bucket in (*NAMES.values(), *COPIES.values()):
        a, b = ours.get(bucket, Sums()), theirs.get(bucket, Sums())
        if a.calls and b.calls:
            texts.append(f"{bucket} {(a.mean() - b.mean()) / 1000:+.1f} us of {b.mean() / 1000:.1f} ({a.calls} calls)")
    return ", ".join(texts) or "nothing that both timed"


def moved(work: list[Work]) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns (bucket, memory) -> calls and bytes, of copies; of NCCL's kernels the calls."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for w in work:
        if w.bucket != "COMPUTE":
            calls, size = found.get((w.bucket, w.memory), (0, 0))
            found[w.bucket, w.memory] = calls + 1, size + w.bytes
    return found


def moved_by_ledger(rows: list[dict]) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns the same of what ran: calls that were captured into a graph run when it is launched."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        if row["mode"] == "captured" or row["bucket"] not in (*NAMES.values(), *COPIES.values()):
            continue
        copy = row["bucket"] in COPIES.values()
        calls, size = found.get(where := (row["bucket"], row.get("host_memory", "") if copy else ""), (0, 0))
        found[where] = calls + row["calls"], size + (row["bytes"] if copy else 0)
    return found

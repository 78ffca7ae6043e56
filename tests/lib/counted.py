"""Reads the client's own counts per thread and kind of call (layout: counts.h)."""

import pathlib
import re
import struct

from lib.build import REPO

_KIND = re.compile(r"X\((\w+), (\w+), (\w+), (\d+)\)")
# Name of the kind -> (function, dtype, API count or bytes of one call).
KINDS = {
    name: (function.removesuffix("_d2d"), dtype, int(amount))
    for name, function, dtype, amount in _KIND.findall(
        (REPO / "tests/fault/counts.h").read_text()
    )
}
assert len(KINDS) == 14
REFUSED = ("refused", "lost_reduce", "lost_broadcast")
WITHOUT_LINES = ("d2d",)

_HEAD = struct.Struct("<QQ")
_THREAD = struct.Struct(f"<Q{3 * len(KINDS)}Q")


def bucket(kind: str) -> str:
    """Returns the kind's bucket, by the contract's table."""
    return {
        "ncclAllGather": "ALLGATHER",
        "ncclReduceScatter": "RESHARDING",
        "ncclAllReduce": "ALLREDUCE",
        "ncclBroadcast": "BROADCAST",
        "ncclSend": "P2P",
        "ncclRecv": "P2P",
    }.get(KINDS[kind][0], kind.upper())


def key(kind: str) -> tuple[str, str, str]:
    """Returns (bucket, function, dtype), as a trace names the kind."""
    function, dtype, _ = KINDS[kind]
    return bucket(kind), function, dtype


def read(path: pathlib.Path) -> list[tuple[int, dict[str, tuple[int, int, int]]]]:
    """Returns one (thread id, {kind: (entered, returned, failed)}) per thread, in order of their start."""
    data = path.read_bytes()
    _, threads = _HEAD.unpack_from(data)
    result = []
    for i in range(threads):
        tid, *numbers = _THREAD.unpack_from(data, _HEAD.size + i * _THREAD.size)
        result.append(
            (tid, {kind: tuple(numbers[3 * n : 3 * n + 3]) for n, kind in enumerate(KINDS)})
        )
    return result


def totals(path: pathlib.Path) -> dict[str, tuple[int, int, int]]:
    """Returns the sums over all threads of a process."""
    threads = [dict.fromkeys(KINDS, (0, 0, 0)), *(counts for _, counts in read(path))]
    return {kind: tuple(map(sum, zip(*(t[kind] for t in threads)))) for kind in KINDS}

"""Computes the signature of a communicator's collectives, by the contract's page alone."""

import collections
import functools

from lib.rankfile import RankFile, accepted

WORD = (1 << 64) - 1
DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "bfloat16", "float8e4m3", "float8e5m2"]  # fmt: skip
REDUCTIONS = [None, "sum", "prod", "max", "min", "avg", "custom"]
ALONE = ("ncclSend", "ncclRecv", "ncclPutSignal", "ncclSignal", "ncclWaitSignal")


def mix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def fold_product(a: int, b: int) -> int:
    high, low = divmod(a * b, 1 << 64)
    return high ^ low


@functools.cache
def fnv1a(name: str | bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in name.encode() if isinstance(name, str) else name:
        h = (h ^ byte) * 0x100000001B3 & WORD
    return h


def mix(seq: int, function: str, count: int, dtype: str, root: int | None, reduce: str | None) -> int:
    last = DTYPES.index(dtype) << 40 ^ REDUCTIONS.index(reduce) << 48
    last ^= 0xFFFFFFFF if root is None else root
    first = fold_product(seq ^ fnv1a(function), count ^ 0x9E3779B97F4A7C15)
    return fold_product(first ^ last, 0xBF58476D1CE4E5B9)


def of_calls(mixed: list[int]) -> tuple[str, list[str]]:
    """Returns signature and marks of collectives in their order."""
    sums = [0]
    for one in mixed:
        sums.append((sums[-1] + one) & WORD)
    return f"{sums[-1]:016x}", [f"{sums[2**k]:016x}" for k in range(len(mixed).bit_length())]


def wrong(file: RankFile) -> list[str]:
    """Returns where the lines are not numbered in order of issue, or where the ledger's signature
    differs.

    The file must have a line for every call."""
    collectives, messages = collections.defaultdict(list), collections.defaultdict(list)
    for event in file.events:
        args = event["args"]
        if "comm" not in args or args["comm"] is None or not accepted(args):
            continue
        if event["name"] in ALONE:
            messages[args["comm"], args["peer"], event["name"]].append(args["seq"])
        else:
            call = (event["name"], args["count"], args["dtype"], args.get("peer"), args.get("reduce"))
            collectives[args["comm"]].append((args["seq"], mix(args["seq"], *call)))
    found = [f"{key}: numbered {seqs}" for key, seqs in messages.items()
             if sorted(seqs) != list(range(len(seqs)))]  # fmt: skip
    for entry in file.ledgers[-1]["comms"]:
        mine = sorted(collectives.pop(entry["comm"], []))
        if [seq for seq, _ in mine] != list(range(entry["collectives"])):
            found.append(f"{entry['comm']}: {entry['collectives']} numbered {[s for s, _ in mine]}")
            continue
        signature, marks = of_calls([mixed for _, mixed in mine])
        if (entry["signature"], entry["marks"]) != (signature, marks):
            found.append(f"{entry['comm']}: signature {entry}, expected {signature} {marks}")
    return found + [f"{comm}: not in the ledger" for comm in collectives]

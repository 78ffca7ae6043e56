"""Computes the signature of a communicator's collectives from event lines, by the contract's page alone."""

import collections

from lib.rankfile import RankFile, accepted

WORD = (1 << 64) - 1
DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "bfloat16", "float8e4m3", "float8e5m2"]  # fmt: skip
REDUCTIONS = [None, "sum", "prod", "max", "min", "avg", "custom"]
ALONE = ("ncclSend", "ncclRecv", "ncclPutSignal", "ncclSignal", "ncclWaitSignal")


def _f(a: int, b: int) -> int:
    high, low = divmod(a * b, 1 << 64)
    return high ^ low


def _name(name: str) -> int:
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & WORD
    return h


def _mix(name: str, args: dict) -> int:
    root = args.get("peer")
    last = DTYPES.index(args["dtype"]) << 40 ^ REDUCTIONS.index(args.get("reduce")) << 48
    last ^= 0xFFFFFFFF if root is None else root
    first = _f(args["seq"] ^ _name(name), args["count"] ^ 0x9E3779B97F4A7C15)
    return _f(first ^ last, 0xBF58476D1CE4E5B9)


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
            collectives[args["comm"]].append((args["seq"], _mix(event["name"], args)))
    found = [f"{key}: numbered {seqs}" for key, seqs in messages.items()
             if sorted(seqs) != list(range(len(seqs)))]  # fmt: skip
    for entry in file.ledgers[-1]["comms"]:
        mine = sorted(collectives.pop(entry["comm"], []))
        if [seq for seq, _ in mine] != list(range(entry["collectives"])):
            found.append(f"{entry['comm']}: {entry['collectives']} numbered {[s for s, _ in mine]}")
            continue
        sums = [0]
        for _, mixed in mine:
            sums.append((sums[-1] + mixed) & WORD)
        marks = [f"{sums[2**k]:016x}" for k in range(len(mine).bit_length())]
        if (entry["signature"], entry["marks"]) != (f"{sums[-1]:016x}", marks):
            found.append(f"{entry['comm']}: signature {entry}, expected {sums[-1]:016x} {marks}")
    return found + [f"{comm}: not in the ledger" for comm in collectives]

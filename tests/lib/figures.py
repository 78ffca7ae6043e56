"""Brings the stand-in's tally and our ledger to one shape, so that they can be subtracted."""

import re

from lib.rankfile import RankFile, accepted

FIGURES = ("calls", "count", "elements", "bytes", "failed")

COPIES = {"H2D", "D2H", "D2D", "H2H", "MANAGED"}

SIZE = {
    "unknown": 0,  # a type that NCCL does not have: such a call is refused
    "int8": 1, "uint8": 1, "float8e4m3": 1, "float8e5m2": 1, "byte": 1,
    "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4,
    "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip

BUCKET = {
    "ncclAllGather": "ALLGATHER",
    "ncclReduceScatter": "RESHARDING",
    "ncclAllReduce": "ALLREDUCE",
    "ncclBroadcast": "BROADCAST",
    "ncclBcast": "BROADCAST",
    "ncclReduce": "REDUCE",
    "ncclAlltoAll": "ALLTOALL",
    "ncclSend": "P2P",
    "ncclRecv": "P2P",
    "ncclEpDispatch": "EP",
    "ncclEpCombine": "EP",
    "ncclEpComplete": "EP",
    "ncclGather": "OTHER_COLL",
    "ncclScatter": "OTHER_COLL",
}

# The API count of these is one rank's part of the message; that of all others is the whole message.
COUNT_IS_PER_RANK = {
    "ncclAllGather", "ncclReduceScatter", "ncclAlltoAll", "ncclGather", "ncclScatter",
}  # fmt: skip


def _add(table: dict, key: tuple, **figures: int) -> None:
    total = table.setdefault(key, dict.fromkeys(FIGURES, 0))
    for name, value in figures.items():
        total[name] += value


def of_tally(tally: dict, place=lambda row: row["comm"]) -> dict[tuple, dict[str, int]]:
    """Returns (bucket, function, dtype, communicator's ordinal, mode) -> figures."""
    nranks = {comm["ordinal"]: comm["nranks"] for comm in tally["comms"]}
    nranks[None] = 1
    table: dict = {}
    for row in tally["rows"]:
        copy = row["kind"] is not None
        parts = nranks[row["comm"]] if row["function"] in COUNT_IS_PER_RANK else 1
        elements = row["bytes"] if copy else row["count"] * parts
        assert row["bytes"] == elements * SIZE[row["dtype"]], f"the tally contradicts itself: {row}"
        key = (
            row["kind"] if copy else BUCKET[row["function"]],
            row["function"],
            row["dtype"],
            place(row),
            row["mode"],
        )
        _add(
            table,
            key,
            calls=row["returned"],
            # The API of a copy has no count.
            count=0 if copy else row["count"],
            elements=elements,
            bytes=row["bytes"],
            failed=row["failed"],
        )
    return table


def of_ledger(file: RankFile, place=None) -> dict[tuple, dict[str, int]]:
    """Does the same for a rank file, whose communicators are numbered in order of creation."""
    ordinal = {comm["comm"]: number for number, comm in enumerate(file.comms, start=1)}
    place = place or (lambda row: ordinal.get(row["comm"]))
    table: dict = {}
    for row in file.ledger_rows():
        copy = row["bucket"] in COPIES
        key = (
            row["bucket"],
            row["name"],
            row["dtype"],
            place(row),
            row["mode"],
        )
        figures = {name: row[name] for name in FIGURES}
        _add(table, key, **(figures | {"count": 0} if copy else figures))
    return table


def of_plain_names(table: dict) -> dict:
    """Merges per-thread twins into their functions: the stand-in counts both under the function's name."""
    merged: dict = {}
    for (bucket, name, *rest), values in table.items():
        plain = re.sub(r"_pt(ds|sz)$", "", name) if name.startswith("cuda") else name
        _add(merged, (bucket, plain, *rest), **values)
    return merged


def of_lines(file: RankFile) -> dict[tuple, dict[str, int]]:
    """Does the same for the event lines. Skips captured calls, which are listed elsewhere; replays have no lines."""
    ordinal = {comm["comm"]: place for place, comm in enumerate(file.comms, start=1)}
    table: dict = {}
    for event in file.events:
        args = event["args"]
        if args.get("captured", False):
            continue
        comm = args.get("comm")
        key = (
            event["cat"],
            event["name"],
            args.get("dtype", "byte"),
            None if comm is None else ordinal[comm],
            "direct",
        )
        if not accepted(args):
            _add(table, key, failed=1)
        else:
            count = 0 if comm is None else args["count"]
            _add(
                table,
                key,
                calls=1,
                count=count,
                elements=args["bytes"] // SIZE[args.get("dtype", "byte")],
                bytes=args["bytes"],
            )
    return table


def by_member(table: dict, comms: list[dict]) -> dict:
    """Puts the size and rank of the communicator's member in place of its ordinal, and adds up
    equal members. This is for processes of several ranks, whose threads create communicators in any
    order."""
    members = {n: (comm["nranks"], comm["rank"]) for n, comm in enumerate(comms, start=1)}
    summed: dict = {}
    for (bucket, function, dtype, comm, mode), values in table.items():
        size, rank = members.get(comm, (None, None))
        _add(summed, (bucket, function, dtype, size, rank, mode), **values)
    return summed


def sum_of_differences(ours: dict, theirs: dict) -> int:
    zero = dict.fromkeys(FIGURES, 0)
    return sum(
        abs(ours.get(key, zero)[name] - theirs.get(key, zero)[name])
        for key in ours.keys() | theirs.keys()
        for name in FIGURES
    )


def difference(ours: dict, theirs: dict) -> str:
    """Returns one readable line per figure that differs; empty if both tables hold the same."""
    lines = []
    zero = dict.fromkeys(FIGURES, 0)
    for key in sorted(set(ours) | set(theirs), key=str):
        left, right = ours.get(key, zero), theirs.get(key, zero)
        for name in FIGURES:
            if left[name] != right[name]:
                lines.append(
                    f"{key}: {name} is {left[name]}, expected {right[name]}"
                    f" ({left[name] - right[name]:+d})"
                )
    return "\n".join(lines)

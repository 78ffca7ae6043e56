#!/usr/bin/env python3
"""Reads what the stand-in counted: the files tally-<pid> that it leaves in $STANDIN_TALLY.

    tally.py FILE|FOLDER...     prints them as a JSON array
"""

import collections
import json
import pathlib
import struct
import sys

# engine/tally.cpp
HEADER = struct.Struct("<8sIIIIII")
COMM = struct.Struct("<Qiiii32s")
ROW = struct.Struct("<48sIi5B3xI4xQ8Q")

DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
          "bfloat16", "float8e4m3", "float8e5m2"]
KINDS = ["H2H", "H2D", "D2H", "D2D", "MANAGED"]
MEMORY = [None, "pinned", "managed", "pageable"]
MODES = ["direct", "captured", "replayed"]


def read(path):
    """Returns one process: {"pid", "comms": [...], "rows": [...]}."""
    data = pathlib.Path(path).read_bytes()
    magic, pid, max_comms, _, _, comms, rows = HEADER.unpack_from(data)
    if magic != b"standin1":
        raise ValueError(f"{path}: not a tally of the stand-in")
    first_row = HEADER.size + max_comms * COMM.size
    return {
        "pid": pid,
        "comms": [read_comm(data, i) for i in range(comms)],
        "rows": [read_row(data, first_row + i * ROW.size) for i in range(rows)],
    }


def read_comm(data, index):
    ident, nranks, rank, device, _, name = COMM.unpack_from(data, HEADER.size + index * COMM.size)
    return {"ordinal": index + 1, "id": f"{ident:016x}", "nranks": nranks, "rank": rank,
            "device": device, "name": name.rstrip(b"\0").decode() or None}


def dtype_name(dtype):
    if dtype == 255:
        return "byte"
    return DTYPES[dtype] if dtype < len(DTYPES) else "unknown"


def read_row(data, offset):
    name, thread, comm, dtype, kind, mode, device, memory, active, entered, *slots = ROW.unpack_from(data, offset)
    returned, failed, count, size = slots[4 * active:4 * active + 4]
    return {
        "thread": thread,
        "function": name.rstrip(b"\0").decode(),
        "dtype": dtype_name(dtype),
        "comm": comm or None,
        "device": None if device == 255 else device,
        "kind": None if kind == 255 else KINDS[kind],
        "mode": MODES[mode],
        "memory": MEMORY[memory],
        "entered": entered,
        "returned": returned,
        "failed": failed,
        "count": count,
        "bytes": size,
    }


def read_all(folder):
    """Returns all processes of a run, in order of pid."""
    return [read(path) for path in sorted(pathlib.Path(folder).glob("tally-*"),
                                          key=lambda path: int(path.name.split("-")[1]))]


def by_pid(folder):
    return {process["pid"]: process for process in read_all(folder)}


def returned(process):
    """Returns the number of calls that returned well, by function."""
    total = collections.Counter()
    for row in process["rows"]:
        total[row["function"]] += row["returned"]
    return total


def returned_in(folder):
    """Returns the same of all processes of a run, without functions that nobody called well."""
    return +sum(map(returned, read_all(folder)), collections.Counter())


def main():
    tallies = []
    for argument in map(pathlib.Path, sys.argv[1:]):
        tallies += read_all(argument) if argument.is_dir() else [read(argument)]
    json.dump(tallies, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

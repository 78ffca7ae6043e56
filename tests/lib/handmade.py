"""Makes the lines of rank files, as the contract says or, with changes, not."""

import json


def header(**changes):
    args = {
        "schema": "tprof/1", "tprof_version": "0.1.0", "run_id": "r", "rank": 0, "world_size": 2, "local_rank": 0,
        "restart": 0, "host": "h", "boot_id": "b", "pid": 4711, "start_ns": 1, "command": "python train.py",
        "base_time_ns": 1763683200000000000, "clock": [[0, 1763683200000000000, 48]],
        "nccl_version": 22809, "nccl_path": "/usr/lib/libnccl.so.2", "cudart_version": 13000,
        "cudart_path": "/usr/lib/libcudart.so.13", "devices": [], "config": {"TPROF_EVENTS": "on"}, "env": {},
        "ring": None,
    }  # fmt: skip
    return metadata("tprof_header", **{**args, **changes})


def metadata(name, /, **args):
    """A line of a rank's own has its number for a pid: `| {"pid": rank}`."""
    return {"name": name, "ph": "M", "pid": 0, "tid": 0, "args": args}


def threads(names):
    return [metadata("thread_name", name=name) | {"tid": tid} for tid, name in names.items()]


def comm(**changes):
    args = {"comm": 1, "id": "5be1", "name": None, "nranks": 2, "rank": 0, "device": 0}
    return metadata("tprof_comm", **{**args, "parent": None, **changes})


def row(**changes):
    return {
        "bucket": "ALLGATHER", "name": "ncclAllGather", "dtype": "float32", "comm": 1, "bytes_class": 10,
        "mode": "direct", "calls": 1, "count": 256, "elements": 512, "bytes": 2048, "host_ns": 5, "host_ns_max": 5,
        "device_ns": 0, "device_timed": 0, "failed": 0, "unfinished": 0, **changes,
    }  # fmt: skip


def ledger(*rows, epoch=0, comms=(), **changes):
    args = {"epoch": epoch, "reason": "close", "ts": 1100.5, "rows": rows or [row()]}
    return metadata("tprof_ledger", **{**args, "comms": list(comms), **changes})


def footer(**changes):
    coverage = {"functions": [{"name": "f", "library": "l", "calls": 1}], "unseen": []}
    args = {"dropped": {}, "self_cost_ns": 0, "coverage": coverage, "complete": True}
    return metadata("tprof_footer", **{**args, **changes})


def event(**changes):
    args = {"comm": 1, "seq": 0, "count": 256, "dtype": "float32", "bytes": 2048}
    line = {"name": "ncclAllGather", "cat": "ALLGATHER", "ph": "X", "pid": 0, "tid": 7}
    return {**line, "ts": 1.5, "dur": 2.5, "args": args, **changes}


def as_text(line):
    return line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))


def insert(file, *lines, before='"tprof_ledger"'):
    """Puts lines into a rank file, in front of the first one that has this text. The file may be a link to another job's."""
    text = file.read_text()
    at = text.rindex("\n", 0, text.index(before)) + 1
    file.unlink()
    file.write_text(text[:at] + "".join(as_text(line) + ",\n" for line in lines) + text[at:])


def array(*lines):
    return "[\n" + ",\n".join(map(as_text, lines)) + "\n]\n"


def closed(*lines, **changes):
    return array(header(**changes), comm(), *lines, ledger(), footer())

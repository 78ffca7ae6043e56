"""Checks tprof summary --json against a schema of the contract: unknown values are null, and none is missing."""

import json

from lib import loops
from lib.tool import summary_of as report


def timed_and_waited(rank):
    """Makes a job of one rank whose copies have device time with a known exposed part, and whose gathers have
    no exposed part."""
    loop = loops.Loop([[0]])
    for _ in range(4):
        loop.gather(1000)
        loop.copy("cudaMemcpyAsync", 4096)
    folder = loop.job.write(rank)
    file = folder / "rank-00000.json"
    times = {"H2D": {"exposure_known": 3, "exposure_known_ns": 900, "exposed_ns": 700}, "ALLGATHER": {}}
    lines = []
    for line in file.read_text().splitlines():
        if '"tprof_ledger"' in line:
            ledger = json.loads(line.rstrip(","))
            for row in ledger["args"]["rows"]:
                row |= {"device_ns": 1000, "device_timed": 4, "device_bytes": row["bytes"]} | times[row["bucket"]]
            line = json.dumps(ledger, separators=(",", ":")) + ","
        lines.append(line)
    file.write_text("\n".join(lines) + "\n")
    return folder


def test_times_are_there_where_they_were_taken_and_null_elsewhere(tmp_path):
    found = report(timed_and_waited(tmp_path / "job"))
    buckets = found["buckets"]
    assert (buckets["H2D"]["device_ns"], buckets["H2D"]["exposed_ns"]) == (1000, 700)
    assert (buckets["ALLGATHER"]["device_ns"], buckets["ALLGATHER"]["exposed_ns"]) == (1000, None)
    assert (buckets["D2H"]["device_ns"], buckets["D2H"]["exposed_ns"]) == (None, None)
    assert {op["name"]: op["exposed_ns"] for op in found["ops"]} == {"cudaMemcpyAsync": 700, "ncclAllGather": None}

"""Functions that NCCL has and the nccl.h that we were built with may not: passed on, counted."""

import json
import os
import pathlib
import subprocess

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TPROF_BUILD", REPO / "build")).resolve()
CLIENT = BUILD / "newer_nccl_client"

# Calls, count, elements, bytes: 3 calls of 5 float32 on 2 ranks, of 6 int8, of 7 float64.
EXPECTED = {
    ("ALLGATHER", "ncclAllGatherConfig", "float32"): (3, 15, 30, 120),
    ("REDUCE", "ncclReduceConfig", "int8"): (3, 18, 18, 18),
    ("P2P", "ncclPutSignal", "float64"): (3, 21, 21, 168),
}


def test_newer_functions_get_all_their_arguments_and_are_counted(tmp_path):
    env = {"LD_PRELOAD": str(BUILD / "libtprof.so"), "TPROF_OUTPUT_DIR": str(tmp_path)}
    plain = subprocess.run([CLIENT], capture_output=True, text=True, check=True)
    traced = subprocess.run([CLIENT], env=env, capture_output=True, text=True, check=True)
    assert (traced.stdout, traced.stderr) == (plain.stdout, plain.stderr) != ("0\n", "")

    (rank_file,) = tmp_path.glob("*.json")
    lines = [json.loads(line.rstrip(",")) for line in rank_file.read_text().splitlines()[1:-1]]
    ledger = [line["args"] for line in lines if line["name"] == "tprof_ledger"][-1]
    counted = {
        (row["bucket"], row["name"], row["dtype"]): tuple(
            row[figure] for figure in ("calls", "count", "elements", "bytes")
        )
        for row in ledger["rows"]
    }
    assert counted == EXPECTED
    # One-sided calls have no part in the order of collectives.
    assert [comm["collectives"] for comm in ledger["comms"]] == [6]

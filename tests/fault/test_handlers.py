"""A signal handler makes a call after every instruction of a program that makes calls itself."""

import collections
import json
import platform
import subprocess

import pytest
from lib.build import BUILD, LIBTPROF

PROGRAM = BUILD / "handlers"
# (function, bytes) of what the program itself calls, and of what the handler does.
OWN = {
    ("ncclAllReduce", 16): 2,
    ("cudaMemcpyAsync", 32): 1,
    ("cudaMemcpy", 33): 1,
    ("ncclSend", 17): 1,
    ("ncclRecv", 17): 1,
    ("ncclReduceScatter", 18): 1,
}
GATHERS, COPIES = ("ncclAllGather", 3), ("cudaMemcpyAsync", 5)
FORBIDDEN = 77


@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the registers of x86-64")
@pytest.mark.parametrize("sites", ["off", "native"])
def test_a_handler_after_any_instruction_costs_the_program_no_call_and_its_own_are_said(sites, tmp_path):
    traces = tmp_path / "traces"
    env = {"LD_PRELOAD": str(LIBTPROF), "TPROF_OUTPUT_DIR": str(traces), "TPROF_CALLSITE": sites}
    env |= {"TPROF_RING": "64"}  # full at times
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, timeout=120)
    if done.returncode == FORBIDDEN:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stderr) == (0, "")
    made = {name: int(n) for name, n in map(str.split, done.stdout.splitlines())}
    assert made["copies"] > 10_000

    (file,) = traces.iterdir()
    body = [json.loads(line.rstrip(",")) for line in file.read_text().splitlines()[1:-1]]
    last = {line["name"]: line["args"] for line in body}
    counted, failed = collections.Counter(), collections.Counter()
    for row in last["tprof_ledger"]["rows"]:
        if row["calls"]:
            assert row["bytes"] % row["calls"] == 0, row  # one size a row
            counted[row["name"], row["bytes"] // row["calls"]] += row["calls"]
        failed[row["name"]] += row["failed"]
        assert row["unfinished"] == 0
    of_handler = {key: counted.pop(key) for key in (GATHERS, COPIES)}
    assert counted == OWN
    assert +failed == {"ncclBroadcast": 1}

    # Calls that came while the program was in its own code are counted, also within its open group.
    # Those that came inside a recorded call may not be, and then the trace says so.
    assert made["outside"] <= of_handler[COPIES] < made["copies"]
    assert 0 < of_handler[GATHERS] < made["gathers"]
    assert {"path": str(PROGRAM), "kind": "nested"} in last["tprof_footer"]["coverage"]["unseen"]

    # No collective of the communicator has another one's number. A full ring has lost lines, never
    # counts.
    lines = [line for line in body if line["ph"] == "X" and line["args"].get("comm") == 1]
    dropped = last["tprof_footer"]["dropped"].get("ring", 0)
    collectives = ("ncclAllGather", "ncclAllReduce")
    numbers = [line["args"]["seq"] for line in lines if line["name"] in collectives]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers, default=0) < of_handler[GATHERS] + OWN["ncclAllReduce", 16]
    every = sum(1 for line in body if line["ph"] == "X" and line["cat"] != "COMM")
    assert every + dropped == sum(counted.values()) + sum(of_handler.values()) + 1

"""torchrun restarts its ranks into the same folder: no file is overwritten, no call counted twice."""

import subprocess
import sys

from lib import figures, rankfile
from lib.build import BUILD, CLIENTS
from lib.launch import start

RANKS = 2


def test_elastic_restart(built, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1"]
    command += [f"--nproc_per_node={RANKS}", "--monitor-interval=0.1", str(CLIENTS / "restarted.py")]
    # Else the restarted ranks share a store with the dead ones and may read their NCCL id, and wait
    # for them forever, traced or not: https://github.com/pytorch/pytorch/issues/135712.
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    traced = start(command, tmp_path / "run", preload=True, **own_store)
    assert traced.code == 0, traced.stderr
    assert traced.lines() == [f"[rank {rank}] 12 steps, started again" for rank in range(RANKS)]
    names = {f"rank-{rank:05}{again}.json" for rank in range(RANKS) for again in ("", ".r1")}
    assert {path.name for path in traced.traces.glob("*.json")} == names
    rings = {path.name for path in traced.traces.glob(".*.ring")}
    assert rings == {f".rank-{rank:05}.ring" for rank in range(RANKS)}, "of the killed ones only"

    subprocess.run([BUILD / "tprof", "recover", traced.traces], capture_output=True, check=True)
    tallies = {tally["pid"]: tally for tally in figures.read_tallies(traced.tally)}
    files = rankfile.read_folder(traced.traces)
    assert sorted((file.rank, file.header["restart"]) for file in files) == [
        (0, 0), (0, 1), (1, 0), (1, 1)
    ]  # fmt: skip
    for file in files:
        ours = figures.of_ledger(file)
        theirs = figures.of_tally(tallies[file.header["pid"]])
        if file.header["restart"] == 1:
            assert figures.difference(ours, theirs) == ""
            assert file.footer["complete"] is True
            continue
        # A kill between the library's return and ours leaves one call of a thread unfinished.
        for key, figure in theirs.items():
            calls = ours.get(key, {"calls": 0})["calls"]
            assert figure["calls"] - RANKS <= calls <= figure["calls"], (file.path.name, key)
    (died,) = [file for file in files if (file.rank, file.header["restart"]) == (1, 0)]
    begun = [line["name"] for line in died.lines if line["ph"] == "B"]
    assert begun == ["ncclAllReduce"]

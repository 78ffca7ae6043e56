"""torchrun restarts its ranks into the same folder: no file is overwritten, no call counted twice."""

import json
import sys

from lib import figures, rankfile
from lib.build import CLIENTS
from lib.launch import agent, start
from lib.tool import tprof

RANKS = 2


def test_elastic_restart(tmp_path):
    command = [*agent(RANKS), "--max-restarts=1", "--monitor-interval=0.1", str(CLIENTS / "restarted.py")]
    # Otherwise the restarted ranks share a store with the dead ones, may read their NCCL id, and wait
    # for them forever, traced or not: https://github.com/pytorch/pytorch/issues/135712.
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    traced = start(command, tmp_path / "run", **own_store)
    assert traced.code == 0, traced.stderr
    assert traced.lines() == [f"[rank {rank}] 12 steps, started again" for rank in range(RANKS)]
    names = {f"rank-{rank:05}{again}.json" for rank in range(RANKS) for again in ("", ".r1")}
    assert {path.name for path in traced.traces.glob("*.json")} == names
    left = rankfile.rings(traced.traces)
    assert sorted(left) == list(range(RANKS)), "of the killed ones only"

    # The last attempt is the default, also for the command that is printed as the next one.
    beside = "there are 2 attempts of one run; this is the last to start"
    for command in (["summary"], ["check"], ["doctor"], ["merge", "-o", tmp_path / "all.json"]):
        last = tprof(*command, traced.traces)
        assert last.returncode == 0 and beside in last.stdout + last.stderr, command
    first = tprof("summary", traced.traces, "--attempt", "1")
    assert first.returncode == 1 and "did not close" in first.stdout

    assert tprof("recover", traced.traces).returncode == 0
    tallies = traced.tallies()
    files = traced.ranks()
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


def test_jobs_that_only_copy_are_told_apart(tmp_path):
    """Neither a communicator nor a run id connects their ranks, but their launcher does."""
    command = [sys.executable, "-m", "torch.distributed.run", "--master-port=0"]
    command += [f"--nproc_per_node={RANKS}", "--no-python", sys.executable, "-c", "import children; children.copies(3)"]
    for run in range(2):
        into = {"TPROF_OUTPUT_DIR": str(tmp_path / "traces"), "PYTHONPATH": str(CLIENTS)}
        traced = start(command, tmp_path / str(run), **into)
        assert traced.code == 0, traced.stderr
        healthy = tprof("check", tmp_path / "traces", "--json")
        assert healthy.returncode == 0, healthy.stdout
        found = json.loads(healthy.stdout)
        assert (found["run_id"], found["ranks"]) == (None, list(range(RANKS)))
        assert [f["kind"] for f in found["findings"]] == ["other_run"] * run
    files = rankfile.read_folder(tmp_path / "traces")
    assert sorted(file.rank for file in files) == [0, 0, 1, 1]
    launchers = {file.header["launcher"]["pid"] for file in files}
    assert len(launchers) == 2
    text = tprof("summary", tmp_path / "traces").stdout
    assert "Totals over 2 processes" in text and "run none" not in text
    assert "Totals over 2 processes" in tprof("summary", tmp_path / "traces", "--attempt", "1").stdout

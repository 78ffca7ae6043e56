"""Processes that did not close, traced by the real library on the stand-in, leave ring files."""

import json

from lib import launch, tally
from lib.build import BUILD
from lib.contract import SCHEMA
from lib.rankfile import lines_of
from lib.tool import tprof

TRAINER = [BUILD / "native_trainer", "--ranks", "2", "--steps"]


def summary(path):
    return json.loads(tprof("summary", path, "--json").stdout)


def test_a_killed_rank_is_recovered_exactly(tmp_path):
    """Rank 1 dies at its 25th reduce-scatter (the launcher then kills rank 0). Its counts are the
    stand-in's own."""
    launch.start([*TRAINER, "50"], tmp_path, STANDIN_DIE="1:ncclReduceScatter:25")
    found = summary(tmp_path / "traces")
    assert {p["kind"]: p["ranks"] for p in found["findings"]}["not_closed"] == [0, 1]
    assert found["complete"] is False
    assert list(found["known_until"]) == ["0", "1"]

    def calls(bucket):
        return found["buckets"][bucket]["per_rank"]["calls"][1]

    headers = {}
    for file in (tmp_path / "traces").glob("*.json"):
        header = json.loads(next(line for line in lines_of(file) if "tprof_header" in line))
        headers[header["args"]["rank"]] = header["args"]["pid"]
    (dead,) = [t for t in tally.read_all(tmp_path / "tally") if t["pid"] == headers[1]]
    assert calls("ALLGATHER") == sum(
        row["returned"] for row in dead["rows"] if row["function"] == "ncclAllGather"
    )
    assert calls("RESHARDING") == 24
    assert found["buckets"]["RESHARDING"]["unfinished"] >= 1

    # The lines of the timeline are as many as the ledger says, none twice, the open one last.
    assert tprof("merge", tmp_path / "traces", "-o", tmp_path / "m.json").returncode == 0
    lines = [json.loads(line) for line in lines_of(tmp_path / "m.json")]
    assert all(SCHEMA.is_valid(line) for line in lines)
    mine = [line for line in lines if line["pid"] == 1 and line["ph"] in "XB"]
    scatters = [line["ph"] for line in mine if line.get("args", {}).get("op") == "ncclReduceScatter"]
    assert scatters == ["X"] * 24 + ["B"]
    entered = [(line["tid"], line["ts"]) for line in mine]
    assert len(entered) == len(set(entered))
    assert summary(tmp_path / "m.json")["buckets"] == found["buckets"]

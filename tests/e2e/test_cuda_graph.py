"""A captured call is counted once as captured, and once for each launch as replayed."""

import collections

from lib import figures

REPLAYS = 5  # cuda_graph.py
CASE = "cuda-graph-2"


def calls_by_mode(table: dict, function: str, bucket: str) -> dict[str, int]:
    calls = collections.Counter()
    for key, value in table.items():
        if key[:2] == (bucket, function):
            calls[key[4]] += value["calls"]
    return dict(calls)


def test_captured_and_replayed_calls_are_the_scripts(pair_of):
    for file in pair_of(CASE).ranks():
        table = figures.of_ledger(file)
        gathers = calls_by_mode(table, "ncclAllGather", "ALLGATHER")
        assert gathers == {"direct": 1, "captured": 1, "replayed": REPLAYS}, file.path
        copies = calls_by_mode(table, "cudaMemcpyAsync", "D2H")
        assert (copies["captured"], copies["replayed"]) == (1, REPLAYS), file.path


def test_every_launch_is_a_line_and_leads_to_the_calls_that_were_captured(pair_of):
    for file in pair_of(CASE).ranks():
        launched = [line["args"]["graph"] for line in file.lines if line.get("cat") == "GRAPH"]
        assert len(launched) == REPLAYS and len(set(launched)) == 1, file.path
        graphs = {line["args"]["graph"]: line["args"] for line in file.lines if line["name"] == "tprof_graph"}
        executable = graphs[launched[0]]
        assert executable["calls"] == [], "captured calls are listed once, with what was captured"
        graph = graphs[executable["source"]]
        calls = {call["name"]: (call["calls"], call["bytes"]) for call in graph["calls"]}
        assert calls == {"ncclAllGather": (1, 2 * 12 * 4), "cudaMemcpyAsync": (1, 2 * 12 * 4)}

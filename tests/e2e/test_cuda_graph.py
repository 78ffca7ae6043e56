"""A captured call is counted once as captured, and once for each launch as replayed."""

import collections

from lib import figures

# cuda_graph.py
FIRST = 5 + 3 + 2
SECOND = 2 + 1
CASE = "cuda-graph-2"


def calls_by_mode(table: dict, function: str, bucket: str) -> dict[str, int]:
    calls = collections.Counter()
    for key, value in table.items():
        if key[:2] == (bucket, function):
            calls[key[4]] += value["calls"]
    return dict(calls)


def test_captured_and_replayed_calls_are_the_scripts(pair_of):
    for file in pair_of(CASE).traced.ranks():
        table = figures.of_ledger(file)
        gathers = calls_by_mode(table, "ncclAllGather", "ALLGATHER")
        assert gathers == {"direct": 1, "captured": 3, "replayed": FIRST + 2 * SECOND}, file.path
        copies = calls_by_mode(table, "cudaMemcpyAsync", "D2H")
        assert (copies["captured"], copies["replayed"]) == (1, FIRST), file.path
        kinds = {entry["kind"] for entry in file.footer["coverage"]["unseen"]}
        assert not [kind for kind in kinds if kind.startswith("graph")], file.path


def test_every_launch_is_a_line_and_leads_to_the_calls_that_were_captured(pair_of):
    for file in pair_of(CASE).traced.ranks():
        launched = collections.Counter(
            line["args"]["graph"] for line in file.lines if line.get("cat") == "GRAPH"
        )
        graphs = {line["args"]["graph"]: line["args"] for line in file.lines if line["name"] == "tprof_graph"}
        first, second = sorted(launched)
        assert (launched[first], launched[second]) == (FIRST, SECOND), file.path
        for number in launched:
            assert graphs[number]["calls"] == [], "calls are listed once, with what is executed"
        listed = [
            {call["name"]: (call["calls"], call["bytes"]) for call in graphs[graphs[n]["source"]]["calls"]}
            for n in (first, second)
        ]
        gathered = 2 * 12 * 4
        assert listed == [
            {"ncclAllGather": (1, gathered), "cudaMemcpyAsync": (1, gathered)},
            {"ncclAllGather": (2, 2 * gathered)},
        ]

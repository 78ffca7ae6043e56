"""CUDA graphs in every situation: captured and replayed counts are those of the stand-in, or the
file says that they differ."""

import collections
import functools

import pytest
from lib import figures, graphs, rankfile
from lib.launch import start
from lib.tool import tprof

# The calls and bytes that launches executed, by lib/graphs.py: (bucket, calls, bytes). 16
# floats are 64 B. Random programs (test_random_calls.py) have what is counted on several streams, in groups, by
# several executables and threads, and after failed captures.
RAN = {
    "clone": {("H2D", 5, 500), ("ALLGATHER", 5, 320)},
    "child_graph": {("H2D", 4, 2 * 400), ("ALLGATHER", 2, 128)},
    "update_in_every_step": {("H2D", 300, 100 * 1000 + 200 * 100), ("ALLGATHER", 300, 19200)},
    "copies_by_hand": {("H2D", 10, 5 * 132), ("D2H", 5, 5 * 16)},
    "boxes_by_hand": {("H2D", 2, 2 * 6 * 10), ("D2H", 2, 2 * 6 * 20)},
    "captured_into_a_graph": {("H2D", 4 + 9, 600 + 1800), ("ALLGATHER", 5, 320)},
    "captured_again": {("H2D", 5, 2 * 100 + 3 * 300), ("ALLGATHER", 5, 2 * 64 + 3 * 128)},
    "dependencies_updated": {("H2D", 4, 2 * 400), ("D2H", 2, 2 * 200)},
    "handles_of_failed_captures": {("H2D", 150, 300)},
    "handles_reused": {
        ("H2D", sum(i % 4 for i in range(0, 50, 2)), sum(i % 4 for i in range(0, 50, 2)) * 100),
        ("ALLGATHER", sum(i % 4 for i in range(50)), sum((i % 4) * (64 if i % 3 == 0 else 128) for i in range(50))),
    },
    "launched_into_a_capture": {("H2D", 16, 5 * 500 + 100), ("ALLGATHER", 11, 11 * 64)},
    "own_default_stream": {("H2D", 3, 300)},
    "conditional_node": {("H2D", 4 + 3, 400 + 600)},
    "launched_by_the_device": {("H2D", 2, 200), ("ALLGATHER", 2, 128)},
    "made_past_the_wrappers": {("H2D", 5, 500), ("ALLGATHER", 2, 128)},
    "built_by_the_driver": {("H2D", 4, 2 * 400), ("D2H", 2, 2 * 80)},
    "copy_within_the_device": {("H2D", 3, 300), ("D2D", 3, 192), ("ALLGATHER", 3, 192)},
    "cloned_by_the_driver": {("H2D", 3, 300), ("ALLGATHER", 3, 192)},
    "capture_begun_past_us": {("H2D", 3, 300)},
    "killed": {("H2D", 5, 500), ("ALLGATHER", 5, 320)},
}

# Situations in which something else is counted: why, and what is counted. Calls whose capture was not
# seen (by hand, in clones) are not counted, nor is anything in child graphs.
UNKNOWN = "graph_unknown"
SAID = {
    "launched_into_a_capture": ({UNKNOWN}, {("H2D", 6, 5 * 300 + 100), ("ALLGATHER", 1, 64)}),
    "clone": ({UNKNOWN}, {("H2D", 3, 300), ("ALLGATHER", 3, 3 * 64)}),
    "child_graph": ({UNKNOWN}, set()),
    "copies_by_hand": ({UNKNOWN}, set()),
    "boxes_by_hand": ({UNKNOWN}, set()),
    "captured_into_a_graph": ({UNKNOWN}, {("H2D", 4 + 4, 600 + 1300), ("ALLGATHER", 5, 320)}),
    "dependencies_updated": ({UNKNOWN}, {("H2D", 4, 2 * 400)}),
    "handles_of_failed_captures": ({UNKNOWN}, set()),
    "conditional_node": ({UNKNOWN, "graph_conditional"}, set()),
    "launched_by_the_device": ({"graph_device_launch"}, RAN["launched_by_the_device"]),
    "made_past_the_wrappers": ({UNKNOWN}, {("H2D", 2, 200), ("ALLGATHER", 2, 128)}),
    "built_by_the_driver": ({UNKNOWN}, set()),
    "copy_within_the_device": (set(), {("H2D", 3, 300), ("ALLGATHER", 3, 192)}),  # NCCL's own
    "cloned_by_the_driver": ({UNKNOWN}, set()),
    "capture_begun_past_us": ({UNKNOWN}, set()),
}


# Words with which `summary` says so.
WORDS = {
    "conditional_node": "conditional node", "launched_by_the_device": "kernels", "cloned_by_the_driver": "was not seen",
}  # fmt: skip

# How many executables are alive at a time, each launched once.
MANY = {"many_alive": 40_000, "many_different": 20_000, "too_many_different": 36_000}


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Returns get(situation), which gives the ledger's rows and the tally by mode, and the rank file."""

    @functools.cache
    def get(situation: str) -> tuple[dict, dict, rankfile.RankFile]:
        run = start(graphs.command(situation), tmp_path_factory.mktemp(situation) / "run")
        assert (run.stdout, run.stderr) == ("", "")
        assert run.code == (-9 if situation == "killed" else 0)
        if situation == "killed":
            assert tprof("recover", run.traces).returncode == 0
        file = run.only_rank()
        return figures.of_plain_names(figures.of_ledger(file)), figures.of_tally(run.only_tally()), file

    return get


def replayed(table: dict) -> set[tuple[str, int, int]]:
    sums = collections.defaultdict(lambda: [0, 0])
    for key, value in table.items():
        if key[4] != "replayed":
            continue
        sums[key[0]][0] += value["calls"]
        sums[key[0]][1] += value["bytes"]
    return {(bucket, *values) for bucket, values in sums.items()}


@pytest.mark.parametrize("situation", RAN)
def test_captured_and_replayed_are_the_tallys_or_the_difference_is_known_and_said(run_of, situation):
    ours, theirs, file = run_of(situation)
    reasons, counted = SAID.get(situation, (set(), RAN[situation]))
    assert (replayed(theirs), replayed(ours)) == (RAN[situation], counted)
    assert situation in SAID or figures.difference(ours, theirs) == ""
    assert {entry["kind"] for entry in file.footer["coverage"]["unseen"]} == reasons
    # Launches, and the graphs that they name, explain what was replayed.
    contents = {args["graph"]: args for args in rankfile.named(file.lines, "tprof_graph")}
    sums = collections.defaultdict(lambda: [0, 0])
    for line in file.lines:
        if line.get("cat") == "GRAPH":
            graph = contents[line["args"]["graph"]]
            for call in (graph if graph["source"] is None else contents[graph["source"]])["calls"]:
                sums[call["bucket"]][0] += call["calls"]
                sums[call["bucket"]][1] += call["bytes"]
    assert {(bucket, *values) for bucket, values in sums.items()} == replayed(ours)
    if situation == "update_in_every_step":  # an entry for each thing it did
        sources = [args["source"] for args in contents.values()]
        assert (len(sources), sources.count(None)) == (3, 2)
    if situation in WORDS:
        assert WORDS[situation] in tprof("summary", file.path.parent).stdout


@pytest.mark.parametrize("situation", MANY)
def test_however_many_are_alive_their_launches_count_or_are_told_by_their_number(run_of, situation):
    """A ledger has no room for 36,000 that all do something else."""
    ours, theirs, file = run_of(situation)
    unknown = [entry["calls"] for entry in file.footer["coverage"]["unseen"] if entry["kind"] == UNKNOWN]
    counted = {bucket: calls for bucket, calls, _ in replayed(ours)}
    assert {bucket: calls for bucket, calls, _ in replayed(theirs)} == {"H2D": MANY[situation], "ALLGATHER": MANY[situation]}
    if situation != "too_many_different":
        assert (unknown, replayed(ours)) == ([], replayed(theirs))
        return
    assert counted == {bucket: MANY[situation] - sum(unknown) for bucket in ("H2D", "ALLGATHER")}
    assert len(unknown) == 1 and 0 < unknown[0] < 20_000
    assert f"nothing at all of {unknown[0]:,} launches" in tprof("summary", file.path).stdout

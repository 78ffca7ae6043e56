"""TPROF_OPS and TPROF_SIZES choose which calls get event lines. The counts are those of all calls."""

import pytest
from lib import figures, launch
from lib.live import TRAINER
from lib.tool import told, worse_than_notes

MIB = 1 << 20
CASES = [
    ({"TPROF_OPS": "ALLGATHER,cudamemcpy*"}, lambda name, size: name == "ncclAllGather" or name.startswith("cudaMemcpy")),
    ({"TPROF_OPS": "nccl*Scatter"}, lambda name, size: name == "ncclReduceScatter"),
    ({"TPROF_SIZES": "1M-3M,-64"}, lambda name, size: MIB <= size <= 3 * MIB or size <= 64),
    ({"TPROF_OPS": "H2D,ALLGATHER", "TPROF_SIZES": "1M-"}, lambda name, size: name == "ncclAllGather" and size >= MIB),
    ({"TPROF_OPS": "all", "TPROF_SIZES": "all"}, lambda name, size: True),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return launch.start([*TRAINER, "6"], tmp_path_factory.mktemp("whole"), TPROF_TIMING="events")


@pytest.mark.parametrize(("settings", "chosen"), CASES, ids=[str(settings) for settings, _ in CASES])
def test_lines_are_those_of_the_chosen_calls_and_counts_those_of_all(settings, chosen, whole, tmp_path):
    done = launch.start([*TRAINER, "6"], tmp_path, TPROF_TIMING="events", **settings)
    assert done.code == 0 and done.words_of_ours() == [], done.stderr
    for file, other in zip(done.ranks(), whole.ranks(), strict=True):
        expected = figures.of_tally(done.tallies()[file.header["pid"]])
        assert figures.difference(figures.of_ledger(file), expected) == ""

        def calls(of):
            return [(e["name"], e["args"]["bytes"]) for e in of.events if e["cat"] not in ("DEVICE", "NVTX")]

        assert calls(file) == [call for call in calls(other) if chosen(*call)] != []
        assert file.footer["dropped"].get("filter", 0) == len(calls(other)) - len(calls(file))
        if "TPROF_SIZES" not in settings:  # times on the device know no size
            times = [e["name"] for e in file.events if e["cat"] == "DEVICE"]
            assert times and all(chosen(name, MIB) for name in times)
    assert worse_than_notes(done.traces) == []
    assert told("summary", done.traces)[0] == 0


def test_lists_that_are_none_are_told_and_all_calls_have_lines(whole, tmp_path):
    done = launch.start([*TRAINER, "6"], tmp_path, TPROF_TIMING="events", TPROF_OPS="ALLGATHER,,H2D", TPROF_SIZES="3M-1M")
    assert len(done.words_of_ours()) == 2 * 2, done.stderr
    assert [len(file.events) for file in done.ranks()] == [len(file.events) for file in whole.ranks()]

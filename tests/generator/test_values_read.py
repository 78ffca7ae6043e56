"""Without device times it is told which rank came late, but not of one whose host only waited for its device,
as it alone reads values (`if rank == 0: print(loss.item())`)."""

import pytest
from generator import habits, rank_files
from generator.loop import MS
from lib.tool import told

# Hosts run ahead, as their devices have more to do than they.
LOOP = habits.Loop(ranks=2, steps=60, layers=4, layer_ns=5 * MS, python_ns=100_000, item_ranks=(0,))
READS = [{}, {"item_pinned": True}, {"item_every": 5}, {"shape": "fsdp"}, {"ranks": 8}]


def said(tmp_path, loop):
    """Returns the verdict's text and the ranks of `late` findings, untimed."""
    rank_files.write(habits.run(loop), tmp_path / "job", settings=rank_files.Settings(timing=False))
    late = [f["ranks"] for f in told("check", tmp_path / "job")[1]["findings"] if f["kind"] == "late"]
    return told("report", tmp_path / "job")[1]["verdict"]["text"], late


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("fault", [{}, {"gpu": {1: 2.0}}, {"gpu": {1: 4.0}, "steps": 120}])
def test_a_rank_that_reads_values_is_not_blamed_for_devices(tmp_path, reads, fault):
    verdict, late = said(tmp_path, LOOP.but(**fault).but(**reads))
    assert late == []
    assert "TPROF_TIMING=events shows the cost" not in verdict
    if "came last" in verdict:
        assert "after it read values (.item()) that most others do not read" in verdict
        assert "Only TPROF_TIMING=events shows who holds up the others." in verdict


@pytest.mark.parametrize(
    "reads",
    READS
    + [
        {"item_ranks": ()},  # all of them
        {"item_ranks": (), "item_every": 5},
        {"item_ranks": (), "item_of": {0: 1, 1: 10}},
        {"item_ranks": (1,), "item_every": 10},
        {"item_every": 0},
    ],
)
def test_a_host_that_is_late_is_named(tmp_path, reads):
    """It stalls in its forward pass, behind the copy of the batch."""
    verdict, late = said(tmp_path, LOOP.but(stalls={1: 150 * MS}).but(**reads))
    assert verdict.startswith("Rank 1 came last to"), verdict
    assert "TPROF_TIMING=events shows the cost" in verdict
    assert late == ["1"] or late == [[1]]


def test_a_host_that_is_late_and_alone_reads_is_named(tmp_path):
    verdict, late = said(tmp_path, LOOP.but(stalls={0: 150 * MS}))
    assert verdict.startswith("Rank 0 came last to") and "TPROF_TIMING=events shows the cost" in verdict, verdict
    assert late in (["0"], [[0]])

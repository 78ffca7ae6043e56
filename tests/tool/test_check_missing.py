"""tprof check on traces that lack a rank, a line or a count, or whose clock was set: it says so, once."""

import json

import pytest
from lib import faults
from lib.tool import tprof, worse_than_notes


def test_a_missing_rank(healthy, tmp_path):
    written, rank = healthy
    folder = written.job.write(tmp_path / "job", written)
    (folder / f"rank-{rank:05}.json").unlink()
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["ranks"]) == ("missing_rank", [rank])
    # 512 ranks share less than two communicators with it; the others' verdicts stand.
    found = json.loads(tprof("check", folder, "--json").stdout)
    assert all(c["same"] for c in found["communicators"])


def test_lines_that_are_missing(healthy, place, tmp_path):
    written, rank = healthy
    job = written.job.copy()
    at = faults.places(job, rank, 0)[place]
    plan = job.ranks[rank]
    plan.no_line = {faults.index_of(job, rank, 0, at)}
    (finding,) = worse_than_notes(job.write(tmp_path / "gap", written))
    # After the last line there is no gap to see; then the ledger has more than the lines.
    if place == "last":
        assert (finding["kind"], finding["ranks"]) == ("ledger_lines", [rank])
        assert finding["function"] == job.collectives(rank, 0)[at].function
        return
    assert (finding["kind"], finding["ranks"]) == ("seq_gap", [rank])
    assert (finding["communicator"], finding["seq"]) == (job.id(0), at)


@pytest.mark.parametrize("what", ["collective", "copy"])
def test_a_ledger_that_says_more_than_the_lines(healthy, tmp_path, what):
    written, rank = healthy
    job = written.job.copy()
    copies = [op for op in job.ranks[rank].ops if op.comm is None]
    op = job.collectives(rank, 0)[0] if what == "collective" else copies[0]
    job.ranks[rank].ledger_error = {op.function: 1}
    (finding,) = worse_than_notes(job.write(tmp_path / "job", written))
    assert (finding["kind"], finding["ranks"]) == ("ledger_lines", [rank])
    assert finding["function"] == op.function


def test_a_ledger_that_decreases(healthy, tmp_path):
    written, rank = healthy
    folder = written.job.write(tmp_path / "job", written)
    file = folder / f"rank-{rank:05}.json"
    lines = file.read_text().splitlines()
    early, late = (i for i, line in enumerate(lines) if "tprof_ledger" in line)
    lines[early], lines[late] = lines[late], lines[early]
    file.unlink()  # it is linked
    file.write_text("\n".join(lines) + "\n")
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["ranks"]) == ("ledger_decreased", [rank])


@pytest.mark.parametrize("step_s, kinds", [(-2, ["clock_step"]), (2, []), (0.0005, [])])
def test_a_clock_that_was_set(healthy, tmp_path, step_s, kinds):
    """A step back is a warning, a step forward a note, and half a millisecond is nothing."""
    written, rank = healthy
    job = written.job.copy()
    job.ranks[rank].clock_step_ns = int(step_s * 1e9)
    folder = job.write(tmp_path / "job", written)
    worse = worse_than_notes(folder)
    assert [(f["kind"], f["ranks"]) for f in worse] == [(kind, [rank]) for kind in kinds]
    if kinds:
        assert "set back by 2.000 s" in worse[0]["text"]
    notes = [f["kind"] for f in json.loads(tprof("check", folder, "--json").stdout)["findings"]]
    assert ("clock_step" in notes) == (abs(step_s) > 1)

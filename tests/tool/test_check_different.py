"""tprof check on jobs in which one rank does something else once: it is found, and named right."""

import dataclasses
import json

import pytest
from lib import faults, handmade, jobs
from lib.faults import RANK, SIZES
from lib.tool import tprof, worse_than_notes


def planted(healthy_job, size, kind, place, tmp_path):
    job = healthy_job(size).job
    rank = RANK[size]
    at = faults.places(job, rank, 0)[place]
    bad = faults.DIFFERENT[kind](job, rank, 0, at)
    other = 0 if rank != 0 else 1
    mine, others = bad.collectives(rank, 0), bad.collectives(other, 0)
    folder = bad.write(tmp_path / "job", healthy_job(size))
    return bad, folder, rank, faults.first_difference(mine, others)


def called_ns(job, rank, seq):
    op = job.collectives(rank, 0)[seq]
    return jobs.BASE_NS + rank + op.at * jobs.STEP_NS + rank % 7


@pytest.mark.one_of(3)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("kind", faults.DIFFERENT)
@pytest.mark.parametrize("size", SIZES)
def test_lines_name_the_operation_and_ledgers_alone_the_interval(healthy_job, tmp_path, size, kind, place):
    job, folder, rank, (seq, mine, others) = planted(healthy_job, size, kind, place, tmp_path)
    for options in ([], ["--no-lines"]):
        (finding,) = worse_than_notes(folder, *options)
        assert (finding["kind"], finding["communicator"]) == ("mismatch", job.id(0))
        assert finding["ranks"] == ([0, 1] if size == 2 else [rank])
        low, high = finding["between"]
        assert low <= seq < high
        # The marks of ledgers are at powers of two, so no interval is wider than from one to the next.
        assert high <= max(2 * low, 1) or high == low + 1
        if options:
            continue
        assert (finding["seq"], low, high) == (seq, seq, seq + 1)
        # With two ranks neither is in the right: the function is that of one of them.
        functions = {others[0] if others else mine[0]} | ({mine[0]} if size == 2 and mine else set())
        assert finding["function"] in functions
        told = "\n".join(finding["evidence"])
        for who, call in ((rank, mine), (0, others)):
            assert f"rank {who}, {seq}: {f'{call[0]} of {call[1]:,} {call[2]}' if call else ''}" in told
        made = [called_ns(job, who, seq) for who, call in ((rank, mine), (0, others)) if call]
        assert finding["time"] == [min(made), max(made)]


# Here is what rank 5 of eight lacks beside doing something else there, and what is known then.
LACKS = {"lines": (3, {"lines": False}, [2, 4]), "lines beyond a quota": (-1, {"quota": 4}, None)}


@pytest.mark.parametrize("what", LACKS)
def test_a_rank_without_lines_is_compared_by_its_ledger(healthy_job, tmp_path, what):
    written = healthy_job(8)
    at, fields, between = LACKS[what]
    bad = faults.plant_function(written.job, 5, 0, at % len(written.job.collectives(5, 0)))
    bad.ranks[5] = dataclasses.replace(bad.ranks[5], **fields)
    (finding,) = worse_than_notes(bad.write(tmp_path / "job", written))
    assert (finding["ranks"], finding["seq"]) == ([5], None)
    assert between is None or finding["between"] == between


def test_a_skipped_call_among_equal_ones_shows_where_they_end(tmp_path):
    """One rank makes 19 of 20 equal gathers: the number is that of the last."""
    job = jobs.healthy(4, 0, 1, [[0, 1, 2, 3]], point_to_point=False, copies=False)
    for rank in job.ranks:
        rank.ops = [jobs.Op("ncclAllGather", n, 500, 0, "float32") for n in range(20)]
        rank.ops.append(jobs.Op("ncclAllReduce", 20, 500, 0, "float32", "sum"))
    del job.ranks[2].ops[7]
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["ranks"], finding["seq"]) == ([2], 19)
    assert "rank 2: 19 ncclAllGather of float32 >= 4.00 KiB, the others 20" in (
        finding["evidence"]
    )


def test_two_ranks_that_part_in_different_places_are_two_findings(healthy_job, tmp_path):
    written = healthy_job(8)
    bad = faults.plant_function(written.job, 5, 0, 3)
    bad = faults.plant_count(bad, 2, 0, 9)
    findings = worse_than_notes(bad.write(tmp_path / "job", written))
    assert sorted((f["ranks"], f["seq"]) for f in findings) == [([2], 9), ([5], 3)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("others_inside", [True, False])
@pytest.mark.parametrize("how", ["count", "function"])
@pytest.mark.parametrize("size", [2, 8])
def test_ranks_that_stand_in_one_collective_with_different_arguments(
    healthy_job, tmp_path, size, how, others_inside, place
):
    """Ledgers hold calls that returned: here only those of the other ranks, or none."""
    job, rank = healthy_job(size).job, RANK[size]
    at = faults.places(job, rank, 0)[place]
    job, op = faults.plant_different_inside(job, rank, 0, at, how, others_inside)
    folder = job.write(tmp_path / "job", healthy_job(size))
    (finding,) = worse_than_notes(folder)
    assert finding["kind"] == "mismatch"
    assert finding["ranks"] == ([0, 1] if size == 2 else [rank])
    assert (finding["communicator"], finding["seq"]) == (job.id(0), at)
    told = "\n".join(finding["evidence"])
    mine = job.ranks[rank].inside[0]
    assert f"rank {rank}, {at}: {mine.function} of {mine.count:,} {mine.dtype}" in told
    assert f", {at}: {op.function} of {op.count:,} {op.dtype}" in told
    assert "no rank is missing" not in told and "network" not in finding["next"]
    assert "all ranks did the same" not in tprof("check", folder).stdout.splitlines()[0]
    found = json.loads(tprof("check", folder, "--json").stdout)
    assert [c["same"] for c in found["communicators"] if c["id"] == job.id(0)] == [False]


@pytest.mark.parametrize("end", ["closed", "recovered"])
def test_a_rank_that_stands_in_another_call_than_those_that_went_on(tmp_path, end):
    job = jobs.healthy(4, 12, 4, [[0, 1, 2, 3]], point_to_point=False)
    job, op = faults.plant_different_inside(job, 2, 0, 5, "count")
    for number, rank in enumerate(job.ranks):
        if number != 2:
            rank.ops, rank.inside = list(jobs.healthy(4, 12, 4, job.comms, False).ranks[0].ops), []
            rank.end = end
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"], finding["seq"]) == ("mismatch", [2], 5)
    made = f", 5: {op.function} of {op.count:,} "
    assert any(line.startswith("rank 0" + made) for line in finding["evidence"])


def test_the_lines_of_the_program_that_called_are_named(healthy_job, tmp_path):
    written = healthy_job(2)
    folder = faults.plant_count(written.job, 1, 0, 9).write(tmp_path / "job", written)
    for file in folder.iterdir():
        site = {"site": 1, "frames": [{"function": "step", "file": "/home/me/train.py", "line": 7}]}
        head, *body = file.read_text().replace('"args":{"comm":1,"seq":', '"args":{"site":1,"comm":1,"seq":').split("\n", 2)
        file.unlink()  # it may be a link to the healthy job's
        line = jobs.json_of(handmade.metadata("tprof_site", **site) | {"pid": int(file.stem[-1])})
        file.write_text("\n".join([head, body[0], line + ",", body[1]]))
    (finding,) = worse_than_notes(folder)
    assert "\n".join(finding["evidence"]).count(", from train.py:7 step") == 2

"""tprof check on jobs in which one rank does something else once: found, and named right."""

import json

import faults
import jobs
import pytest

SIZES = [2, 8, 512]
RANK = {2: 1, 8: 5, 512: 300}
# One job of each size; 512 ranks have two communicators only, so that they are quickly made.
COMMS = {2: [[0, 1]], 8: None, 512: [list(range(512)), list(range(256, 512))]}
OPERATIONS = {2: 40, 8: 80, 512: 24}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """base(size) -> a healthy job and its files."""
    made = {}

    def get(size):
        if size not in made:
            job = faults.pin(jobs.healthy(size, OPERATIONS[size], 7, COMMS[size]), 0)
            folder = tmp_path_factory.mktemp(f"base-{size}") / "job"
            made[size] = jobs.Written(job, job.write(folder))
        return made[size]

    return get


def worse_than_notes(tprof, folder, *options):
    result = tprof("check", folder, "--json", *options)
    assert result.stdout, result.stderr
    found = json.loads(result.stdout)
    worse = [f for f in found["findings"] if f["severity"] != "note"]
    assert result.returncode == (1 if worse else 0)
    return worse


def planted(base, size, kind, place, tmp_path):
    job = base(size).job
    rank = RANK[size]
    at = faults.places(job, rank, 0)[place]
    bad = faults.DIFFERENT[kind](job, rank, 0, at)
    other = 0 if rank != 0 else 1
    mine, others = bad.collectives(rank, 0), bad.collectives(other, 0)
    folder = bad.write(tmp_path / "job", base(size))
    return bad, folder, rank, faults.first_difference(mine, others)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("kind", faults.DIFFERENT)
@pytest.mark.parametrize("size", SIZES)
def test_ledgers_alone_name_rank_communicator_and_interval(
    tprof, base, tmp_path, size, kind, place
):
    job, folder, rank, (seq, _, _) = planted(base, size, kind, place, tmp_path)
    (finding,) = worse_than_notes(tprof, folder, "--no-lines")
    assert finding["kind"] == "mismatch"
    assert finding["ranks"] == ([0, 1] if size == 2 else [rank])
    assert finding["communicator"] == job.id(0)
    low, high = finding["between"]
    assert low <= seq < high
    # The marks are at powers of two: nothing wider than from one to the next.
    assert high <= max(2 * low, 1) or high == low + 1

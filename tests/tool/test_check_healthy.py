"""tprof check on jobs without a fault: no finding, whatever their shape."""

import json
import random

import pytest
from lib import jobs
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of
from lib.tool import merged, tprof


def varied(seed):
    """Returns a healthy job of some shape, traced in some way."""
    rng = random.Random(seed)
    size = rng.choice([1, 2, 2, 3, 4, 5, 8, 12])
    comms = None
    if rng.random() < 0.3:  # overlapping groups, some of one rank
        comms = [list(range(size))]
        comms += [sorted(rng.sample(range(size), rng.randint(1, size))) for _ in range(4)]
    job = jobs.healthy(
        size, rng.choice([0, 1, 2, 5, 33, 64, 100]), seed, comms,
        point_to_point=rng.random() < 0.5, copies=rng.random() < 0.7,
    )  # fmt: skip
    some_lines = rng.choice([None, None, {0}, set(range(0, size, 2)), set()])
    for number, rank in enumerate(job.ranks):
        rank.lines = some_lines is None or number in some_lines
        if rng.random() < 0.2:
            rank.quota = rng.randint(0, 40)
        if rng.random() < 0.3:
            rank.shuffle = random.Random(seed)
    if rng.random() < 0.2:  # all ranks call the same into a CUDA graph
        graph = set(rng.sample(range(120), 30))
        for rank in job.ranks:
            rank.launches = 7
            rank.ops = [
                jobs.dataclasses.replace(op, captured=op.at in graph) for op in rank.ops
            ]
    return job


@pytest.mark.parametrize("tenth", range(10))
def test_no_finding_in_200_healthy_jobs(tmp_path, tenth):
    for seed in range(tenth * 20, tenth * 20 + 20):
        job = varied(seed)
        folder = job.write(tmp_path / str(seed))
        result = tprof("check", folder, "--json")
        found = json.loads(result.stdout)
        worse = [f["kind"] for f in found["findings"] if f["severity"] != "note"]
        called = any(rank.ops for rank in job.ranks)
        assert worse == ([] if called else ["nothing_counted"]), seed
        assert (result.returncode, found["healthy"]) == ((0, True) if called else (1, False)), seed
        assert {f["kind"] for f in found["findings"]} <= {"dropped", *worse}


def test_a_job_that_called_nothing_made_no_copies(tmp_path):
    job = jobs.Job([], [jobs.Rank([], []), jobs.Rank([], [])])
    result = tprof("check", job.write(tmp_path / "job"))
    assert result.returncode == 1
    first, *finding = result.stdout.splitlines()
    assert first == "no communicator: 2 processes made no counted call"
    assert finding[0] == "warning: no NCCL call and no CUDA copy was counted"


def test_merged_traces_of_such_jobs_follow_the_contract(tmp_path):
    for seed in (3, 8, 21):
        varied(seed).write(tmp_path / str(seed))
        merged(tmp_path / str(seed), tmp_path / "merged.json")
        assert not_as_the_contract_says(lines_of(tmp_path / "merged.json")) == []

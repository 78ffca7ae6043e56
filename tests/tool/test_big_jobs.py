"""Small versions of the benchmarks' big jobs: `check` finds what their maker says is in them."""

import pytest
from lib import tool
from lib.contract import not_as_the_contract_says
from lib.rankfile import lines_of, parsed

RANKS, LINES = 24, 200


@pytest.fixture
def big_job(tmp_path):
    """Returns big_job(kind), which gives the folder and what is in it."""
    return lambda kind: (tmp_path / kind, tool.big_job(tmp_path / kind, RANKS, LINES, kind))


def check(folder, *options):
    status, found = tool.told("check", folder, *options)
    return found, status


@pytest.mark.parametrize("kind", ["closed", "killed", "lost", "hung", "sizes", "group_sizes"])
def test_merged_traces_of_big_jobs_follow_the_schema(big_job, tmp_path, kind):
    folder, truth = big_job(kind)
    merged = tmp_path / "merged.json"
    tool.tprof("merge", folder, "-o", merged)
    assert {line["pid"] for line in parsed(merged) if line["name"] == "tprof_header"} == set(range(RANKS))
    assert not_as_the_contract_says(lines_of(merged)) == []


@pytest.mark.parametrize("options", [[], ["--no-lines"]])
def test_a_big_job_that_closed_is_healthy(big_job, options):
    folder, truth = big_job("closed")
    found, status = check(folder, *options)
    assert (status, found["findings"]) == (0, [])
    assert len(found["communicators"]) == truth["communicators"]
    assert all(c["same"] for c in found["communicators"])


def test_a_big_job_that_hung_has_one_rank_that_never_came(big_job):
    folder, truth = big_job("hung")
    found, status = check(folder)
    assert status == 1
    (hang,) = [f for f in found["findings"] if f["kind"] == "hang"]
    assert hang["ranks"] == [truth["missing_rank"]]
    assert truth["function"] in hang["text"]


def test_a_big_job_that_was_killed_did_not_end_and_is_no_mismatch(big_job):
    found, status = check(big_job("killed")[0])
    assert status == 1
    # Ranks are a few calls apart when all are killed.
    assert {f["kind"] for f in found["findings"]} <= {"not_closed", "stopped"}


def test_a_big_job_whose_hosts_were_lost_says_only_that(big_job):
    found, status = check(big_job("lost")[0])
    assert status == 1
    assert {f["kind"] for f in found["findings"]} == {"lost"}
    assert {r for f in found["findings"] for r in f["ranks"]} == set(range(RANKS))


def test_sizes_that_depend_on_the_rank_are_mismatches_where_they_were_used(big_job):
    for kind, nranks in (("sizes", RANKS), ("group_sizes", 8)):
        found, status = check(big_job(kind)[0])
        assert status == 1
        wrong = {c["id"] for c in found["communicators"] if not c["same"]}
        assert {f["kind"] for f in found["findings"]} == {"mismatch"}
        assert {c["nranks"] for c in found["communicators"] if c["id"] in wrong} == {nranks}

"""Synthetic jobs are files of the contract, and the tool finds in them what was planted and nothing else."""

import json

import pytest
from generator import causes, rank_files
from lib.contract import not_as_the_contract_says
from lib.tool import tprof

RANKS = 16


def written(folder, layout, cause, seed, ranks=RANKS, steps=4):
    made = causes.case(layout, ranks, cause, seed, steps)
    rank_files.write(made, folder, seed)
    return made


def checked(folder):
    return json.loads(tprof("check", "--json", folder).stdout)


@pytest.mark.parametrize("layout", causes.LAYOUTS)
def test_files_are_as_the_contract_says(layout, tmp_path):
    written(tmp_path / "job", layout, None, 1, steps=2)
    for name in ("rank-00000.json", "rank-00013.json"):
        text = (tmp_path / "job" / name).read_text()
        json.loads(text)
        lines = [line.rstrip(",") for line in text.splitlines()[1:-1]]
        assert not_as_the_contract_says(lines) == []


@pytest.mark.parametrize("layout", causes.LAYOUTS)
def test_nothing_is_found_where_nothing_is_planted(layout, tmp_path):
    for seed in range(2):
        written(tmp_path / str(seed), layout, None, seed)
        assert checked(tmp_path / str(seed))["findings"] == []


@pytest.mark.parametrize("layout", causes.LAYOUTS)
@pytest.mark.parametrize(
    ("cause", "kind"), [("divergence", "mismatch"), ("hang", "hang"), ("killed", "stopped")]
)
def test_the_rank_that_stopped_the_others_is_named(cause, kind, layout, tmp_path):
    truth = written(tmp_path / "job", layout, cause, 2).truth
    found = [f for f in checked(tmp_path / "job")["findings"] if f["severity"] != "note"]
    assert found[0]["kind"] == kind and found[0]["ranks"] == truth.ranks, (truth, found)


@pytest.mark.parametrize(("cause", "kind"), [("missing", "missing_rank"), ("quota", "dropped")])
def test_what_files_lack_is_said(cause, kind, tmp_path):
    truth = written(tmp_path / "job", "hsdp", cause, 3).truth
    found = checked(tmp_path / "job")["findings"]
    assert [(f["kind"], f["ranks"]) for f in found] == [(kind, truth.ranks)], found


def test_a_cause_costs_the_difference_that_it_makes_to_the_steps(tmp_path):
    """By a formula where there is one: every step of the job waits for the slow GPU's kernels."""
    made = causes.case("moe", RANKS, "slow_gpu", 1, steps=6)
    clean = causes.case("moe", RANKS, None, 1, steps=6)
    factor = made.loop.gpu[made.truth.ranks[0]]
    computing = sum(end - begin for begin, end in clean.traces[0].busy) / 6
    assert made.truth.cost_ns_per_step == pytest.approx((factor - 1) * computing, rel=0.15)


def test_the_same_seed_makes_the_same_files(tmp_path):
    for name in ("a", "b"):
        written(tmp_path / name, "fsdp", "slow_loader", 3, ranks=4, steps=2)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()

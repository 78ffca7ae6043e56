"""Random programs: compares their traces with what a seed chose and the libraries were asked for."""

import pytest
from lib import random_calls, random_pipeline

AGAIN = "again, and smaller: PYTHONPATH=tests build/venv/bin/python tests/e2e/random_programs.py"


@pytest.mark.parametrize("seed", range(1, 33))
def test_ledger_is_what_the_libraries_were_asked_for(seed, tmp_path):
    played = random_calls.play(random_calls.plan(seed), tmp_path / "run")
    assert random_calls.faults(played) == [], f"{AGAIN} {seed}"


@pytest.mark.parametrize("seed", range(33, 40))
def test_every_command_tells_what_the_libraries_were_asked_for(seed, tmp_path):
    played = random_calls.play(random_calls.plan(seed), tmp_path / "run")
    assert random_calls.faults(played) == [], f"{AGAIN} {seed}"
    assert random_pipeline.faults(played) == [], f"{AGAIN} {seed}"


@pytest.mark.parametrize("seed", range(1, 8))
def test_the_one_rank_that_makes_one_call_differently_is_found(seed, tmp_path):
    played = random_calls.play(random_calls.odd_plan(seed), tmp_path / "run")
    assert "odd: rank" in played.stdout, "it made none: this shows nothing"
    assert random_calls.faults(played) == [], f"{AGAIN} {seed} --odd"
    assert random_pipeline.faults(played) == [], f"{AGAIN} {seed} --odd"

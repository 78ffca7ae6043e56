"""Programs that nobody thought of: what a seed chose, against what the libraries were asked for."""

import pytest
from lib import random_calls

SEEDS = range(1, 25)


@pytest.mark.parametrize("seed", SEEDS)
def test_trace_is_what_the_libraries_were_asked_for(seed, built, tmp_path):
    played = random_calls.play(random_calls.plan(seed), tmp_path / "run")
    assert random_calls.faults(played) == [], f"again: {random_calls.again(seed)}"

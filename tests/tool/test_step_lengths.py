"""How long steps take is what the simulation says, also where ranks reach them one after the other."""

import json
import statistics

import pytest
from generator.habits import MS, Loop, run
from generator.rank_files import write
from lib.tool import told


@pytest.mark.parametrize("slow", [{}, {2: 30 * MS}])
def test_a_step_is_as_long_as_it_takes_each_rank(slow, tmp_path):
    case = run(Loop(shape="fsdp", ranks=4, steps=12, loader=slow))
    write(case, tmp_path / "job")
    took = json.loads((tmp_path / "job.truth.json").read_text())["steps_ns"].values()
    truth = [statistics.mean(of_ranks) for of_ranks in zip(*took)]
    steps = told("summary", tmp_path / "job", "--by", "step")[1]["steps"]
    assert [step["dur"] for step in steps[:-1]] == pytest.approx(truth, rel=0.03)
    # Nothing comes behind the last one, so it ends when the device has done what was asked of it.
    assert steps[-1]["dur"] == pytest.approx(statistics.median(truth), rel=0.1)

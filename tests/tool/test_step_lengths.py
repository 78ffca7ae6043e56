"""How long steps take is what the simulation says, also where ranks reach them one after the other."""

import json
import re
import statistics

import pytest
from generator.habits import run
from generator.loop import MS, Loop
from generator.rank_files import Settings, write
from lib.tool import told, tprof


@pytest.mark.parametrize("slow", [{}, {2: 30 * MS}])
@pytest.mark.parametrize("marks", [True, False])
def test_a_step_is_as_long_as_it_takes_each_rank(slow, marks, tmp_path):
    case = run(Loop(shape="fsdp", ranks=4, steps=12, loader=slow))
    write(case, tmp_path / "job", settings=Settings(marks=marks))
    took = json.loads((tmp_path / "job.truth.json").read_text())["steps_ns"].values()
    truth = [statistics.mean(of_ranks) for of_ranks in zip(*took)]
    report = told("summary", tmp_path / "job", "--by", "step")[1]
    assert report["steps_found"] == ("mark" if marks else "period")
    steps = report["steps"]
    assert [step["dur"] for step in steps[:-1]] == pytest.approx(truth, rel=0.03)
    last = statistics.mean(trace.end - trace.steps[-1].begin for trace in case.traces.values())
    # If only the calls tell, nobody knows how long the program waited behind the last of them.
    assert steps[-1]["dur"] == (pytest.approx(last, rel=0.03) if marks else None)


def test_hosts_that_run_ahead_do_not_make_the_step_shorter(tmp_path):
    """One rank's loader sets the pace; the other hosts read no value, so they go ahead of their devices."""
    case = run(Loop(ranks=4, steps=30, layers=2, loader={1: 60 * MS}, item_every=0, per_host=4))
    write(case, tmp_path / "job", settings=Settings(marks=False, timing=False))
    took = json.loads((tmp_path / "job.truth.json").read_text())["steps_ns"]
    paced, ahead = (statistics.mean(took[rank][1:-1]) for rank in "10")
    assert paced > 1.2 * ahead  # else nothing is tried here
    done = tprof("report", tmp_path / "job")
    words = r"^Step, or micro-batch of one: ([\d.]+) ms on average \([^)]*, on the hosts\)"
    (said,) = re.findall(words, done.stdout, re.M)
    assert float(said) == pytest.approx(paced / MS, rel=0.02)
    assert "take far longer than the others" not in done.stdout
    report = told("summary", tmp_path / "job", "--by", "step")[1]
    lengths = [step["dur"] for step in report["steps"][1:-1]]
    assert statistics.mean(lengths) == pytest.approx(paced, rel=0.02)


def test_a_pause_of_one_host_is_told_whole_and_with_its_rank(tmp_path):
    """Without device times: the other host waits for it in the next step, where it reads a value."""
    case = run(Loop(ranks=2, steps=30, stalls={1: 3000 * MS}, stalls_every=23, stalls_at_update=True))
    write(case, tmp_path / "job", settings=Settings(timing=False))
    words = " ".join(tprof("report", tmp_path / "job").stdout.split())
    pattern = r"steps, 22,23, take far longer than the others, up to ([\d.]+) s in step 22 on rank 1 where"
    [seconds] = re.findall(pattern, words)
    assert float(seconds) == pytest.approx(3, rel=0.1)

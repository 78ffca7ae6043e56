"""`make bench` does not fail for what others did on the machine meanwhile."""

import subprocess
import sys

import pytest
from busy import Used
from figures import Figure, table
from lib.build import REPO

OVER = [3.0, 3.0, 3.0]


@pytest.mark.parametrize("unit", ("ns", "ns CPU", "s", "s CPU", "ms"))
def test_times_are_judged_on_a_quiet_machine_only(unit):
    figure = Figure("a call", unit, OVER, limit=2)
    assert (figure.ok(busy=False), figure.ok(busy=True)) == (False, None)
    assert "OVER" in table([figure], busy=False)
    assert "not judged" in table([figure], busy=True)


@pytest.mark.parametrize("unit", ("MiB", "bytes", ""))
def test_what_others_can_not_change_is_judged_always(unit):
    figure = Figure("memory", unit, OVER, limit=2)
    assert (figure.ok(busy=False), figure.ok(busy=True)) == (False, False)
    assert "OVER" in table([figure], busy=True)


def test_what_others_used_is_what_the_machine_used_and_we_did_not():
    before = Used(wall=100, machine=50, ours=5)
    assert Used(wall=110, machine=75, ours=10).others_since(before) == 2.0
    assert Used(wall=110, machine=54, ours=10).others_since(before) == 0.0  # ticks are coarse


def test_a_child_that_has_ended_is_ours():
    before = Used.now()
    spin = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = Used.now()
    assert after.ours - before.ours >= 0.4
    assert after.machine - before.machine >= 0.4


def test_it_starts_with_nothing_but_python():
    """Without PyPI there is no virtual environment, and everything but PyTorch is measured."""
    bench = [sys.executable, "-S", REPO / "tests/bench/bench.py", "--help"]
    done = subprocess.run(bench, env={"PYTHONPATH": REPO / "tests"}, capture_output=True, text=True)
    assert done.returncode == 0 and "PART" in done.stdout, done.stderr

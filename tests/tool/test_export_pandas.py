"""analysis/export/pandas_example.py: compares its figures with sums of the trace's own lines."""

import importlib.util
import statistics

import pytest
from lib import needs
from lib.build import REPO
from lib.clocks import nanoseconds
from lib.tool import generate, tprof
from test_export import events_of

EXAMPLE = REPO / "analysis/export/pandas_example.py"
RANKS, SKIPPED = 3, 5


@pytest.fixture(scope="module")
def example():
    needs.package("pandas")
    spec = importlib.util.spec_from_file_location("pandas_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns the database, and for each rank how long its gathers took, in the order of time."""
    folder = tmp_path_factory.mktemp("pandas")
    generate(folder / "run", RANKS, 500)
    assert tprof("export", folder / "run", "--sqlite", folder / "run.db").returncode == 0
    took = {}
    for rank, file in enumerate(sorted((folder / "run").iterdir())):
        gathers = [e for e in events_of(file) if e["name"] == "ncclAllGather" and e["ph"] == "X"]
        gathers.sort(key=lambda event: nanoseconds(event["ts"]))
        took[rank] = [nanoseconds(event["dur"]) for event in gathers]
    return folder / "run.db", took


def test_its_figures_are_those_of_the_lines(example, run):
    database, took = run
    rows = example.part(example.durations(database, "ncclAllGather"), slice(SKIPPED, None))
    kept = {rank: ns[SKIPPED:] for rank, ns in took.items()}
    assert {rank: list(ns) for rank, ns in rows.groupby("rank")["ns"]} == kept
    times = [ns for rank in kept.values() for ns in rank]
    found = example.statistics(rows)
    assert (found["count"], found["rank_count"], found["sum"]) == (len(times), RANKS, sum(times))
    assert (found["min"], found["max"]) == (min(times), max(times))
    assert (found["mean"], found["std"]) == pytest.approx((statistics.fmean(times), statistics.pstdev(times)))
    by_rank = example.by_rank(rows)
    assert list(by_rank["sum"]) == [sum(ns) for ns in kept.values()]
    assert list(by_rank["mean"]) == pytest.approx([statistics.fmean(ns) for ns in kept.values()])
    assert example.durations(database, "ALLGATHER").equals(example.durations(database, "ncclAllGather"))
    assert example.durations(database, "ncclAllGather", device=True).empty

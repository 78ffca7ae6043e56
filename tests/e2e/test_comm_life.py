"""What becomes of calls on communicators that are named, not ready yet, aborted, made again."""

import pytest
from lib import figures, rankfile
from lib.build import BUILD
from lib.launch import start


@pytest.fixture(scope="module")
def run(built, tmp_path_factory):
    done = start([str(BUILD / "comm_life")], tmp_path_factory.mktemp("life") / "run", preload=True)
    # NCCL warns of every question about a communicator that is not ready: none was asked.
    assert (done.code, done.stderr) == (0, "")
    return done


@pytest.fixture(scope="module")
def file(run):
    (path,) = run.traces.iterdir()
    return rankfile.read(path)


def allreduces(file, comm):
    rows = [r for r in file.ledger_rows() if r["comm"] == comm and r["name"] == "ncclAllReduce"]
    return sum(r["calls"] for r in rows), sum(r["failed"] for r in rows)


def test_every_figure_is_the_tallys(run, file):
    (tally,) = figures.read_tallies(run.tally)
    assert not figures.difference(figures.of_ledger(file), figures.of_tally(tally))


def test_names_and_parents_are_those_that_were_given(file):
    named = {c["name"]: c for c in file.comms if c["name"]}
    assert set(named) == {"parent", "child", "unused", "after", "groups"}  # none was "given up"
    assert named["child"]["parent"] == named["parent"]["comm"]
    assert named["parent"]["parent"] is None


def test_calls_of_a_child_that_came_late_or_was_aborted_stay_its_own(file):
    named = {c["name"]: c["comm"] for c in file.comms if c["name"]}
    assert allreduces(file, named["parent"]) == (2, 0)
    assert allreduces(file, named["child"]) == (3, 0)


def test_a_child_that_ended_unused_leaves_its_place_to_the_next(file):
    named = {c["name"]: c["comm"] for c in file.comms if c["name"]}
    assert allreduces(file, named["unused"]) == (0, 0)
    assert allreduces(file, named["after"]) == (5, 0)


def test_groups_count_as_a_whole_or_as_failed(file):
    """Nested: 2. Simulated: 4 that failed. With a refused call: 1 that failed. Then 1 alone."""
    named = {c["name"]: c["comm"] for c in file.comms if c["name"]}
    assert allreduces(file, named["groups"]) == (3, 5)
    numbers = [
        e["args"]["seq"]
        for e in file.events
        if e["args"].get("comm") == named["groups"] and e["args"].get("result", 0) == 0
    ]
    assert numbers == [0, 1, 2]


def test_a_handle_that_comes_again_is_another_communicator(run, file):
    assert int(run.stdout.split()[0]) > 0, "no address came twice: this shows nothing"
    short = [c for c in file.comms if c["name"] is None and c["nranks"] == 1]
    assert len(short) == 50 and len({c["id"] for c in short}) == 50
    assert all(allreduces(file, c["comm"]) == (1, 0) for c in short)

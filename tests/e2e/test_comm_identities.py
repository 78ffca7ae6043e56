"""Communicators and streams are told apart however many there are, or are said to be unknown."""

import collections
import functools
import json

import pytest
from lib import figures
from lib.build import BUILD
from lib.contract import not_as_the_contract_says
from lib.launch import start
from lib.thorough import ALL
from lib.tool import told

MANY = 65404  # as many as the table holds, and a few more: unit/interpose_ledger.cpp does so in any run


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Returns run(mode, n), which runs the client and gives its rank file, its tally and what it printed."""

    @functools.cache
    def run(mode, n):
        room = {"STANDIN_TALLY_COMMS": "66000"}
        run = start([BUILD / "comm_identities", mode, n], tmp_path_factory.mktemp(mode) / "run", **room)
        # NCCL warns of every query of a communicator that is not ready: there was none.
        assert (run.code, run.stderr) == (0, "")
        return run.only_rank(), run.only_tally(), run.stdout

    return run


def kinds_of(problems):
    return [problem["kind"] for problem in problems]


def worse_than_notes(findings):
    """NCCL allows one thread at a time on a communicator. Two that call it at once, as in some modes, may get one
    number for both calls, which check then tells."""
    worse = [found["text"] for found in findings if found["severity"] != "note"]
    return [text for text in worse if ": 1 collective of" not in text or "has two lines" not in text]


def assert_exact(file, tally, place=None):
    ours = figures.of_ledger(file, place)
    assert not figures.difference(ours, figures.of_tally(tally, *([place] if place else [])))


def by_comm(file):
    calls = collections.Counter()
    for row in file.ledger_rows():
        calls[row["comm"]] += row["calls"]
    return calls


def test_a_child_that_two_threads_use_first_is_one_communicator(traced):
    file, tally, _ = traced("race", 300)
    assert len(file.comms) == 1 + 300
    assert_exact(file, tally)
    children = [comm for comm in file.comms if comm["name"] == "child"]
    assert [by_comm(file)[comm["comm"]] for comm in children] == [2] * 300


def test_children_that_wait_are_all_known_however_many(traced):
    file, tally, _ = traced("waiting", 200)
    assert [c["name"] for c in file.comms] == ["parent", *(f"child {i}" for i in range(200))]
    assert all(comm["parent"] == 1 and comm["id"] for comm in file.comms[1:])
    assert_exact(file, tally)


def test_a_communicator_whose_making_was_not_seen_has_no_id_and_that_is_said(traced):
    file, tally, _ = traced("unseen", 50)
    assert [comm["id"] for comm in file.comms] == [None] * 51
    assert all((c["nranks"], c["rank"], c["device"]) == (1, 0, 0) for c in file.comms)
    # They are numbered in the order in which they are first seen; the tally's, in which they are
    # made.
    assert_exact(file, tally, place=lambda row: None)
    assert sorted(by_comm(file).values()) == [1] + [2] * 50
    for command in "check", "summary":
        findings = told(command, file.path)[1]["findings"]
        assert kinds_of(findings).count("comm_unknown") == 1 and worse_than_notes(findings) == []


@pytest.mark.skipif(not ALL, reason="takes a minute")
def test_calls_beyond_a_full_table_of_communicators_are_counted_and_that_is_said_once(traced):
    file, tally, _ = traced("many", MANY)
    assert len(tally["comms"]) == MANY and len(file.comms) == 65280
    counted = [row for row in file.ledger_rows() if row["name"] == "ncclAllGather"]
    assert sum(row["calls"] for row in counted) == sum(row["returned"] for row in tally["rows"])
    assert sum(row["calls"] for row in counted if row["comm"] is None) == MANY - 65280
    for command, kinds in ("check", "findings"), ("summary", "findings"):
        code, said = told(command, file.path)
        assert (code, kinds_of(said[kinds]).count("comm_shared")) == (0, 1)


def test_a_stream_behind_the_table_of_streams_has_no_number_and_that_is_said(traced):
    file, tally, _ = traced("streams", 200)
    numbers = [event["args"].get("stream", 0) for event in file.events]
    assert numbers == [i // 2 + 1 for i in range(2 * 128)] + [None] * (2 * 72)
    assert_exact(file, tally)
    assert {"path": "cudaStream_t", "kind": "streams"} in file.footer["coverage"]["unseen"]
    code, said = told("summary", file.path)
    assert (code, kinds_of(said["findings"]).count("streams")) == (0, 1)


@pytest.mark.parametrize(
    ("mode", "n"), [("race", 300), ("unseen", 50), ("streams", 200), *([("many", MANY)] if ALL else [])]
)
def test_their_lines_are_the_schemas_and_check_finds_no_fault_in_them(traced, mode, n):
    file, _, _ = traced(mode, n)
    assert not_as_the_contract_says(map(json.dumps, file.lines)) == []
    findings = told("check", file.path)[1]["findings"]
    worse = [found for found in findings if found["severity"] != "note"]
    assert worse_than_notes(findings) == []
    assert mode in ("race", "unseen") or worse == []


def allreduces(file, comm):
    rows = [r for r in file.ledger_rows() if r["comm"] == comm and r["name"] == "ncclAllReduce"]
    return sum(r["calls"] for r in rows), sum(r["failed"] for r in rows)


@pytest.fixture
def lived(traced):
    """Returns the rank file of communicators that are named, not ready yet, aborted, made again."""
    return traced("life", 50)[0]


def test_every_figure_of_their_lives_is_the_tallys(traced):
    file, tally, _ = traced("life", 50)
    assert_exact(file, tally)


def test_names_and_parents_are_those_that_were_given(lived):
    named = {c["name"]: c for c in lived.comms if c["name"]}
    assert set(named) == {"parent", "child", "unused", "after", "groups"}  # none was "given up"
    assert named["child"]["parent"] == named["parent"]["comm"]
    assert named["parent"]["parent"] is None


def test_calls_of_a_child_that_came_late_or_was_aborted_stay_its_own(lived):
    named = {c["name"]: c["comm"] for c in lived.comms if c["name"]}
    assert allreduces(lived, named["parent"]) == (2, 0)
    assert allreduces(lived, named["child"]) == (3, 0)


def test_a_child_that_ended_unused_leaves_its_place_to_the_next(lived):
    named = {c["name"]: c["comm"] for c in lived.comms if c["name"]}
    assert allreduces(lived, named["unused"]) == (0, 0)
    assert allreduces(lived, named["after"]) == (5, 0)


def test_groups_count_as_a_whole_or_as_failed(lived):
    """Counts 2 nested calls, 4 simulated ones as failed, 1 with a refused call as failed, and 1 alone."""
    named = {c["name"]: c["comm"] for c in lived.comms if c["name"]}
    assert allreduces(lived, named["groups"]) == (3, 5)
    numbers = [
        e["args"]["seq"]
        for e in lived.events
        if e["args"].get("comm") == named["groups"] and e["args"].get("result", 0) == 0
    ]
    assert numbers == [0, 1, 2]


def test_a_handle_that_comes_again_is_another_communicator(traced):
    lived, _, stdout = traced("life", 50)
    assert int(stdout.split()[0]) > 0, "no address came twice: this shows nothing"
    short = [c for c in lived.comms if c["name"] is None and c["nranks"] == 1]
    assert len(short) == 50 and len({c["id"] for c in short}) == 50
    assert all(allreduces(lived, c["comm"]) == (1, 0) for c in short)

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
    """Returns run(mode, n), which runs the client and gives its rank file and its tally."""

    @functools.cache
    def run(mode, n):
        room = {"STANDIN_TALLY_COMMS": "66000"}
        run = start([BUILD / "comm_identities", mode, n], tmp_path_factory.mktemp(mode) / "run", **room)
        # NCCL warns of every query of a communicator that is not ready: there was none.
        assert (run.code, run.stderr) == (0, "")
        return run.only_rank(), run.only_tally()

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
    file, tally = traced("race", 300)
    assert len(file.comms) == 1 + 300
    assert_exact(file, tally)
    children = [comm for comm in file.comms if comm["name"] == "child"]
    assert [by_comm(file)[comm["comm"]] for comm in children] == [2] * 300


def test_children_that_wait_are_all_known_however_many(traced):
    file, tally = traced("waiting", 200)
    assert [c["name"] for c in file.comms] == ["parent", *(f"child {i}" for i in range(200))]
    assert all(comm["parent"] == 1 and comm["id"] for comm in file.comms[1:])
    assert_exact(file, tally)


def test_a_communicator_whose_making_was_not_seen_has_no_id_and_that_is_said(traced):
    file, tally = traced("unseen", 50)
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
    file, tally = traced("many", MANY)
    assert len(tally["comms"]) == MANY and len(file.comms) == 65280
    counted = [row for row in file.ledger_rows() if row["name"] == "ncclAllGather"]
    assert sum(row["calls"] for row in counted) == sum(row["returned"] for row in tally["rows"])
    assert sum(row["calls"] for row in counted if row["comm"] is None) == MANY - 65280
    for command, kinds in ("check", "findings"), ("summary", "findings"):
        code, said = told(command, file.path)
        assert (code, kinds_of(said[kinds]).count("comm_shared")) == (0, 1)


def test_a_stream_behind_the_table_of_streams_has_no_number_and_that_is_said(traced):
    file, tally = traced("streams", 200)
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
    file, _ = traced(mode, n)
    assert not_as_the_contract_says(map(json.dumps, file.lines)) == []
    findings = told("check", file.path)[1]["findings"]
    worse = [found for found in findings if found["severity"] != "note"]
    assert worse_than_notes(findings) == []
    assert mode in ("race", "unseen") or worse == []

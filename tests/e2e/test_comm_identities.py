"""Which communicator, which stream: right however many there are, or said to be unknown."""

import collections
import json
import subprocess

import jsonschema
import pytest
from lib import figures, rankfile
from lib.build import BUILD, REPO
from lib.launch import start


@pytest.fixture(scope="module")
def traced(built, tmp_path_factory):
    """Of a mode of the client and a number: its rank file, its tally, `tprof COMMAND --json`."""
    done = {}

    def run(mode, n):
        if mode not in done:
            command = [str(BUILD / "comm_identities"), mode, str(n)]
            made = start(command, tmp_path_factory.mktemp(mode) / "run", preload=True)
            assert (made.code, made.stderr) == (0, ""), made.stderr
            (path,) = made.traces.iterdir()
            (tally,) = figures.read_tallies(made.tally)
            done[mode] = rankfile.read(path), tally
        return done[mode]

    return run


def tool(file, command):
    done = subprocess.run(
        [BUILD / "tprof", command, "--json", file.path], capture_output=True, text=True
    )
    return done.returncode, json.loads(done.stdout)


def kinds_of(problems):
    return [problem["kind"] for problem in problems]


def by_comm(file):
    calls = collections.Counter()
    for row in file.ledger_rows():
        calls[row["comm"]] += row["calls"]
    return calls


def test_a_child_that_two_threads_use_first_is_one_communicator(traced):
    file, tally = traced("race", 300)
    assert len(file.comms) == 1 + 300
    assert not figures.difference(figures.of_ledger(file), figures.of_tally(tally))
    children = [comm for comm in file.comms if comm["name"] == "child"]
    assert [by_comm(file)[comm["comm"]] for comm in children] == [2] * 300


def test_children_that_wait_are_all_known_however_many(traced):
    file, tally = traced("waiting", 200)
    assert [c["name"] for c in file.comms] == ["parent", *(f"child {i}" for i in range(200))]
    assert all(comm["parent"] == 1 and comm["id"] for comm in file.comms[1:])
    assert not figures.difference(figures.of_ledger(file), figures.of_tally(tally))


def test_a_communicator_whose_making_was_not_seen_has_no_id_and_that_is_said(traced):
    file, tally = traced("unseen", 50)
    assert [comm["id"] for comm in file.comms] == [None] * 51
    assert all((c["nranks"], c["rank"], c["device"]) == (1, 0, 0) for c in file.comms)
    # They are numbered as they are first seen; the tally's, as they are made.
    nobody = lambda row: None
    assert not figures.difference(
        figures.of_ledger(file, nobody), figures.of_tally(tally, nobody)
    )
    assert sorted(by_comm(file).values()) == [1] + [2] * 50
    for command, kinds in ("check", "findings"), ("summary", "problems"):
        code, said = tool(file, command)
        assert (code, kinds_of(said[kinds]).count("comm_unknown")) == (0, 1)


def test_a_full_table_of_communicators_keeps_counts_exact_and_is_said_once(traced):
    file, tally = traced("many", 16500)
    assert len(tally["comms"]) == 16500
    nobody = lambda row: None
    assert not figures.difference(
        figures.of_ledger(file, nobody), figures.of_tally(tally, nobody)
    )
    shared = [comm for comm in file.comms if comm["rank"] is None]
    assert sorted(comm["nranks"] for comm in shared) == [3, 8]
    assert all(comm["id"] is None and comm["device"] is None for comm in shared)
    assert sum(by_comm(file)[comm["comm"]] for comm in shared) == 16500 - (len(file.comms) - 2)
    assert {c["comm"] for c in file.ledgers[-1]["comms"]}.isdisjoint(c["comm"] for c in shared)
    numbers = {c["comm"]: e["args"]["seq"] for e in file.events for c in [e["args"]]}
    assert all(numbers[comm["comm"]] is None for comm in shared)
    for command, kinds in ("check", "findings"), ("summary", "problems"):
        code, said = tool(file, command)
        assert (code, kinds_of(said[kinds]).count("comm_shared")) == (0, 1)


def test_a_stream_behind_the_table_of_streams_has_no_number_and_that_is_said(traced):
    file, tally = traced("streams", 200)
    numbers = [event["args"].get("stream", 0) for event in file.events]
    assert numbers == [i // 2 + 1 for i in range(2 * 128)] + [None] * (2 * 72)
    assert not figures.difference(figures.of_ledger(file), figures.of_tally(tally))
    assert {"path": "cudaStream_t", "kind": "streams"} in file.footer["coverage"]["unseen"]
    code, said = tool(file, "summary")
    assert (code, kinds_of(said["problems"]).count("streams")) == (0, 1)


@pytest.mark.parametrize(
    ("mode", "n"), [("race", 300), ("unseen", 50), ("many", 16500), ("streams", 200)]
)
def test_their_lines_are_the_schemas_and_check_finds_no_fault_in_them(traced, mode, n):
    file, _ = traced(mode, n)
    text = (REPO / "tests/golden/line.schema.json").read_text()
    schema = jsonschema.Draft202012Validator(json.loads(text))
    lines = file.lines if len(file.lines) < 1000 else file.lines[:500] + file.lines[-500:]
    assert not [line for line in lines if not schema.is_valid(line)]
    code, said = tool(file, "check")
    assert code == 0, said["findings"]
    assert not [p for p in said["findings"] if p["severity"] != "note"]

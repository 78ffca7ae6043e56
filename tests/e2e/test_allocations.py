"""TPROF_MEMORY=1: compares what a program has allocated with the stand-in's own books."""

import signal
import sys

import pytest
from lib import memory_books
from lib.build import BUILD
from lib.launch import start
from lib.rankfile import named, parsed
from lib.tool import summary_of, tprof

CLIENT = BUILD / "allocations"


def run(folder, *command, **variables):
    books = folder / "books"
    books.mkdir()
    settings = {"TPROF_MEMORY": "1", "STANDIN_MEMORY": str(books), "RANK": "0", "WORLD_SIZE": "1"}
    done = start(list(command), folder, **(settings | variables))
    return done, memory_books.read_all(books)


def told(uses):
    """Returns {device, "pinned" or "managed": (bytes, peak)} of a ledger, or of a process in the summary."""
    return {u["device"] if u["kind"] == "device" else u["kind"]: (u["bytes"], u["peak"]) for u in uses}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    done, books = run(tmp_path_factory.mktemp("allocations"), CLIENT, TPROF_EVENTS="all")
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    return done, books


def test_ledger_is_the_books_of_the_standin(whole):
    done, books = whole
    ((pid, expected),) = books.items()
    file = done.only_rank()
    assert file.header["pid"] == pid
    (ledger,) = named(parsed(file.path), "tprof_ledger")
    assert told(ledger["memory"]) == expected
    assert expected.keys() == {0, 1, 2, 3, "pinned", "managed"}
    assert all(0 < now < peak for place, (now, peak) in expected.items() if place in (0, 1, 2, "pinned", "managed"))
    assert expected[3] == (2 << 20, 2 << 20)


def test_lanes_end_with_what_is_there_at_the_end(whole):
    done, books = whole
    (expected,) = books.values()
    lanes = {}
    for line in parsed(done.only_rank().path):
        if line.get("cat") == "COUNTER" and line["name"] == "allocated memory, bytes":
            assert line["tid"] == 0
            lanes |= line["args"]
    names = {place: f"device {place}" if isinstance(place, int) else place for place in expected}
    assert lanes == {names[place]: now for place, (now, _) in expected.items()}


def test_summary_says_it_of_each_process_and_in_short(whole):
    done, books = whole
    ((pid, expected),) = books.items()
    uses = summary_of(done.traces)["memory"]
    assert {(u["rank"], u["pid"]) for u in uses} == {(0, pid)}
    assert told(uses) == expected
    text = tprof("summary", done.traces).stdout
    (table,) = [part for part in text.split("\n\n") if part.startswith("Memory that the program allocated")]
    rows = [line.split() for line in table.splitlines() if line.split()[0] in ("device", "pinned", "managed")]
    assert [row[:2] for row in rows] == [["device", "4"], ["pinned", "1"], ["managed", "1"]]


def test_a_kill_loses_nothing_of_it(tmp_path):
    done, books = run(tmp_path, CLIENT, "killed")
    assert done.code == -signal.SIGKILL
    ((pid, expected),) = books.items()
    uses = summary_of(done.traces)["memory"]
    assert ({u["pid"] for u in uses}, told(uses)) == ({pid}, expected)


def test_a_child_begins_with_empty_books(tmp_path):
    done, books = run(tmp_path, CLIENT, "forked")
    assert (done.code, done.stderr) == (0, "")
    assert len(books) == 2
    found = {}
    for use in summary_of(done.traces)["memory"]:
        found.setdefault(use["pid"], []).append(use)
    assert {pid: told(uses) for pid, uses in found.items()} == books
    child = [uses for uses in books.values() if len(uses) == 2]
    assert child == [{0: (4444, 4444), "pinned": (555, 555)}]


def test_a_runtime_that_is_linked_in_is_booked_through_the_driver(tmp_path):
    """Copies of the driver are counted, so that there is a call that counts, and a file."""
    done, books = run(tmp_path, BUILD / "runtime_copies_static", TPROF_DRIVER="1")
    assert (done.code, done.stderr) == (0, "")
    (expected,) = books.values()
    assert told(summary_of(done.traces)["memory"]) == expected != {}


def test_without_the_setting_nothing_is_said(tmp_path):
    done, books = run(tmp_path, CLIENT, TPROF_MEMORY="0")
    assert (done.code, done.stderr) == (0, "")
    (ledger,) = named(parsed(done.only_rank().path), "tprof_ledger")
    assert "memory" not in ledger and "memory" not in summary_of(done.traces) and books


PYTORCH = """
import torch
kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (3, 40, 7)]
kept += [torch.zeros(1000).cuda(), torch.empty(12345, pin_memory=True)]
kept.pop(1)
torch.cuda.empty_cache()
torch.cuda.synchronize()
print(torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())
"""


def test_pytorch_has_reserved_what_the_books_say(tmp_path):
    done, books = run(tmp_path, sys.executable, "-c", PYTORCH)
    assert done.code == 0, done.stderr
    (expected,) = books.values()
    uses = told(summary_of(done.traces)["memory"])
    assert uses == expected
    assert uses[0] == tuple(map(int, done.stdout.split()))

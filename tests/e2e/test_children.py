"""Processes that a Python program makes: each has one file, which holds its own calls."""

import sys

import pytest
from lib import figures, rankfile
from lib.build import CLIENTS
from lib.launch import start

COPIES = {"fork": [4, 5, 6], "spawn": [5, 6, 7], "forkserver": [5, 6, 7]}


@pytest.mark.parametrize("method", COPIES)
def test_multiprocessing(method, tmp_path):
    command = [sys.executable, str(CLIENTS / "children.py"), "--method", method]
    traced = start(command, tmp_path / "run")
    assert (traced.code, traced.stdout, traced.stderr) == (0, "[0, 0]\n", "")
    # Children of fork and forkserver end by os._exit, which closes the file too.
    tallies = traced.tallies()
    files = [rankfile.read(path) for path in traced.traces.iterdir()]
    for file in files:
        assert file.footer["complete"] is True
        tally = tallies.pop(file.header["pid"])
        assert figures.difference(figures.of_ledger(file), figures.of_tally(tally)) == ""
    made = [sum(event["cat"] == "D2H" for event in file.events) for file in files]
    assert sorted(made) == COPIES[method]

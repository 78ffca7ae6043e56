"""Ranks of a healthy job end in ways of their own: each file is closed and exact, and no rank is
said to have been killed."""

import pytest
from lib import figures
from lib.launch import start, without_agent
from lib.tool import worse_than_notes

RANKS = 2
ENDS = ["return", "_exit", "execv", "subprocess"]


@pytest.mark.parametrize("how", ENDS)
def test_a_healthy_job_is_healthy_however_its_ranks_end(torch, how, tmp_path):
    traced = start(without_agent("ends.py", RANKS, ("--how", how)), tmp_path / "run")
    assert (traced.code, traced.words_of_ours()) == (0, []), traced.stderr
    files = traced.ranks()
    assert [file.rank for file in files] == list(range(RANKS))
    tallies = traced.tallies()
    for file in files:
        assert file.footer["complete"] is True
        theirs = figures.of_tally(tallies[file.header["pid"]])
        assert figures.difference(figures.of_ledger(file), theirs) == ""
    assert worse_than_notes(traced.traces) == []

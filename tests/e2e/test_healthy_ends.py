"""Ranks of a healthy job end in ways of their own: each file is closed and exact, and nobody is said
to have been killed."""

import json
import subprocess

import pytest
from lib import figures, rankfile
from lib.build import BUILD
from lib.launch import start, torchrun

RANKS = 2
ENDS = ["return", "_exit", "execv", "subprocess"]


@pytest.mark.parametrize("how", ENDS)
def test_a_healthy_job_is_healthy_however_its_ranks_end(how, built, tmp_path):
    traced = start(torchrun("ends.py", RANKS, ("--how", how)), tmp_path / "run", preload=True)
    assert (traced.code, traced.words_of_ours()) == (0, []), traced.stderr
    files = rankfile.read_folder(traced.traces)
    assert [file.rank for file in files] == list(range(RANKS))
    tallies = {tally["pid"]: tally for tally in figures.read_tallies(traced.tally)}
    for file in files:
        assert file.footer["complete"] is True
        theirs = figures.of_tally(tallies[file.header["pid"]])
        assert figures.difference(figures.of_ledger(file), theirs) == ""
    command = [BUILD / "tprof", "check", "--json", traced.traces]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    worse = [f for f in json.loads(check.stdout)["findings"] if f["severity"] != "note"]
    assert (check.returncode, worse) == (0, [])

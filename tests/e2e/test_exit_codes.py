"""However a script ends, it ends the same under the preload, and what it did is on record."""

import collections

import pytest
from lib import figures, rankfile
from lib.launch import start, without_agent
from lib.tool import worse_than_notes

PARAMETERS, STEPS = 20, 3  # single_gpu.py
ENDS = {"return": 0, "execv": 0, "subprocess": 0, "exit": 7, "exception": 1, "_exit": 5, "signal": 128 + 15}


@pytest.fixture(scope="module", params=ENDS)
def ended(request, torch, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    command = without_agent("single_gpu.py", 1, ("--end", request.param))
    plain = start(command, folder / "plain", preload=False)
    return request.param, plain, start(command, folder / "traced")


def test_code_and_output_are_the_same(ended):
    end, plain, traced = ended
    assert (plain.code, len(plain.stdout.splitlines())) == (ENDS[end], STEPS + (end == "execv")), plain.stderr
    assert (traced.code, traced.stdout, traced.stderr) == (plain.code, plain.stdout, plain.stderr)


def test_every_exit_but_a_signal_and_an_exec_closes_the_file(ended):
    end, _, traced = ended
    if end in ("signal", "execv"):
        # The library runs no code then: the file is open, and the ring that holds the rest is
        # there.
        (file,) = traced.traces.glob("*.json")
        (ring,) = rankfile.rings(traced.traces).values()
        (beside,) = (other for other in traced.traces.iterdir() if other != file)
        assert beside == ring or beside.suffix == ".snapshot"
        return
    file = traced.only_rank()
    assert file.footer["complete"] and file.footer["exit_status"] == ENDS[end]
    assert bool(worse_than_notes(traced.traces)) == (ENDS[end] != 0)
    tally = traced.only_tally()
    assert figures.difference(figures.of_ledger(file), figures.of_tally(tally)) == ""
    copies = collections.Counter(event["cat"] for event in file.events)
    assert copies == {"H2D": PARAMETERS + STEPS, "D2H": STEPS}

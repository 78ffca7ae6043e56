"""A process that can open or start no more, from any moment on, loses no count that is not said to be missing."""

import signal

import pytest
from lib import runs

# Before or after the first call; before the second thread's; at the exit.
THREADS = [("threads", when) for when in ("before", "after", "second", "end")]
FILES = [("files", when) for when in ("before", "end")]  # in between the rank file may not be made yet


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", ["return", "_exit", "kill"])
@pytest.mark.parametrize(("what", "when"), THREADS + FILES)
def test_what_cannot_be_had_costs_no_count(what, when, how, tmp_path):
    command = runs.client("starve", what, when, how)
    plain = runs.run(tmp_path / "plain", command, preload=False)
    traced = runs.run(tmp_path / "traced", command)
    assert traced.outcome() == plain.outcome() == (-signal.SIGKILL if how == "kill" else 7, "all calls returned\n")
    traces = sorted(traced.traces.glob("*.json")) if traced.traces.exists() else []
    if when == "before" and not traces:
        assert "not tracing" in traced.stderr, traced.stderr
        return
    assert traced.complaints() == [], traced.stderr
    if how == "kill":
        runs.recover(traced.traces)
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)
    assert runs.footer(traced.only_rank_file())["complete"] == (how != "kill")

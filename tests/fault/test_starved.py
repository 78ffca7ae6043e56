"""A process that can map, open or start no more, from any moment on, loses no count that is not said to be missing."""

import signal

import pytest
from lib import runs

WHENS = ("before", "after", "second", "end")  # of the first call; before the second thread's; at the exit
NOT_TRACED = {("maps", "before"), ("space", "before"), ("data", "before"), ("files", "before"), ("threads", "before")}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("how", ["return", "_exit", "kill"])
@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("what", ["space", "data", "maps", "files", "threads"])
def test_what_cannot_be_had_costs_no_count(what, when, how, tmp_path):
    command = runs.client("starve", what, when, how)
    plain = runs.run(tmp_path / "plain", command, preload=False)
    traced = runs.run(tmp_path / "traced", command)
    assert traced.outcome() == plain.outcome() == (-signal.SIGKILL if how == "kill" else 7, "all calls returned\n")
    traces = sorted(traced.traces.glob("*.json")) if traced.traces.exists() else []
    if when == "before" and not traces:
        assert (what, when) in NOT_TRACED and "not tracing" in traced.stderr, traced.stderr
        return
    assert traced.complaints() == [], traced.stderr
    # Without a descriptor there is no rank file yet if it was not made at once: then the ring file has all.
    open_yet = how == "kill" or (what == "files" and not any(path.stat().st_size for path in traces))
    if open_yet:
        runs.recover(traced.traces)
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)
    assert runs.footer(traced.only_rank_file())["complete"] == (not open_yet)

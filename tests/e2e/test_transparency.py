"""The training run with the preload is the training run without it."""

from lib import figures


def what_was_asked(tallies: list[dict]) -> list[list]:
    """The calls of all processes, without what differs between two runs (pids, thread ids)."""
    tables = (sorted(figures.of_tally(tally).items(), key=str) for tally in tallies)
    return sorted(tables, key=str)


def test_run_succeeds_without_the_preload(pair):
    assert pair.plain.code == 0, pair.plain.stderr


def test_same_exit_code(pair):
    assert pair.traced.code == pair.plain.code, pair.traced.stderr


def test_same_standard_output(pair):
    assert pair.plain.lines(), "the script prints something"
    assert pair.traced.lines() == pair.plain.lines()


def test_no_word_on_standard_error(pair):
    assert pair.traced.words_of_ours() == []


def test_same_calls_reach_the_libraries(pair):
    plain = pair.plain.tallies().values()
    traced = pair.traced.tallies().values()
    assert str(what_was_asked(traced)) == str(what_was_asked(plain))


def test_without_the_preload_there_is_no_trace(pair):
    assert not pair.plain.traces.exists()

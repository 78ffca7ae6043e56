"""The training run with the preload is the training run without it."""

from lib import figures


def what_was_asked(tallies: list[dict]) -> list[list]:
    """Returns the calls of all processes, without what differs between two runs (pids, thread ids)."""
    tables = (sorted(figures.of_tally(tally).items(), key=str) for tally in tallies)
    return sorted(tables, key=str)


def test_run_succeeds_without_the_preload(compared):
    assert compared.plain.code == 0, compared.plain.stderr


def test_same_exit_code(compared):
    assert compared.traced.code == compared.plain.code, compared.traced.stderr


def test_same_standard_output(compared):
    assert compared.plain.lines(), "the script prints something"
    assert compared.traced.lines() == compared.plain.lines()


def test_no_word_on_standard_error(compared):
    assert compared.traced.words_of_ours() == []


def test_same_calls_reach_the_libraries(compared):
    plain = compared.plain.tallies().values()
    traced = compared.traced.tallies().values()
    assert str(what_was_asked(traced)) == str(what_was_asked(plain))


def test_without_the_preload_there_is_no_trace(compared):
    assert not compared.plain.traces.exists()

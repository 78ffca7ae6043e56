"""Compares calls, count, elements and bytes of real training runs with the stand-in's own tally."""

import collections

from lib import figures
from lib.build import STANDIN

LEDGER_ONLY = {"D2D", "H2H", "MANAGED"}  # no event lines unless they are asked for


def test_every_rank_and_nobody_else_wrote_a_file(pair):
    assert {file.header["pid"] for file in pair.traced.ranks()} == set(pair.traced.tallies())


def test_ledger_equals_the_tally(pair):
    tallies = pair.traced.tallies()
    for file in pair.traced.ranks():
        expected = figures.of_tally(tallies[file.header["pid"]])
        assert expected, "the stand-in was asked for nothing"
        assert figures.difference(figures.of_ledger(file), expected) == "", file.path


def test_event_lines_add_up_to_the_ledger(pair):
    for file in pair.traced.ranks():
        ledger = {
            key: value
            for key, value in figures.of_ledger(file).items()
            if key[0] not in LEDGER_ONLY and key[4] == "direct"
        }
        assert figures.difference(figures.of_lines(file), ledger) == "", file.path


def test_every_line_names_the_thread_that_made_the_call(pair):
    """PyTorch calls from its main thread, and from autograd's in the backward pass."""
    tallies = pair.traced.tallies()
    for file in pair.traced.ranks():
        made = collections.Counter()
        for row in tallies[file.header["pid"]]["rows"]:
            if row["kind"] not in LEDGER_ONLY and row["mode"] == "direct":
                made[row["thread"], row["function"], row["dtype"]] += row["returned"]
        lines = collections.Counter(
            (event["tid"], event["name"], event["args"].get("dtype", "byte"))
            for event in file.events
            if not event["args"].get("captured", False)
        )
        assert lines == +made, file.path


def test_footers_have_the_librarys_own_time_of_one_call_in_61_of_a_thread(pair):
    for file in pair.traced.ranks():
        made = sum(row["calls"] for row in file.ledger_rows() if row["mode"] == "direct")
        sample = file.footer.get("self_cost_sample", {"calls": 0, "ns": 0})
        assert sample["calls"] <= made / 61
        assert sample["calls"] > 0 or made < 1000
        assert 20 * sample["calls"] <= sample["ns"] < 1e6 * sample["calls"] or sample["calls"] == 0


def test_rows_are_split_by_the_size_of_a_call(pair):
    """bytes_class is the floor of log2 of one call's bytes, -1 for none."""
    for file in pair.traced.ranks():
        calls = collections.Counter()
        for row in file.ledger_rows():
            least, below = (2 ** row["bytes_class"], 2 ** (row["bytes_class"] + 1))
            if row["bytes_class"] == -1:
                least, below = 0, 1
            n = row["calls"]
            assert n * least <= row["bytes"] < n * below or n == 0, (file.path, row)
            if row["bucket"] not in LEDGER_ONLY and row["mode"] == "direct":
                calls[row["name"], row["dtype"], row["comm"], row["bytes_class"]] += n
        lines = collections.Counter()
        for event in file.events:
            args = event["args"]
            if not args.get("captured", False):
                size_class = args["bytes"].bit_length() - 1
                lines[event["name"], args.get("dtype", "byte"), args.get("comm"), size_class] += 1
        assert lines == +calls, file.path


def test_file_is_closed_and_nothing_was_dropped(pair):
    for file in pair.traced.ranks():
        assert file.footer is not None and file.footer["complete"] is True, file.path
        assert file.footer["dropped"] == {}, file.path
        assert file.ledgers[-1]["reason"] == "close", file.path


def test_no_call_is_left_unfinished(pair):
    for file in pair.traced.ranks():
        assert [row for row in file.ledger_rows() if row["unfinished"]] == [], file.path


def test_coverage_names_every_function_the_program_called_and_its_library(pair):
    tallies = pair.traced.tallies()
    for file in pair.traced.ranks():
        made = collections.Counter()
        for row in tallies[file.header["pid"]]["rows"]:
            if row["mode"] != "replayed":
                made[row["function"]] += row["entered"]
        covered = {f["name"]: f for f in file.footer["coverage"]["functions"]}
        assert {name: covered[name]["calls"] for name in made} == dict(made), file.path
        for name in made:
            library = "libnccl.so.2" if name.startswith("nccl") else "libcudart.so.13"
            assert covered[name]["library"] == str(STANDIN / library), file.path

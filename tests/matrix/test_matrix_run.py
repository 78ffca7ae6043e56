"""Which environments are on the disk, and what of a failure gets into the table."""

import pathlib

import nccl_tests
import pytest
import rows
import run
import venvs


@pytest.fixture(name="folders")
def on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(venvs, "folder_of", lambda row: tmp_path / row.key)
    for row in rows.ROWS:
        (tmp_path / row.key).mkdir()
    return tmp_path


def test_an_environment_goes_with_its_row_and_its_base_with_the_last_that_stands_on_it(folders):
    base = rows.named("torch==2.6.0")
    first, second = (row for row in rows.ROWS if row.base == base.key)
    run.remove(base, [first, second])
    assert (folders / base.key).exists()
    run.remove(first, [second])
    assert (folders / base.key).exists() and not (folders / first.key).exists()
    run.remove(second, [rows.named("torch==2.8.0")])
    assert not (folders / base.key).exists() and not (folders / second.key).exists()
    assert (folders / "torch==2.8.0").exists()


def test_every_base_is_a_row_that_comes_earlier_or_the_tests_own_environment():
    for number, row in enumerate(rows.ROWS):
        earlier = {other.key for other in rows.ROWS[:number]}
        assert row.base in earlier | {"", rows.TESTS}, row.key


def test_the_table_gets_no_folder_of_this_machine_and_stays_a_table():
    text = f"{venvs.REPO}/tests/x.py | failed\nin {pathlib.Path.home()}/y"
    assert run.without_paths(text) == "tests/x.py / failed in y"


PROGRAM = {program.name: program for program in nccl_tests.PROGRAMS}
PRINTED = """#       size         count      type   redop    root     time
        1024           128     float     sum      -1    41.19    0.02    0.02       0    34.39
        2048           256     float              -1    38.99    0.05    0.04       0    40.82
"""


def test_the_calls_of_nccl_tests_follow_from_its_options_and_what_it_prints():
    options = nccl_tests.DEFAULTS | {"-g": 2}
    calls = 1 + 2 * (1 + 5 + 1)
    once = nccl_tests.expected(PROGRAM["all_reduce"], options, PRINTED)
    assert once == (2 * calls, (128 + 256) * calls)
    launched = nccl_tests.expected(PROGRAM["all_reduce"], options | {"-G": 3, "-m": 2}, PRINTED)
    assert launched[0] == 2 * (1 + 2 * (1 + 5 * 2 * 3 + 1))
    cycles = nccl_tests.expected(PROGRAM["all_reduce"], options | {"-N": 2}, PRINTED * 2)
    assert cycles[0] == 2 * (1 + 2 * 2 * (1 + 5 + 1))
    # A hypercube of four ranks has two steps, of one part and of two.
    steps = nccl_tests.expected(PROGRAM["hypercube"], options | {"-g": 4}, PRINTED)
    assert steps == (2 * 2 * calls, 3 * (128 + 256) * calls)


def test_nccl_tests_is_left_out_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.delenv("NCCL_TESTS", raising=False)
    assert "NCCL_TESTS names no folder" in nccl_tests.why_not()
    monkeypatch.setenv("NCCL_TESTS", str(tmp_path))
    assert "has no all_gather_perf" in nccl_tests.why_not()
    for program in nccl_tests.PROGRAMS:
        (tmp_path / f"{program.name}_perf").touch()
    assert nccl_tests.why_not() is None

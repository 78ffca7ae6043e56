"""A thread of the program waits for no disk. Our threads sleep when nothing is to come."""

import pathlib

import pytest
from lib import runs
from lib.build import LIBTPROF
from lib.commanded import commanded

STEPS = {"TPROF_STEP": "call:ncclReduceScatter"}


def in_trouble(tmp_path, **settings: str):
    preload = {"LD_PRELOAD": f"{LIBTPROF}:{runs.TROUBLE}"}
    return commanded(tmp_path / "job", **preload, **settings)


def test_a_reset_does_not_wait_for_the_write_of_the_last_one(tmp_path):
    stalled = tmp_path / "stalled"
    trouble = {"TROUBLE": 'stall:"reset"', "STALLED": str(stalled)}
    with in_trouble(tmp_path, **trouble) as job:
        for calls in (1, 2, 3):
            job.does("gather", calls)
            job.does("reset")
            runs.until(stalled.exists)
        (totals,) = job.does("totals")
        assert '"epoch":3' in totals and '"ALL":{"calls":0' in totals


def naps(file: pathlib.Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def longest_of(file: pathlib.Path, since: int) -> int:
    """Returns the longest of the next ten naps, 0 if there were not so many yet."""
    those = naps(file)[since : since + 10]
    return max(those) if len(those) == 10 else 0


@pytest.mark.parametrize("by", ["schedule", "ctl"])
def test_the_writer_wakes_often_while_windows_are_to_come_and_not_afterwards(by, tmp_path):
    file = tmp_path / "naps"
    schedule = {"TPROF_SCHEDULE": "wait=1,active=2,repeat=2"} if by == "schedule" else {}
    with in_trouble(tmp_path, TROUBLE="naps", NAPS=str(file), **STEPS, **schedule) as job:
        if by == "ctl":
            job.told("window", 2)
        job.does("step", 1)
        begun = len(naps(file))
        assert 0 < runs.until(lambda: longest_of(file, begun + 1)) <= 20
        for _ in range(9):
            job.does("step", 1)
        over = len(naps(file))
        assert runs.until(lambda: longest_of(file, over + 2)) > 100
        if by == "ctl":
            job.told("window", 2)
            again = len(naps(file))
            assert 0 < runs.until(lambda: longest_of(file, again + 1)) <= 20
            assert job.ctl("stop") == (0, ["already"])
            stopped = len(naps(file))
            assert runs.until(lambda: longest_of(file, stopped + 1)) > 100

"""The lines of communicators that are made late come again behind the ledger, so that the two ends
of a file tell everything."""

import json
import pathlib
import subprocess

import pytest
from lib import runs
from lib.tool import tprof

EDGE = 1 << 16  # what a reader takes from each end
ROUNDS, COMMS = 1500, 5


def late(tmp_path, **env: str) -> pathlib.Path:
    """Returns the file of a client that made communicators in the middle of its life."""
    runs.run(tmp_path, runs.client("late", ROUNDS, COMMS), **env)
    (file,) = (tmp_path / "traces").glob("*.json")
    return file


def killed_late(tmp_path, comms: int = COMMS, **env: str) -> pathlib.Path:
    """Returns the file of a client that was killed once the late communicators had their lines."""
    begun = f'{{"comm":{1 + comms},"seq":'.encode()

    def with_lines() -> list[pathlib.Path]:
        return [file for file in (tmp_path / "traces").glob("*.json") if begun in file.read_bytes()]

    with subprocess.Popen(
        runs.client("late", ROUNDS, comms, "stay"), env=runs.environment(tmp_path, **env)
    ) as process:
        try:
            (file,) = runs.until(with_lines)
        finally:
            process.kill()
    return file


def summary(folder: pathlib.Path) -> str:
    done = tprof("summary", "--json", folder)
    assert done.stderr == ""
    return done.stdout


def wipe(file: pathlib.Path, end: int) -> None:
    """Overwrites everything from the edge to `end`, so that no line is left there."""
    with file.open("r+b") as f:
        f.seek(EDGE)
        f.write(bytes(end - EDGE))


def test_all_communicators_stand_again_behind_the_closing_ledger(tmp_path):
    lines = runs.closed(late(tmp_path, RANK="0", WORLD_SIZE="1"))
    names = [line["name"] for line in lines]
    (close,) = (i for i, line in enumerate(lines) if line["args"].get("reason") == "close")
    assert names[close + 1 :] == ["tprof_comm"] * (1 + COMMS) + ["tprof_footer"]
    # The program has destroyed some of them since.
    for line in lines[close + 1 : -1]:
        line["args"].pop("ended", None)
    assert lines[close + 1 : -1] == [line for line in lines[:close] if line["name"] == "tprof_comm"]


def test_a_rank_that_the_launcher_does_not_tell_stands_there_too(tmp_path):
    lines = runs.closed(late(tmp_path))
    identity = {"rank": 0, "world_size": 1}
    assert runs.named(lines, "tprof_identity") == [identity, identity]


LAUNCHERS = pytest.mark.parametrize("env", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])


@LAUNCHERS
def test_of_a_closed_file_the_middle_is_not_read(env, tmp_path):
    file = late(tmp_path, **env)
    whole = summary(file.parent)
    assert len(json.loads(whole)["comms"]) == 1 + COMMS
    wipe(file, file.stat().st_size - EDGE)
    assert summary(file.parent) == whole


@LAUNCHERS
def test_of_a_killed_process_the_beginning_of_its_file_and_the_ring_are_read(env, tmp_path):
    file = killed_late(tmp_path, **env)
    whole = summary(file.parent)
    assert len(json.loads(whole)["comms"]) == 1 + COMMS
    wipe(file, file.stat().st_size)
    assert summary(file.parent) == whole


def test_a_recovered_file_ends_as_the_process_would_have_ended_it(tmp_path):
    file = killed_late(tmp_path)
    runs.recover(file.parent)
    names = [line["name"] for line in runs.closed(file)]
    close = len(names) - 1 - names[::-1].index("tprof_ledger")
    made = [name for name in names[:close] if name in ("tprof_comm", "tprof_identity")]
    assert names[close + 1 :] == [*made, "tprof_footer"]
    whole = summary(file.parent)
    wipe(file, file.stat().st_size - EDGE)
    assert summary(file.parent) == whole


def test_room_is_kept_on_the_disk_for_what_ends_the_file(tmp_path):
    """Two thousand communicators take more room than is kept for everything else."""
    file = killed_late(tmp_path, comms=1999)
    size, blocks = file.stat().st_size, file.stat().st_blocks * 512
    runs.recover(file.parent)
    text = file.read_bytes()
    end = len(text) - text.rindex(b'{"name":"tprof_ledger"')
    assert 5 * EDGE < end < blocks - size

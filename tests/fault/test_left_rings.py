"""Killed processes leave ring files in the node's memory. A process that starts there later moves each beside its rank
file, and nothing of it is lost."""

import contextlib
import os
import pathlib
import shutil
import struct

import pytest
from lib import runs
from lib.tool import tprof

CALLS = runs.client("calls", 400, 1)
PID_NAMESPACE_AT = 76  # the offset in a ring file
ENTERED = {"INSTANT_GATE": "3"}


@pytest.fixture
def node(tmp_path) -> pathlib.Path:
    folder = tmp_path / "node"
    folder.mkdir()
    return folder


def killed(tmp_path, node, hours: int = 2, name: str = "old", **env: str) -> tuple[runs.Run, pathlib.Path]:
    """Returns a run that was killed that many hours ago, when it had a rank file, and its ring file."""
    before = set(node.iterdir())
    folder = tmp_path / name
    traces = pathlib.Path(env.get("TPROF_OUTPUT_DIR", folder / "traces"))
    then = {"TPROF_RING_DIR": str(node), "TROUBLE": f"hours:{hours}", **env}
    with runs.standing(folder, runs.client("end", "wait"), **then) as process:
        runs.until(lambda: any(file.stat().st_size for file in traces.glob("*.json")))
    (ring,) = set(node.iterdir()) - before
    return runs.Run(process.returncode, "", "", traces, folder / "counts"), ring


@contextlib.contextmanager
def another(tmp_path, node, command: list[str] = CALLS, **env: str):
    """Runs a process that starts on the node."""
    env = {"TPROF_RING_DIR": str(node), **ENTERED, **env}
    with runs.standing(tmp_path / "new", command, "inside", **env) as process:
        yield process


def has_looked(process) -> bool:
    """True if the process's thread for that is gone; look() makes sure that it was there."""
    return "tprof-left" not in runs.threads(process.pid).values()


def look(tmp_path, node, command: list[str] = CALLS, **env: str) -> None:
    """Starts another process, and waits until it has been through all that is there."""
    _, decoy = killed(tmp_path, node, name="decoy")
    with another(tmp_path, node, command, **env) as process:
        runs.until(lambda: not decoy.exists())
        runs.until(lambda: has_looked(process))
    for folder in ("decoy", "new"):
        shutil.rmtree(tmp_path / folder)


def test_a_left_ring_goes_beside_its_rank_file(tmp_path, node):
    old, ring = killed(tmp_path, node)
    size = ring.stat().st_size
    look(tmp_path, node)
    assert not ring.exists()
    (rank_file,) = old.traces.glob("*.json")
    beside = old.traces / f".{rank_file.stem}.ring"
    assert beside.stat().st_size == size
    assert {file.name for file in old.traces.iterdir()} == {
        rank_file.name, beside.name, f".{rank_file.stem}.snapshot",
    }
    (counts,) = old.counted()
    runs.recover(old.traces)
    runs.assert_exact(old.only_rank_file(), counts)


@pytest.mark.parametrize("hours", [23, 25])
@pytest.mark.parametrize("rank_file", ["gone", "another's"])
def test_one_without_its_rank_file_is_kept_for_a_day(rank_file, hours, tmp_path, node):
    old, ring = killed(tmp_path, node, hours, RANK="0", WORLD_SIZE="1")
    for file in old.traces.iterdir():
        file.unlink()
    if rank_file == "another's":
        younger = killed(tmp_path, node, name="younger", RANK="0", WORLD_SIZE="1")[0].traces
        shutil.copytree(younger, old.traces, dirs_exist_ok=True)
    there = {file: file.read_bytes() for file in old.traces.glob("*")}
    look(tmp_path, node)
    assert ring.exists() == (hours < 24)
    assert there == {file: file.read_bytes() for file in old.traces.glob("*")}


@pytest.mark.parametrize("hours", [23, 25])
def test_doctor_tells_it_and_recover_frees_it_after_a_day(hours, tmp_path, node, monkeypatch):
    old, ring = killed(tmp_path, node, hours)
    shutil.rmtree(old.traces)
    monkeypatch.setenv("TPROF_RING_DIR", str(node))
    monkeypatch.chdir(tmp_path)
    lines = tprof("doctor").stdout.splitlines()
    told = [line for line in lines if f"left ring files 1 of killed processes that wrote to {old.traces}," in line]
    assert ["their rank files are gone" in line for line in told] == [hours > 24] * len(told)
    # It names eight folders at most, and /dev/shm may have others'.
    assert len(told) == 1 or any("killed processes in total" in line for line in lines)
    (tmp_path / "others").mkdir()
    said = tprof("recover", tmp_path / "others").stdout
    assert ring.exists() == (hours < 24)
    freed = f"{old.traces}: the rank files are gone: the ring file of 1 killed process is freed"
    assert (freed in said) == (hours > 24)


@pytest.mark.parametrize("descriptors", ["open", "closed"])
@pytest.mark.parametrize("namespace", ["this", "another"])
def test_one_of_a_process_that_lives_is_not_touched(namespace, descriptors, tmp_path, node):
    """The process holds a lock on the file, or has closed all its descriptors and the lock with them."""
    # It seems silent for long, except where only that could tell that it lives.
    hours = 0 if namespace == "another" and descriptors == "closed" else 30
    env = {"TPROF_RING_DIR": str(node), "TROUBLE": f"hours:{hours}"}
    where = ["closed"] if descriptors == "closed" else []
    (tmp_path / "live").mkdir()
    client = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path / "live"), *runs.client("end", "wait", *where)]
    with runs.standing(tmp_path / "live", client, "ready", **env):
        runs.rank_file(tmp_path / "live" / "traces")
        (ring,) = node.iterdir()
        if namespace == "another":
            with ring.open("r+b") as file:
                file.seek(PID_NAMESPACE_AT)
                file.write(struct.pack("<I", 7))
        look(tmp_path, node)
        assert ring.exists()
        assert not list((tmp_path / "live/traces").glob(".*.ring*"))


@pytest.mark.parametrize("silent", ["for a moment", "for two hours"])
def test_one_of_another_pid_namespace_goes_when_it_was_silent_for_an_hour(silent, tmp_path, node):
    old, ring = killed(tmp_path, node, hours=2 if silent == "for two hours" else 0)
    with ring.open("r+b") as file:
        file.seek(PID_NAMESPACE_AT)
        file.write(struct.pack("<I", 7))
    look(tmp_path, node)
    assert ring.exists() == (silent == "for a moment")
    (counts,) = old.counted()
    runs.recover(old.traces)
    runs.assert_exact(old.only_rank_file(), counts)


def test_one_that_was_killed_just_now_is_left_to_who_started_it(tmp_path, node):
    _, ring = killed(tmp_path, node, hours=0)
    look(tmp_path, node)
    assert ring.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_one_of_another_user_is_not_touched(tmp_path, node):
    old, ring = killed(tmp_path, node, hours=30)
    os.chown(ring, 65534, 65534)
    shutil.rmtree(old.traces)
    look(tmp_path, node)
    assert ring.exists()


def test_one_that_has_no_room_beside_its_rank_file_stays(tmp_path, node, small_disk):
    disk = small_disk("256k")
    old, ring = killed(tmp_path, node, TPROF_OUTPUT_DIR=str(disk))
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    names = {file.name for file in disk.iterdir()}
    look(tmp_path, node)
    assert ring.exists() and names == {file.name for file in disk.iterdir()}
    (disk / "filler").unlink()
    (counts,) = old.counted()
    runs.recover(disk)
    (file,) = disk.iterdir()
    runs.assert_exact(runs.closed(file), counts)


def test_killed_at_every_moment_of_a_move_nothing_is_lost(tmp_path, node):
    """The rank file is below the folder of the process that moves it, so that its moments are among the killer's."""
    out = tmp_path / "out"
    old, ring = killed(tmp_path, node, TPROF_OUTPUT_DIR=str(out / "old"))
    (counts,) = old.counted()
    (rank_file,) = (out / "old").glob("*.json")
    kept = {file: file.read_bytes() for file in (ring, *(out / "old").iterdir())}
    left, moved = set(), False
    for moment in range(1, 400, 2):
        env = {"TPROF_OUTPUT_DIR": str(out), "TROUBLE": f"kill:{moment}", "TPROF_RING_DIR": str(node), **ENTERED}
        with contextlib.suppress(AssertionError), runs.standing(tmp_path / "new", CALLS, "inside", **env) as process:
            runs.until(lambda: process.poll() is not None or not ring.exists() and has_looked(process))
        left |= {file.suffix for file in (out / "old").iterdir()}
        moved = not ring.exists()
        assert moved or ring.read_bytes() == kept[ring]
        runs.recover(out / "old")
        assert list((out / "old").iterdir()) == [rank_file] and not ring.exists()
        runs.assert_exact(runs.closed(rank_file), counts)
        if moved:
            break
        shutil.rmtree(out / "old")
        (out / "old").mkdir()
        for file, content in kept.items():
            file.write_bytes(content)
    assert moved and ".part" in left


def test_who_was_killed_before_the_original_went_has_moved_it(tmp_path, node):
    old, ring = killed(tmp_path, node)
    (rank_file,) = old.traces.glob("*.json")
    shutil.copy(ring, old.traces / f".{rank_file.stem}.ring")
    look(tmp_path, node)
    assert not ring.exists()
    (counts,) = old.counted()
    runs.recover(old.traces)
    runs.assert_exact(old.only_rank_file(), counts)


def test_recovery_takes_both_where_both_are_there(tmp_path, node):
    old, ring = killed(tmp_path, node)
    (rank_file,) = old.traces.glob("*.json")
    shutil.copy(ring, old.traces / f".{rank_file.stem}.ring")
    runs.recover(old.traces)
    assert not ring.exists()
    (counts,) = old.counted()
    runs.assert_exact(old.only_rank_file(), counts)


def test_a_ring_beside_of_a_process_of_the_same_number_is_not_taken(tmp_path, node):
    """A container gives the same pids again: what one process left is not the next one's."""
    old, ring = killed(tmp_path, node)
    stranger, other_ring = killed(tmp_path, node, name="stranger")
    (rank_file,) = old.traces.glob("*.json")
    beside = old.traces / f".{rank_file.stem}.ring"
    content = bytearray(other_ring.read_bytes())
    content[72:76] = ring.read_bytes()[72:76]  # its pid
    beside.write_bytes(content)
    (counts,) = old.counted()
    assert stranger.traces.exists()
    runs.recover(old.traces)
    runs.assert_exact(runs.closed(rank_file), counts)


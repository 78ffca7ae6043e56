"""The place of the ring file, and the room that it leaves to others. The folders' file systems are simulated, so that
no machine's own decide."""

import os
import pathlib
import shutil
import signal

import pytest
from lib import runs
from lib.tool import told, tprof

SHM = pathlib.Path("/dev/shm")
CALLS = runs.client("calls", 20, 1)


def traced(tmp_path, places: str, **env: str) -> tuple[pathlib.Path | None, str]:
    """Returns the folder that the ring file was in, and what was said."""
    (tmp_path / "node").mkdir(exist_ok=True)
    variables = {"TPROF_RING_DIR": "", "TMPDIR": str(tmp_path / "node"), **env}
    done = runs.run(tmp_path, CALLS, TROUBLE="places", PLACES=places, **variables)
    (counts,) = done.counted()
    runs.assert_exact(done.only_rank_file(), counts)
    ring = runs.header_of(done.traces)["ring"]
    assert ring is None or not (done.traces / ring).exists()
    return ring and (done.traces / ring).parent, done.stderr


@pytest.mark.parametrize(("output", "shm", "tmpdir", "tmp", "expected"), [
    ("ext4", "tmpfs", "ext4", "ext4", SHM),
    ("nfs", "tmpfs", "ext4", "ext4", SHM),
    ("tmpfs", "tmpfs", "ext4", "ext4", SHM),
    ("small", "small", "ext4", "ext4", "beside"),  # the user's choice
    ("ext4", "small", "ext4", "ext4", "beside"),
    ("ext4", "nfs", "ext4", "ext4", "beside"),
    ("nfs", "small", "ext4", "ext4", "TMPDIR"),
    ("nfs", "small", "small", "ext4", pathlib.Path("/tmp")),
    ("nfs", "small", "nfs", "ext4", pathlib.Path("/tmp")),
    ("nfs", "small", "nfs", "nfs", None),
])
def test_memory_with_room_to_spare_first_then_what_maps_safely(
    output, shm, tmpdir, tmp, expected, tmp_path
):
    places = f"output={output} shm={shm} tmpdir={tmpdir} tmp={tmp}"
    folder, said = traced(tmp_path, places)
    named = {"beside": tmp_path / "traces", "TMPDIR": tmp_path / "node"}
    assert folder == named.get(expected, expected)
    assert ("no ring file" in said) == (expected is None) and said.count("\n") == (expected is None)


def test_the_users_choice_comes_before_all_else(tmp_path):
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    places = "output=ext4 shm=tmpfs"
    assert traced(tmp_path, places, TPROF_RING_DIR=str(chosen)) == (chosen, "")


@pytest.mark.parametrize(("chosen", "said"), [
    ("not/absolute", "TPROF_RING_DIR=not/absolute: expected auto, or an absolute folder"),
    ("/proc/self", "no ring file could be made at once in /proc/self (TPROF_RING_DIR): choosing another folder"),
    ("/not/there", "no ring file could be made at once in /not/there (TPROF_RING_DIR): choosing another folder"),
])
def test_a_choice_that_cannot_be_is_said_once(chosen, said, tmp_path):
    folder, line = traced(tmp_path, "output=ext4 shm=tmpfs", TPROF_RING_DIR=chosen)
    assert folder == SHM and said in line and line.count("\n") == 1


def test_it_does_not_grow_where_others_would_miss_the_room(tmp_path):
    """There was room when the file was made, and none when the threads came."""
    env = {"TROUBLE": "places", "PLACES": "output=ext4 shm=filling", "TPROF_RING_DIR": ""}
    traces = tmp_path / "traces"
    with runs.standing(tmp_path, runs.client("end", "wait"), **env) as process:
        assert "no room for the ring file: a kill would lose counts" in process.stderr.readline()
    (ring,) = (path for path in SHM.glob(".tprof-*.ring") if str(tmp_path).encode() in path.read_bytes())
    try:
        report = told("summary", traces)[1]
        assert {p["kind"] for p in report["findings"]} >= {"partial"}
    finally:
        ring.unlink()


@pytest.mark.parametrize("folder", ["there", "gone"])
@pytest.mark.parametrize("hours", [23, 25])
def test_run_gives_back_what_others_forgot_for_a_day(folder, hours, tmp_path):
    """Removes the ring file of a dead process of another folder, after its counts went where they belong."""
    node = tmp_path / "node"
    node.mkdir()
    then = {"TPROF_RING_DIR": str(node), "TROUBLE": f"hours:{hours}"}
    old = runs.run(tmp_path / "old", runs.client("end", "kill"), **then)
    assert old.code == -signal.SIGKILL
    (ring,) = node.iterdir()
    if folder == "gone":
        shutil.rmtree(old.traces)
    done = tprof("run", "--out", tmp_path / "new", "--", "true", env=os.environ | {"TPROF_RING_DIR": str(node)})
    assert done.returncode == 0
    assert ring.exists() == (hours < 24)
    if folder == "there":
        (counts,) = old.counted()
        if hours < 24:
            runs.recover(old.traces)
        runs.assert_exact(old.only_rank_file(), counts)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file of another user")
def test_run_leaves_what_another_user_forgot(tmp_path):
    node = tmp_path / "node"
    node.mkdir()
    then = {"TPROF_RING_DIR": str(node), "TROUBLE": "hours:25"}
    old = runs.run(tmp_path / "old", runs.client("end", "kill"), **then)
    (ring,) = node.iterdir()
    os.chown(ring, 65534, 65534)
    (rank_file,) = old.traces.glob("*.json")
    before = rank_file.read_bytes()
    done = tprof("run", "--out", tmp_path / "new", "--", "true", env=os.environ | {"TPROF_RING_DIR": str(node)})
    assert done.returncode == 0
    assert ring.exists() and rank_file.read_bytes() == before

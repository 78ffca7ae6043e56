"""The ring file of a dead process goes with the folder of its rank file, where that is proved to be removed."""

import os
import pathlib
import shutil
import struct
import subprocess

import pytest
from lib import runs
from lib.tool import tprof
from test_left_rings import PID_NAMESPACE_AT, killed, look, node  # noqa: F401: a fixture

FREED = ("removed", "removed with what it was in", "made again elsewhere")
KEPT = ("renamed", "its parent renamed", "behind a link that went", "unmounted", "of another pid namespace")


def take_away(how: str, folder: pathlib.Path, ring: pathlib.Path) -> None:
    if how == "renamed":
        folder.rename(folder.with_name("kept"))
    elif how == "its parent renamed":
        folder.parent.rename(folder.parent.with_name("kept"))
    elif how == "behind a link that went":
        folder.parent.unlink()
    elif how == "unmounted":
        subprocess.run(["umount", str(folder.parent)], check=True)
    else:
        shutil.rmtree(folder.parent if how == "removed with what it was in" else folder)
    if how == "of another pid namespace":
        with ring.open("r+b") as file:
            file.seek(PID_NAMESPACE_AT)
            file.write(struct.pack("<I", 7))


@pytest.fixture
def left(tmp_path, node):  # noqa: F811
    """left(how) -> the folder that was taken away in that way, and the ring file of a process killed before."""
    mounted = []

    def make(how: str):
        jobs = tmp_path / "jobs"
        (tmp_path / "real").mkdir()
        if how == "behind a link that went":
            jobs.symlink_to(tmp_path / "real")
        elif how == "unmounted":
            jobs.mkdir()
            if subprocess.run(["mount", "-t", "tmpfs", "none", str(jobs)], check=False).returncode != 0:
                pytest.skip("needs the right to mount a tmpfs")
            mounted.append(jobs)
        folder = jobs / "traces"
        hours = 0 if how == "of another pid namespace" else 1
        _, ring = killed(tmp_path, node, hours, TPROF_OUTPUT_DIR=str(folder))
        take_away(how, folder, ring)
        return folder, ring

    yield make
    for place in mounted:
        if os.path.ismount(place):
            subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("how", [*FREED, *KEPT])
def test_the_next_traced_process_frees_it(how, tmp_path, node, left):  # noqa: F811
    _, ring = left(how)
    look(tmp_path, node)
    assert ring.exists() == (how in KEPT)


@pytest.mark.parametrize("how", [*FREED, *KEPT])
def test_doctor_tells_it_and_recover_frees_it_and_says_so(how, tmp_path, node, left, monkeypatch):  # noqa: F811
    folder, ring = left(how)
    monkeypatch.setenv("TPROF_RING_DIR", str(node))
    monkeypatch.chdir(tmp_path)
    lines = tprof("doctor").stdout.splitlines()
    told = [line for line in lines if f"left ring files 1 of killed processes that wrote to {folder}," in line]
    assert ["the folder was removed" in line for line in told] == [how in FREED] * len(told)
    # It names eight folders at most, and /dev/shm may have others'.
    assert len(told) == 1 or any("killed processes in all" in line for line in lines)
    (tmp_path / "others").mkdir()
    said = tprof("recover", tmp_path / "others").stdout
    assert ring.exists() == (how in KEPT)
    assert (f"{folder}: the folder was removed: the ring file of 1 killed process is freed" in said) == (how in FREED)


def test_one_of_a_process_that_lives_stays(tmp_path, node, monkeypatch):  # noqa: F811
    folder = tmp_path / "jobs" / "traces"
    env = {"TPROF_RING_DIR": str(node), "TPROF_OUTPUT_DIR": str(folder)}
    monkeypatch.setenv("TPROF_RING_DIR", str(node))
    with runs.standing(tmp_path / "live", runs.client("end", "wait"), "ready", **env):
        runs.rank_file(folder)
        shutil.rmtree(folder.parent)
        (ring,) = node.iterdir()
        look(tmp_path, node)
        tprof("recover", tmp_path)
        assert ring.exists()

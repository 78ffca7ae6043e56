"""tprof recover: makes a closed rank file of what a killed process left, whatever interrupts it."""

import json
import os
import shutil
import signal
import struct
import subprocess

import pytest
from lib import counted, runs
from lib.build import BUILD
from lib.contract import SCHEMA
from lib.rankfile import lines_of
from lib.runs import rank_file
from lib.tool import summary_of, tprof

LAYOUT_AT = 8  # in Head, interpose/format/ring_file.h: after the magic


@pytest.fixture(scope="session")
def killed(tmp_path_factory):
    """Returns a folder with the rank file and the ring file of a killed client, whose four threads kept calling."""
    folder = tmp_path_factory.mktemp("killed")
    with runs.standing(folder, runs.client("storm", 0), TPROF_RING="256"):
        runs.until(lambda: rank_file(folder / "traces").stat().st_size >= 100_000)
    assert len(list((folder / "traces").iterdir())) == 2
    return folder


@pytest.fixture
def traces(killed, tmp_path):
    """Returns a copy of them to change."""
    return shutil.copytree(killed / "traces", tmp_path / "traces")


def rings(folder):
    return list(folder.glob(".*.ring"))


def test_every_finished_call_is_in_the_recovered_file(killed, traces):
    result = tprof("recover", traces)
    assert result.returncode == 0 and result.stderr == ""
    assert "recovered" in result.stdout and rings(traces) == []
    lines = runs.closed(rank_file(traces))
    assert all(SCHEMA.is_valid(line) for line in lines)
    (counts,) = [counted.totals(path) for path in (killed / "counts").iterdir()]
    ledger = runs.ledger(lines)
    for kind, (entered, returned, failed) in counts.items():
        calls, count, refused, unfinished = ledger.get(counted.key(kind), (0, 0, 0, 0))
        assert entered >= calls + refused + unfinished, kind
        assert calls >= returned and refused >= failed, kind
        assert count == calls * counted.KINDS[kind][2], kind
    dropped = runs.footer(lines)["dropped"]
    with_lines = sum(
        figures[0] + figures[2]
        for key, figures in ledger.items()
        if key[0] not in map(str.upper, counted.WITHOUT_LINES)
    )
    assert len(runs.events(lines)) + sum(dropped.values()) == with_lines
    runs.assert_no_line_twice(runs.events(lines))


def test_a_second_time_there_is_nothing_to_do(traces):
    tprof("recover", traces)
    first = rank_file(traces).read_bytes()
    again = tprof("recover", traces)
    assert (again.returncode, rank_file(traces).read_bytes()) == (0, first)
    assert "nothing to recover" in again.stdout


def test_killed_at_every_write_it_ends_the_same(killed, tmp_path):
    whole = shutil.copytree(killed / "traces", tmp_path / "whole")
    tprof("recover", whole)
    wanted = rank_file(whole).read_bytes()
    totals = summary_of(whole)
    for moment in range(1, 100):
        folder = shutil.copytree(killed / "traces", tmp_path / str(moment))
        preload = {"LD_PRELOAD": str(BUILD / "libdies_at.so"), "DIES_AT": str(moment)}
        died = subprocess.run(
            [BUILD / "tprof_preloadable", "recover", folder],
            env={**os.environ, **preload}, timeout=60, check=False,
        )  # fmt: skip
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL
        after = summary_of(folder)
        assert after["buckets"] == totals["buckets"], moment
        assert tprof("recover", folder).returncode == 0
        assert rank_file(folder).read_bytes() == wanted and rings(folder) == [], moment
    # The one write has three moments; the calls that end, sync and remove have two each.
    assert moment == 3 + 2 * 3 + 1


def test_a_running_process_is_left_alone(tmp_path):
    with runs.standing(tmp_path, runs.client("storm", 1000)) as process:
        runs.rank_file(tmp_path / "traces")
        result = tprof("recover", tmp_path / "traces")
        left = rings(tmp_path / "traces")
    assert result.returncode == 1 and f"still running (pid {process.pid}" in result.stdout
    assert len(left) == 1
    assert tprof("recover", tmp_path / "traces").returncode == 0


def test_a_process_of_another_pid_namespace_is_known_to_run(tmp_path):
    """Its pid tells nothing here; the lock on its ring file does."""
    enter = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to make a pid namespace")
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *runs.client("storm", 1000)]
    with runs.standing(tmp_path, command):
        runs.rank_file(tmp_path / "traces")
        result = tprof("recover", tmp_path / "traces")
    assert result.returncode == 1 and "still running" in result.stdout


def test_a_ring_of_another_layout_is_refused_by_name(traces):
    (ring,) = rings(traces)
    data = bytearray(ring.read_bytes())
    struct.pack_into("<I", data, LAYOUT_AT, 99)
    ring.write_bytes(data)
    before = rank_file(traces).read_bytes()
    result = tprof("recover", traces)
    assert result.returncode == 2
    assert str(ring) in result.stderr and "layout 99" in result.stderr
    assert rank_file(traces).read_bytes() == before and rings(traces) == [ring]


def test_a_process_of_another_host_is_left_alone_unless_forced(traces):
    (ring,) = rings(traces)
    header = json.loads(lines_of(rank_file(traces))[2])["args"]
    boot_id, host = header["boot_id"], header["host"]
    other = boot_id.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    for file in (ring, rank_file(traces)):
        data = file.read_bytes().replace(boot_id.encode(), other.encode())
        file.write_bytes(data.replace(f'"{host}"'.encode(), f'"{"x" * len(host)}"'.encode()))
    result = tprof("recover", traces)
    assert result.returncode == 1 and "--force" in result.stdout
    assert rings(traces) == [ring]
    assert tprof("recover", "--force", traces).returncode == 0
    assert rings(traces) == []


def test_a_disk_without_room_leaves_the_ring_for_another_time(killed, traces):
    size = rank_file(traces).stat().st_size
    limited = ["prlimit", f"--fsize={size}", BUILD / "tprof", "recover", traces]
    result = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "File too large" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert len(rings(traces)) == 1
    assert tprof("recover", traces).returncode == 0
    assert rings(traces) == []


def test_without_its_ring_file_a_rank_is_named_as_lost(traces):
    for ring in rings(traces):
        ring.unlink()
    result = tprof("recover", traces)
    assert result.returncode == 1 and "no ring file" in result.stdout


# Whether the rank file says that it is of this boot, this host, and this container.
@pytest.mark.parametrize("boot, host, namespace, gone", [
    (True, True, True, True), (True, True, False, False), (False, True, True, True), (False, False, True, False),
])  # fmt: skip
def test_a_ring_file_is_looked_for_where_it_was(traces, boot, host, namespace, gone):
    """Here it is gone, whoever looks again; elsewhere somebody may find it."""
    (ring,) = rings(traces)
    ring.unlink()
    file = rank_file(traces)
    lines = file.read_text().split("\n")
    at = next(n for n, line in enumerate(lines) if '"tprof_header"' in line)
    header = json.loads(lines[at].removesuffix(","))
    args = header["args"]
    args["ring"] = "/dev/shm/tprof-gone/ring"
    args |= {} if boot else {"boot_id": "another"}
    args |= {} if host else {"host": "another"}
    args |= {} if namespace else {"pid_namespace": args["pid_namespace"] + 1}
    lines[at] = json.dumps(header, separators=(",", ":")) + ","
    file.write_text("\n".join(lines))
    said = tprof("recover", traces).stdout
    there = f"on host {args['host']} it was /dev/shm/tprof-gone/ring: recover it there"
    assert (there in said, "/dev/shm/tprof-gone/ring is gone" in said) == (not gone, gone), said


def test_a_rank_file_shorter_than_was_written_is_refused(traces):
    """Half a copy must not become a whole file with a hole."""
    file = rank_file(traces)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:5]))
    result = tprof("recover", traces)
    assert result.returncode == 2
    assert f"{file}: byte {file.stat().st_size}" in result.stderr
    assert len(rings(traces)) == 1


def test_run_recovers_the_ranks_that_were_killed(tmp_path):
    command = [BUILD / "tprof", "run", "--out", tmp_path / "traces", "--quiet", "--"]
    command += runs.client("storm", 100)
    with runs.standing(tmp_path, command, preload=False, TPROF_OUTPUT_DIR=None) as process:
        header = runs.header_of(tmp_path / "traces")
        os.kill(header["pid"], signal.SIGKILL)
        process.wait(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert rings(tmp_path / "traces") == []
    lines = runs.closed(rank_file(tmp_path / "traces"))
    assert runs.footer(lines)["complete"] is False

"""Whatever the tracer cannot have, the program does not notice, and what the tracer says is true.

In every case the exit code and output are as without the preload, there is at most one line on
standard error, and a trace that is there is exact.
"""

import contextlib
import errno
import os
import pathlib
import shutil
import subprocess

import pytest
from lib import counted, runs

CALLS = runs.client("calls", 400, 2)


def compare(tmp_path, command, complaints: int | None = None, **env: str) -> runs.Run:
    """Runs a command without and with the preload; `complaints` is the number of lines expected."""
    plain = runs.run(tmp_path / "plain", command, preload=False)
    traced = runs.run(tmp_path / "traced", command, **env)
    assert plain.outcome() == (7, plain.stdout) and plain.stderr == ""
    assert traced.outcome() == plain.outcome(), traced.stderr
    said = traced.complaints()
    assert len(said) <= 1 and all(line.startswith("tprof: ") for line in said), said
    if complaints is not None:
        assert len(said) == complaints, said
    return traced


def assert_exact(traced: runs.Run) -> None:
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)


def limited(*limit: object) -> list[str]:
    return runs.client(*limit, "calls", 400, 2)


def test_with_all_it_needs(tmp_path):
    traced = compare(tmp_path, CALLS, complaints=0)
    assert_exact(traced)
    assert runs.footer(traced.only_rank_file())["dropped"] == {}


def test_missing_output_directory_is_made(tmp_path):
    folder = tmp_path / "a" / "b" / "c"
    traced = compare(tmp_path, CALLS, complaints=0, TPROF_OUTPUT_DIR=str(folder))
    (counts,) = traced.counted()
    (rank_file,) = folder.iterdir()
    runs.assert_exact(runs.closed(rank_file), counts)


def test_output_directory_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    traced = compare(tmp_path, CALLS, complaints=1, TPROF_OUTPUT_DIR=str(tmp_path / "file" / "x"))
    assert str(tmp_path / "file" / "x") in traced.stderr


def test_read_only_output_directory(tmp_path):
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    # Root may write everywhere, but not without capabilities.
    as_anyone = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    traced = compare(tmp_path, [*as_anyone, *CALLS], complaints=1, TPROF_OUTPUT_DIR=str(folder))
    assert str(folder) in traced.stderr and "Permission denied" in traced.stderr
    assert list(folder.iterdir()) == []


def test_disk_that_is_full_from_the_start(tmp_path, small_disk):
    disk = small_disk("4k")
    (disk / "filler").write_bytes(b"x" * 4096)
    compare(tmp_path, CALLS, complaints=1, TPROF_OUTPUT_DIR=str(disk))
    assert [file.name for file in disk.iterdir()] == ["filler"]


def test_disk_without_room_for_the_ring(tmp_path, small_disk):
    disk = small_disk("32k")
    traced = compare(tmp_path, limited(), complaints=1, TPROF_OUTPUT_DIR=str(disk), TPROF_EVENTS="off")
    assert "no ring file" in traced.stderr
    (counts,) = traced.counted()
    (rank_file,) = disk.iterdir()
    runs.assert_exact(runs.closed(rank_file), counts)


# The sizes go from "the head of the ring does not fit" to "both rings do". The lines of 36,000 calls never fit.
@pytest.mark.parametrize("size", ["64k", "68k", "80k", "96k", "160k", "256k", "512k", "1m", "2m", "4m"])
def test_disk_that_fills_up(size, tmp_path, small_disk):
    disk = small_disk(size)
    command = runs.client("calls", 15000, 2)
    traced = compare(tmp_path, command, TPROF_OUTPUT_DIR=str(disk))
    (counts,) = traced.counted()
    (rank_file,) = disk.iterdir()
    lines = runs.closed(rank_file)
    runs.assert_exact(lines, counts)
    dropped = runs.footer(lines)["dropped"]
    # The ring or the disk drops lines; whole rings keep 16,384 records each for the disk to refuse.
    assert dropped and (size != "4m" or "write_error" in dropped)


def fill(disk: pathlib.Path) -> pathlib.Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return filler


def counts_of(tmp_path) -> dict:
    (counts,) = (tmp_path / "counts").iterdir()
    return counted.totals(counts)


def test_disk_full_and_free_again(tmp_path, small_disk):
    """Lines that came while it was full are counted as dropped; later calls have their lines."""
    disk = small_disk("8m")
    command = runs.client("calls", 12000, 1)
    gates = {"INSTANT_GATE": "1400,2300", "TPROF_OUTPUT_DIR": str(disk)}
    with runs.standing(tmp_path, command, "inside", **gates) as process:
        # The ring has grown and is empty: what is drained at a time is less than it holds.
        rank_file = runs.rank_file(disk)
        runs.until(lambda: rank_file.read_bytes().count(b"\n") >= 10_000)
        filler = fill(disk)
        process.stdin.write("x")
        process.stdin.flush()
        assert process.stdout.readline() == "inside\n"
        # This is 6,000 records later, more than there are blocks for.
        complaint = process.stderr.readline()
        assert "cannot write the trace" in complaint and "No space left" in complaint
        filler.unlink()
        _, more = process.communicate("x", timeout=runs.TIME_LIMIT_S)
    assert (process.returncode, more) == (7, "")
    (rank_file,) = disk.iterdir()
    lines = runs.closed(rank_file)
    runs.assert_exact(lines, counts_of(tmp_path))
    dropped = runs.footer(lines)["dropped"]
    assert set(dropped) <= {"ring", "write_error"} and dropped["write_error"] > 1000
    (comm,) = runs.named(lines, "tprof_ledger")[-1]["comms"]
    seqs = [event["args"]["seq"] for event in runs.events(lines) if "reduce" in event["args"]]
    assert max(seqs) > comm["collectives"] - 100


# The first write is the header: without it there is no trace.
@pytest.mark.parametrize("write", [1, 2, 3])
def test_disk_quota(write, tmp_path):
    traced = compare(tmp_path, CALLS, complaints=1, TROUBLE=f"quota:{write}")
    if write == 1:
        assert "cannot write" in traced.stderr and list(traced.traces.iterdir()) == []
        return
    # Not even the closing lines could be written: the ring file holds the counts.
    assert len(list(traced.traces.iterdir())) == 2
    runs.recover(traced.traces)
    (counts,) = traced.counted()
    runs.assert_exact(traced.only_rank_file(), counts)


@pytest.mark.parametrize("trouble", ["map", "fallocate", "map,fallocate"])
def test_file_system_that_refuses(trouble, tmp_path):
    traced = compare(tmp_path, CALLS, complaints=1, TROUBLE=trouble)
    assert "no ring file" in traced.stderr
    assert_exact(traced)


@pytest.mark.parametrize("what", ["directory", "rank file", "ring file"])
def test_removed_while_we_write(what, tmp_path):
    traces = tmp_path / "traces"
    with runs.standing(tmp_path, CALLS, "inside", INSTANT_GATE="20") as process:
        file = runs.rank_file(traces)
        if what == "directory":
            shutil.rmtree(traces)
        else:
            (victim,) = [file] if what == "rank file" else traces.glob(".*.ring")
            victim.unlink()
        stdout, complaints = process.communicate("x", timeout=runs.TIME_LIMIT_S)
    assert process.returncode == 7 and stdout.endswith("calls returned\n")
    if what == "ring file":
        (rank_file,) = traces.iterdir()
        runs.assert_exact(runs.closed(rank_file), counts_of(tmp_path))
        assert complaints == ""
        return
    assert complaints == "tprof: the trace is lost: its file was removed while the process ran\n"


def test_a_complaint_silences_what_follows_from_it_and_nothing_else(tmp_path):
    with runs.standing(tmp_path, CALLS, "inside", INSTANT_GATE="20", TROUBLE="map") as process:
        runs.rank_file(tmp_path / "traces").unlink()
        _, complaints = process.communicate("x", timeout=runs.TIME_LIMIT_S)
    assert process.returncode == 7
    ring, lost = complaints.splitlines()
    assert "no ring file" in ring and "was removed while the process ran" in lost


def test_file_size_limit_too_small_for_anything(tmp_path):
    traced = compare(tmp_path, limited("--fsize", 4096), complaints=1)
    assert "file size limit" in traced.stderr


@pytest.mark.parametrize("limit", [65536, 200_000, 1_000_000])
def test_file_size_limit_below_the_ring(limit, tmp_path):
    traced = compare(tmp_path, limited("--fsize", limit))
    (rank_file,) = traced.traces.iterdir()
    assert rank_file.stat().st_size <= limit
    assert_exact(traced)


def test_file_size_limit_below_the_lines(tmp_path):
    """The ring fits, but the lines of 30,000 calls do not: there is no SIGXFSZ, and the ledger is whole."""
    limit = 7_000_000
    command = runs.client("--fsize", limit, "calls", 15000, 2)
    traced = compare(tmp_path, command, complaints=1, TPROF_RING="32768")  # every call has a record
    (rank_file,) = traced.traces.glob("*.json")
    assert rank_file.stat().st_size <= limit
    assert_exact(traced)
    assert runs.footer(traced.only_rank_file())["dropped"]["write_error"] > 0


# The limits go from "not even the head of the ring" to "rather little".
@pytest.mark.parametrize("megabytes", [40, 96, 512, 3000])
def test_address_space_limit(megabytes, tmp_path):
    traced = compare(tmp_path, limited("--as", megabytes << 20))
    if list(traced.traces.iterdir()):
        assert_exact(traced)
    else:
        assert traced.complaints()


# Sites limit memory by ulimit -v: the program must not lack what the tracer reserves.
@pytest.mark.parametrize("gigabytes", [1, 2, 5, 20])
def test_address_space_limit_leaves_the_program_its_room(gigabytes, tmp_path):
    limit = gigabytes << 30
    traced = compare(tmp_path, runs.client("--as", limit, "room", limit * 3 // 4))
    assert traced.stdout == "there is room\n"
    assert_exact(traced)


@pytest.mark.parametrize("free", [0, 1, 2, 3])
def test_no_file_descriptors_left(free, tmp_path):
    # The rank file and the ring file need one each.
    traced = compare(tmp_path, limited("--fds", free), complaints=0 if free > 1 else 1)
    if free > 1:
        assert_exact(traced)
    else:
        assert "not tracing: cannot create a file in" in traced.stderr


def test_closed_standard_error(tmp_path):
    """A complaint that cannot be made is no reason to die, nor to write into the trace."""
    command = ["sh", "-c", 'exec "$0" "$@" 2>&-', *CALLS]
    traced = compare(tmp_path, command, complaints=0, TPROF_QUOTA="much")
    assert_exact(traced)


def test_standard_error_that_nobody_reads(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    env = runs.environment(tmp_path, TPROF_QUOTA="much")
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb") as full:
        done = subprocess.run(
            CALLS, env=env, stdout=subprocess.PIPE, stderr=full, timeout=runs.TIME_LIMIT_S, check=False
        )
    assert done.returncode == 7 and done.stdout.endswith(b"calls returned\n")
    (rank_file,) = (tmp_path / "traces").iterdir()
    runs.assert_exact(runs.closed(rank_file), counts_of(tmp_path))


def test_broken_pipe_as_standard_error(tmp_path):
    command = ["bash", "-c", '"$0" "$@" 2> >(exec true); exit $?', *CALLS]
    compare(tmp_path, command, complaints=0, TPROF_QUOTA="much")


def test_a_profiler_whose_signals_interrupt_everything(tmp_path):
    traced = compare(tmp_path, CALLS, complaints=0, TROUBLE="signals")
    assert_exact(traced)

"""The snapshot tells of a process whose ring file can't be seen: in the node's temporary folder, in
memory that died with it, in a container that is gone."""

import contextlib
import pathlib
import signal
import struct
import subprocess

import pytest
from lib import counted, runs
from lib.tool import told, tprof

PLACES = {
    "nfs": "output=nfs shm=tmpfs",
    "overlay": "output=overlay shm=overlay tmpdir=overlay tmp=overlay",
}
GATE = "300"  # the all-reduce in which it stands


def entries(snapshot: pathlib.Path) -> list[tuple]:
    data = snapshot.read_bytes()
    found = [struct.unpack_from("<8s7Q", data, at) for at in (0, 512) if len(data) >= at + 64]
    return [entry for entry in found if entry[0] == b"tprofsn1"]


@contextlib.contextmanager
def standing(tmp_path, trouble: str, **env: str):
    """Yields a client that stands in a call and has a first snapshot, with its ring file not beside the rank file."""
    variables = {"INSTANT_GATE": GATE, "TROUBLE": "places", "PLACES": PLACES[trouble], "TPROF_RING_DIR": "", **env}
    with runs.standing(tmp_path, runs.client("calls", 9000, 1), "inside", **variables) as process:
        snapshot = runs.until(lambda: next((tmp_path / "traces").glob(".*.snapshot"), None))
        runs.until(lambda: entries(snapshot))
        yield process, snapshot


def killed_without_ring(tmp_path, trouble: str, **env: str) -> tuple[pathlib.Path, dict]:
    traces = tmp_path / "traces"
    with standing(tmp_path, trouble, **env) as (process, _):
        process.kill()
    header = runs.header_of(traces)
    if header["ring"] is not None:
        ring = pathlib.Path(header["ring"])
        assert ring.is_absolute() and ring.parent != traces
        ring.unlink()
    return traces, header


@pytest.mark.parametrize("trouble", ["nfs", "overlay"])
@pytest.mark.parametrize("events", ["on", "off"])
def test_counts_and_the_open_call_are_known_without_the_ring(trouble, events, tmp_path):
    traces, header = killed_without_ring(tmp_path, trouble, TPROF_EVENTS=events)
    assert (header["ring"] is None) == (trouble == "overlay")
    check = told("check", "--stuck-after", "0.9", traces)[1]
    (seen,) = [f for f in check["findings"] if f["kind"] == "snapshot"]
    assert "unknown" in seen["text"] and seen["severity"] == "note"
    (hang,) = [f for f in check["findings"] if f["kind"] == "hang"]
    assert hang["function"] == "ncclAllReduce"

    plain = tprof("recover", traces)
    assert plain.returncode == 1 and "--force" in plain.stdout and header["host"] in plain.stdout
    forced = tprof("recover", "--force", traces)
    assert "as of then" in forced.stdout
    (file,) = traces.iterdir()  # the snapshot is gone
    (counts,) = (tmp_path / "counts").iterdir()
    lines = runs.closed(file)
    # The open call is unfinished by its line, not by the ledger, which is of a process that lived.
    expected = {k: v[:3] for k, v in runs.expected_ledger(counted.totals(counts)).items()}
    assert {k: v[:3] for k, v in runs.ledger(lines).items()} == expected
    assert [line["name"] for line in lines if line["ph"] == "B"] == ["ncclAllReduce"]

    # The file still says that it is of a moment: nothing in it contradicts the open call.
    after = told("check", "--stuck-after", "0.9", traces)[1]
    (seen,) = [f for f in after["findings"] if f["kind"] == "snapshot"]
    assert "what came after it is unknown" in seen["text"] and seen["severity"] == "warning"
    assert {f["kind"] for f in after["findings"]} == {f["kind"] for f in check["findings"]}
    again = tprof("recover", "--force", traces)
    assert again.returncode == 0 and "nothing to recover" in again.stdout


def test_a_process_that_closes_leaves_its_rank_file_only(tmp_path):
    with standing(tmp_path, "nfs") as (process, snapshot):
        ring = pathlib.Path(runs.header_of(snapshot.parent)["ring"])
        assert ring.is_absolute() and ring.exists()
        process.communicate("x", timeout=runs.TIME_LIMIT_S)
        assert process.returncode == 7
        assert [file.suffix for file in snapshot.parent.iterdir()] == [".json"]
        assert not ring.exists()


def test_a_ring_that_is_there_tells_more_than_the_snapshot(tmp_path):
    with standing(tmp_path, "nfs") as (process, snapshot):
        kinds = {f["kind"] for f in told("check", snapshot.parent)[1]["findings"]}
        assert "running" in kinds and "snapshot" not in kinds
        process.communicate("x", timeout=runs.TIME_LIMIT_S)



def test_a_snapshot_that_is_not_whole_or_of_another_is_none(tmp_path):
    traces, _ = killed_without_ring(tmp_path, "nfs")
    (snapshot,) = traces.glob(".*.snapshot")
    whole = snapshot.read_bytes()
    ((_, generation, base, cut, offset, length, text_sum, own_sum),) = entries(snapshot)
    at = generation % 2 * 512
    spoiled = {
        "text cut": whole[: offset + length - 1],
        "text changed": whole[: offset + 9] + b"~" + whole[offset + 10 :],
        "entry torn": whole[: at + 20] + bytes(44) + whole[at + 64 :],
        "empty": b"",
    }
    for what, data in spoiled.items():
        snapshot.write_bytes(data)
        kinds = {f["kind"] for f in told("check", traces)[1]["findings"]}
        assert "lost" in kinds and "snapshot" not in kinds, what
    # If the newer entry is torn, the older one holds.
    other = (generation + 1) % 2 * 512
    newer = struct.pack("<8s7Q", b"tprofsn1", generation + 1, base, cut, offset, length, 1, own_sum)
    snapshot.write_bytes(whole[:other] + newer + whole[other + 64 :])
    kinds = {f["kind"] for f in told("check", traces)[1]["findings"]}
    assert "snapshot" in kinds
    # A snapshot of an earlier process, whose rank file had the same name, does not count.
    stranger = whole[:at] + whole[at : at + 16] + struct.pack("<Q", base + 1) + whole[at + 24 :]
    snapshot.write_bytes(stranger)
    kinds = {f["kind"] for f in told("check", traces)[1]["findings"]}
    assert "lost" in kinds


WRITES = 2  # of a snapshot: its text, its entry
MOMENTS = 3  # before, within and after each


def known(traces: pathlib.Path) -> dict | None:
    """Returns bucket -> calls, elements and bytes, as known without the ring; None where nothing is known."""
    summary = told("summary", traces)[1]
    buckets = summary["buckets"].items()
    found = {k: (b["calls"], b["elements"], b["bytes"]) for k, b in buckets if b and b["calls"]}
    return found or None


def test_killed_at_every_moment_of_a_snapshots_writes(tmp_path):
    """Exactly what the last whole snapshot said is known then."""

    def killed(name: str, snapshots: int, trouble: str) -> dict | None:
        folder = tmp_path / name
        mode = runs.client("end", "wait", f"snapshots {snapshots}")
        with subprocess.Popen(
            mode,
            env=runs.environment(folder, TROUBLE=trouble, TPROF_RING_DIR=str(tmp_path)),
            stdout=subprocess.PIPE,
        ) as process:
            said = process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert said == (b"ready\n" if trouble == "clock" else b"")
        pathlib.Path(runs.header_of(folder / "traces")["ring"]).unlink()
        return known(folder / "traces")

    first, second = killed("1", 1, "clock"), killed("2", 2, "clock")
    assert first and second and first != second
    one = WRITES * MOMENTS
    for moment in range(1, 2 * one + 1):
        # The last moment is after the entry is written.
        expected = None if moment < one - 1 else first if moment < 2 * one - 1 else second
        found = killed(f"at {moment}", 2, f"snapshot:{moment}")
        if moment % one == one - 1:  # half of an entry is none
            expected = None if moment < one else first
        assert found == expected, moment

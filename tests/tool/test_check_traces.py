"""tprof check on traces of every kind: merged, recovered, of a job that runs, of half a job."""

import json

import pytest
from lib import faults, jobs, launch
from lib.build import BUILD
from lib.contract import SCHEMA
from lib.rankfile import lines_of
from lib.runs import until
from lib.tool import tprof, worse_than_notes


def cases():
    job = faults.pin(jobs.healthy(4, 60, 11), 0)
    yield "healthy", job
    yield "skipped", faults.plant_skipped(job, 2, 0, 9)
    yield "killed", faults.plant_killed(job, 2, 0, 9, inside=True)[0]
    yield "hung", faults.plant_hung(job, 2, 0, 9)[0]


@pytest.mark.parametrize("name, job", cases(), ids=lambda value: value if type(value) is str else "")
@pytest.mark.parametrize("merged", ["merged.json", "merged.json.gz"])
def test_a_merged_trace_says_what_its_files_say(tmp_path, name, job, merged):
    folder = job.write(tmp_path / "job")
    assert tprof("merge", folder, "-o", tmp_path / merged).returncode == 0
    files = json.loads(tprof("check", folder, "--json").stdout)
    assert json.loads(tprof("check", tmp_path / merged, "--json").stdout) == files
    assert bool(files["findings"]) == (name != "healthy")


def test_a_communicator_of_which_a_rank_is_not_here(tmp_path):
    """The world size is that of half the job, as where two launchers make one job."""
    folder = jobs.healthy(4, 20, 3).write(tmp_path / "job")
    for rank in (2, 3):
        (folder / f"rank-{rank:05}.json").unlink()
    for file in folder.iterdir():
        file.write_text(file.read_text().replace('"world_size":4', '"world_size":2'))
    findings = worse_than_notes(folder)
    assert findings and {f["kind"] for f in findings} == {"missing_member"}
    assert any("has 4 ranks, of which 2 have a trace here (ranks 0,1)" in f["text"] for f in findings)


def test_numbers_without_end_cost_no_time(tmp_path):
    """The ledgers claim 2^62 collectives on both sides, and a line claims to be one of them."""
    job = jobs.healthy(2, 20, 3, [[0, 1]])
    folder = job.write(tmp_path / "job")
    n = len(job.collectives(0, 0))
    for rank, claim in ((0, 2**62), (1, 2**62 + 5)):
        file = folder / f"rank-{rank:05}.json"
        text = file.read_text().replace(f'"collectives":{n}', f'"collectives":{claim}')
        file.write_text(text.replace(f'"seq":{n - 1},', f'"seq":{2**62 - 7},'))
    kinds = {f["kind"] for f in worse_than_notes(folder)}
    assert "mismatch" in kinds


@pytest.fixture
def hanging(request, node, tmp_path):
    """Runs a native job on the stand-in whose rank 1 does not return from its 5th reduce-scatter."""
    settings = {k: v.format(node) for k, v in getattr(request, "param", {}).items()}
    command = [BUILD / "native_trainer", "--ranks", "2", "--steps", "50"]
    with launch.running(command, tmp_path, STANDIN_HANG="1:ncclReduceScatter:5", **settings) as job:
        yield job


# The 4th reduce-scatter, of the largest layer; the call that is open after it stays open.
LAST = "the last call of rank 1 that returned: ncclReduceScatter of 393,216 float32, avg, at "


def named(job, traces):
    """Returns the finding about rank 1, once it stands in its call. Any open call counts as stuck
    here, so this asks until the call that stays is there."""
    for _ in range(1000):
        assert job.poll() is None
        result = tprof("check", traces, "--json", "--stuck-after", "0")
        found = json.loads(result.stdout)["findings"] if result.stdout else []
        finding = next((f for f in found if (f["kind"], f["ranks"]) == ("hang", [1])), {})
        stands = finding.get("seq") is not None and "ncclReduceScatter" in finding["text"]
        if stands and any(line.startswith(LAST) for line in finding["evidence"]):
            return finding
    raise AssertionError(f"rank 1 is not found where it stands: {finding}")


@pytest.mark.parametrize("hanging", [{"TPROF_RING_DIR": "{}"}], ids=["node"], indirect=True)
def test_a_hang_is_told_where_only_the_snapshots_are_in_sight(hanging, node, tmp_path):
    """This is the view from another node, while the job runs and when it is dead and gone."""
    traces = tmp_path / "traces"

    def found(kind, *ranks):
        result = tprof("check", traces, "--json", "--stuck-after", "0.9")
        found = json.loads(result.stdout)["findings"]
        return next((f for f in found if (f["kind"], f["ranks"]) == (kind, [*ranks])), None)

    named(hanging, traces)
    rings = list(node.iterdir())
    assert len(rings) == len(list(traces.glob(".*.snapshot"))) == 2
    for ring in rings:
        ring.unlink()
    hang = until(lambda: found("hang", 1) if found("snapshot", 0, 1) else None)
    assert hanging.poll() is None
    assert hang["function"] == "ncclReduceScatter"
    launch.kill(hanging)
    assert found("hang", 1)["seq"] == hang["seq"]


def ended(traces):
    """Returns the findings once no rank runs any more, else None: a killed process may not be gone yet."""
    done = tprof("check", traces, "--json")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)["findings"]
    return None if "running" in {f["kind"] for f in found} else found


def recovered(traces):
    """Returns how recovery ended, else None: a killed process whose rank has worse findings may not be gone yet."""
    done = tprof("recover", traces)
    return None if "still running" in done.stdout else done


SETTINGS = [
    {}, {"TPROF_EVENTS": "off"}, {"TPROF_EVENTS": "all"}, {"TPROF_QUOTA": "600"}, {"TPROF_RANKS": "0"},
]  # fmt: skip


@pytest.mark.parametrize("hanging", SETTINGS, ids=str, indirect=True)
def test_what_was_called_last_is_known_whatever_was_written(hanging, tmp_path):
    """Covers a running job, one that was killed, and what recovery makes of it."""
    traces = tmp_path / "traces"
    finding = named(hanging, traces)
    place = (finding["seq"], finding["function"])
    launch.kill(hanging)
    for _ in ("killed", "recovered"):
        found = until(lambda: ended(traces))
        # Where rank 0's writer had no core for a while, rank 0 may have fallen silent first.
        (worse,) = (f for f in found if f["severity"] != "note" and f["ranks"] in ([1], [0, 1]))
        assert (worse["seq"], worse["function"]) == place
        assert any(line.startswith(LAST) for line in worse["evidence"])
        # No line is missed, and none is there twice.
        assert {f["kind"] for f in found} <= {"hang", "stopped", "dropped", "dropped_ranges"}
        assert until(lambda: recovered(traces)).returncode == 0
    for line in lines_of(traces / "rank-00001.json"):
        SCHEMA.validate(json.loads(line))
    # Files that other commands make of it say the same.
    for command, folder in (("merge", "merged.json"), ("anonymize", "public")):
        assert tprof(command, traces, "-o", tmp_path / folder).returncode == 0
        assert LAST in tprof("check", tmp_path / folder).stdout

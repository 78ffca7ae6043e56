"""A process that holds several ranks is, to every command, as many ranks.

The same job is written twice: a file for each rank, and a file for each process with its ranks. The
commands have to say the same of the counts.
"""

import json
import re

import pytest
from lib import faults, handmade, jobs, processes
from lib.rankfile import lines_of
from lib.tool import tprof, worse_than_notes

GROUPS = {
    "one process": [[0, 1, 2, 3]],
    "two processes": [[0, 1], [2, 3]],
    "not in order": [[0, 3], [1, 2]],
    "one with two ranks": [[0], [1, 2], [3]],
}


def with_launcher(groups):
    """Returns whether to launch them. A launcher numbers processes, which tells ranks only if each holds as many."""
    return [False, True] if len(groups) == 2 else [False]


@pytest.fixture(scope="module")
def job():
    return faults.pin(jobs.healthy(4, 60, 11), 0)


def summary(*paths):
    result = tprof("summary", *paths, "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_summary_is_that_of_the_same_ranks_in_processes_of_their_own(tmp_path, job, groups):
    expected = summary(job.write(tmp_path / "ranks"))
    for launcher in with_launcher(groups):
        folder = processes.write(job, tmp_path / f"processes{launcher}", groups, launcher)
        found = summary(folder)
        assert found["ranks"] == [0, 1, 2, 3] and found["missing_ranks"] == []
        for key in ("buckets", "ops", "comms", "dropped", "complete"):
            assert found[key] == expected[key], key
        assert [p["kind"] for p in found["findings"]] == [p["kind"] for p in expected["findings"]]


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("plant", [faults.plant_count, faults.plant_skipped, faults.plant_order])
def test_a_fault_on_one_lane_is_that_ranks(tmp_path, job, groups, plant):
    broken = plant(job, 2, 0, 9)
    folder = processes.write(broken, tmp_path / "job", groups)
    (finding,) = [f for f in worse_than_notes(folder) if f["kind"] == "mismatch"]
    assert (finding["ranks"], finding["seq"]) == ([2], 9)
    expected = tprof("check", broken.write(tmp_path / "ranks"), "--json").stdout
    (same,) = [f for f in json.loads(expected)["findings"] if f["kind"] == "mismatch"]
    who = next(f"(device 2 of pid {4000 + n})" for n, ranks in enumerate(groups) if 2 in ranks)
    one = next(len(ranks) for ranks in groups if 2 in ranks) == 1
    assert finding["text"].replace("" if one else f" {who}", "") == same["text"]


@pytest.mark.parametrize("fault", [None, faults.plant_count], ids=["healthy", "mismatch"])
def test_a_merged_trace_has_a_track_for_each_rank_and_says_the_same(tmp_path, job, fault):
    job = fault(job, 2, 0, 9) if fault else job
    folder = processes.write(job, tmp_path / "job", [[0, 1], [2, 3]], tid=7)
    merged = tmp_path / "merged.json"
    assert tprof("merge", folder, "-o", merged).returncode == 0
    lines = [json.loads(line) for line in lines_of(merged)]
    for rank in range(4):
        ours = [line for line in lines if line["pid"] == rank]
        events = [(line["name"], line["ts"]) for line in ours if line["ph"] == "X"]
        assert len(events) == len(job.ranks[rank].ops)
        (name,) = [line["args"]["name"] for line in ours if line["name"] == "process_name"]
        assert name.startswith(f"rank {rank} (device {rank} of pid {4000 + rank // 2})")
    for command in ("summary", "check"):
        of_files = tprof(command, folder, "--json")
        of_merged = tprof(command, merged, "--json")
        # A merge moves times to one clock, so that a run may be a few nanoseconds longer or shorter.
        moved = [re.sub(r'"run_ns": \d+', "", done.stdout) for done in (of_merged, of_files)]
        assert moved[0] == moved[1]
        assert of_merged.returncode == of_files.returncode


def test_a_communicator_within_one_rank_of_a_launched_job_makes_no_lanes(tmp_path):
    """There are two launched processes, each with a group of its own over two devices (DataParallel)."""
    folder = tmp_path / "job"
    for number in (0, 1):
        job = jobs.healthy(2, 20, 30 + number)
        path = processes.write(job, tmp_path / f"part{number}", [[0, 1]])
        (file,) = path.iterdir()
        text = file.read_text().replace('"rank":null,"world_size":null', f'"rank":{number},"world_size":2')
        text = "\n".join(line for line in text.split("\n") if "tprof_identity" not in line)
        text = text.replace('"pid":4000,"start', f'"pid":{4000 + number},"start')
        text = text.replace(f'"run_id":"job-{30 + number}"', '"run_id":"job"')
        folder.mkdir(exist_ok=True)
        (folder / f"rank-{number:05}.json").write_text(text)
    found = summary(folder)
    assert found["ranks"] == [0, 1]
    assert worse_than_notes(folder) == []


def test_ranges_go_to_the_rank_of_their_threads_device(tmp_path, job):
    folder = processes.write(job, tmp_path / "job", [[0, 1], [2, 3]])
    for file in folder.iterdir():
        for phase, extra in (("X", {"dur": 2.0}), ("b", {"id2": {"local": "1"}})):
            for device in (None, 1, 3, 77):
                line = {"cat": "NVTX", "ph": phase, "name": f"{file.name} {device}", "pid": 0}
                line |= {"tid": (1 << 22) + 5, "ts": 1.0, "args": {}} | extra
                if device is not None:
                    line["args"]["device"] = device
                handmade.insert(file, line, before='"reason":"close"')
    merged = tmp_path / "merged.json"
    assert tprof("merge", folder, "-o", merged).returncode == 0
    found = [line for line in map(json.loads, lines_of(merged)) if line.get("cat") == "NVTX"]
    assert len(found) == 2 * 2 * 4
    ranks = {(line["name"].split()[0][-6], line["name"].split()[1]): line["pid"] for line in found}
    first, second = sorted(file.name[-6] for file in folder.iterdir())
    # Devices 0 and 1 are ranks 0 and 1, 2 and 3 are 2 and 3; a device that is no rank's goes to the
    # first rank.
    assert [ranks[first, device] for device in ("None", "1", "3", "77")] == [0, 1, 0, 0]
    assert [ranks[second, device] for device in ("None", "1", "3", "77")] == [2, 2, 3, 2]

"""tprof check on jobs that did not end well: who held them up, and where."""

import dataclasses
import json
import re

import pytest
from lib import faults, handmade, jobs
from lib.faults import assert_names
from lib.tool import told, tprof, worse_than_notes


def planted(healthy, place, plant, tmp_path, **options):
    written, rank = healthy
    at = faults.places(written.job, rank, 0)[place]
    job, op = plant(written.job, rank, 0, at, **options)
    return job, job.write(tmp_path / "job", written), rank, at, op


# How a rank is held up, the kind, and what is said of it or of all ranks.
HELD_UP = {
    "it never came, the others stand behind it": (faults.plant_killed, {}, "stopped",
                                                  "never came to collective {at} ({op})"),
    "it never came, the others are inside": (faults.plant_killed, {"inside": True}, "stopped",
                                             "never came to collective {at} ({op})"),
    "the others ran to their end": (faults.plant_killed, {"others_go_on": True}, "stopped",
                                    "its calls just end there, which proves no divergence"),
    # How long it stood there is told by its own clock and its own end, however long the others live.
    "it was killed inside": (faults.plant_killed_inside, {}, "stopped",
                             "5.00 us before the end of its trace, and did not return (killed or crashed there)"),
    "it hangs inside": (faults.plant_hung, {}, "hang", "6.000 s before the end of its trace"),
    "all are inside": (faults.plant_hung, {"others_inside": True}, "hang", "no rank is missing"),
    "it left in order": (faults.plant_left, {}, "stopped", "closed in order before it"),
}  # fmt: skip


@pytest.mark.parametrize("how", HELD_UP)
def test_who_held_the_others_up_and_where(healthy, place, tmp_path, how):
    plant, options, kind, said = HELD_UP[how]
    job, folder, rank, at, op = planted(healthy, place, plant, tmp_path, **options)
    (finding,) = worse_than_notes(folder)
    assert_names(finding, job, kind, list(range(job.size)) if how == "all are inside" else [rank], at, op.function)
    assert said.format(at=at, op=op.function) in finding["text"] + "\n" + "\n".join(finding["evidence"])


def test_a_rank_that_hangs_has_its_time(healthy, place, tmp_path):
    job, folder, rank, at, op = planted(healthy, place, faults.plant_hung, tmp_path)
    (finding,) = worse_than_notes(folder)
    assert_names(finding, job, "hang", [rank], at, op.function)
    base = jobs.BASE_NS + rank + op.at * jobs.STEP_NS
    assert finding["time"] == [base + rank % 7, base + 6_000_000_000]
    assert finding["steps"] is None


@pytest.mark.one_of(4)
@pytest.mark.parametrize("ahead_s", [-3600, -2, 2, 3600])
@pytest.mark.parametrize("plant", ["killed_inside", "hung", "killed", "elsewhere"])
def test_clocks_of_hosts_that_differ_change_no_verdict(healthy_job, tmp_path, plant, ahead_s):
    """Hosts with different clocks yield the findings of hosts with one clock, or fewer, and never more."""
    found = []
    for clock_s in (0, ahead_s):
        job, op = getattr(faults, f"plant_{plant}")(healthy_job(8).job, 5, 0, 9)
        for number, rank in enumerate(job.ranks):
            rank.host = number // 4
            rank.clock_ns = clock_s * 10**9 if number >= 4 else 0
        (finding,) = worse_than_notes(job.write(tmp_path / f"{clock_s}"))
        found.append((finding["kind"], finding["ranks"], finding["seq"]))
    same, apart = found
    assert same[0] == ("hang" if plant in ("hung", "elsewhere") else "stopped")
    assert apart[1:] == same[1:]
    # Clocks an hour apart do not tell that the rank lived on while others waited.
    assert apart[0] == same[0] or (plant, apart[0]) == ("elsewhere", "stopped")


def within(file, *names, thread=7):
    """Adds NVTX ranges that a thread has not popped, before the closing lines."""
    line = {"cat": "NVTX", "ph": "B", "pid": 0, "tid": (1 << 22) + thread, "ts": 1.5, "args": {"unfinished": True}}
    handmade.insert(file, *(line | {"name": name} for name in names), before='"reason":"close"')


@pytest.mark.parametrize("plant", [faults.plant_hung, faults.plant_killed])
def test_where_in_the_program_a_rank_stands(healthy, tmp_path, plant):
    """Covers a rank inside a call, and one that never came to it."""
    job, folder, rank, at, op = planted(healthy, "middle", plant, tmp_path)
    within(folder / f"rank-{rank:05}.json", "step 12", "layer 3 / \x1b[31mattention")
    within(folder / f"rank-{rank:05}.json", "loading", thread=9)
    (finding,) = worse_than_notes(folder)
    (own, other) = [line for line in finding["evidence"] if "NVTX" in line]
    path = '"step 12" / "layer 3 / \x1b[31mattention" (innermost last)'
    assert own.startswith(f"rank {rank} was within NVTX ranges {path} since 2025-11-21 00:00:00.000")
    loading = f'rank {rank} was within NVTX range "loading" on another thread (9) since '
    assert other.startswith(loading)
    text = tprof("check", folder).stdout
    assert "\x1b" not in text and f"rank {rank} was within NVTX ranges" in text


@pytest.mark.parametrize("plant", ["left", "killed"])
@pytest.mark.parametrize("how", [{"lines": False}, {"quota": 4}])
def test_the_last_line_is_not_taken_for_the_last_call(healthy_job, tmp_path, plant, how):
    """Nor is a rank whose lines end early taken for one that stood still for the rest of its time."""
    job, op = getattr(faults, f"plant_{plant}")(healthy_job(8).job, 5, 0, 9)
    for rank in job.ranks:
        rank.until = op.at + 300_000 if rank.end == "recovered" else op.at
    job.ranks[5] = dataclasses.replace(job.ranks[5], **how)
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"], finding["seq"]) == ("stopped", [5], 9)
    told = " ".join(finding["evidence"])
    assert "that returned" not in told
    assert "the lines of rank 5 do not tell which of its calls returned last" in told


def test_a_rank_in_its_own_code_while_the_others_wait(healthy, place, tmp_path):
    job, folder, rank, at, op = planted(healthy, place, faults.plant_elsewhere, tmp_path)
    (finding,) = worse_than_notes(folder)
    assert_names(finding, job, "hang", [rank], at, op.function)
    stood = re.search(r" stood still before it(?:, for ([\d.]+) s)?$", finding["text"])[1]
    assert (stood is None) == (place == "first")  # no call tells since when
    if stood:
        told = next(line for line in finding["evidence"] if line.startswith("the last call of rank"))
        assert told.endswith(f"; its trace ends {stood} s later") and 6 <= float(stood) < 6.5
    assert "6.000 s before the end of its trace" in " ".join(finding["evidence"])


def test_places_are_named_from_ledgers_alone(healthy, place, tmp_path):
    """Without lines nobody knows since when a rank stands there, or which function the calls that returned were of."""
    job, folder, rank, at, op = planted(healthy, place, faults.plant_hung, tmp_path)
    (finding,) = worse_than_notes(folder, "--no-lines")
    assert_names(finding, job, "stopped", [rank], at, op.function)
    assert "event lines would tell how long it stood there" in finding["evidence"]
    job, op = faults.plant_killed(healthy[0].job, rank, 0, at, inside=True)
    (finding,) = worse_than_notes(job.write(tmp_path / "killed"), "--no-lines")
    assert (finding["kind"], finding["ranks"], finding["seq"]) == ("stopped", [rank], at)


@pytest.mark.parametrize("at_work", [0, 1, 4])
def test_ranks_that_end_without_closing_are_a_note(tmp_path, at_work):
    """Idle workers end like this when their launcher ends them by a signal, and others, that wait for their devices."""
    job = jobs.healthy(4, 30, 5)
    for number, rank in enumerate(job.ranks):
        rank.end = "recovered"
        if number < at_work:
            rank.inside = [jobs.Op("cudaMemcpy", 999, 16)]
    folder = job.write(tmp_path / "job")
    for command in ("check", "summary"):
        result = tprof(command, folder)
        assert result.returncode == 0, result.stdout
        assert "note: ranks 0-3 ended without closing: killed by a signal, or" in result.stdout
    found = json.loads(tprof("check", folder, "--json").stdout)
    assert [(f["kind"], f["severity"]) for f in found["findings"]] == [("not_closed", "note")]
    assert found["findings"][0]["next"].startswith("the launcher's output tells how each rank ended: its exit code")
    assert json.loads(tprof("summary", folder, "--json").stdout)["complete"] is True


@pytest.mark.parametrize("how", ["a call is open", "others got further", "others closed"])
def test_ranks_that_end_without_closing_and_were_needed_are_a_warning(tmp_path, how):
    job = jobs.healthy(4, 30, 5, [[0, 1, 2, 3]])
    for rank in job.ranks if how != "others closed" else job.ranks[:2]:
        rank.end = "recovered"
    if how == "a call is open":
        job.ranks[0].inside = [jobs.Op("ncclSend", 999, 64, 0, "float32", peer=1)]
    if how == "others got further":
        job.ranks[0].ops.remove(job.collectives(0, 0)[-1])
    folder = job.write(tmp_path / "job")
    worse = worse_than_notes(folder)
    assert worse and {f["kind"] for f in worse} <= {"not_closed", "stopped", "unfinished"}
    assert "did not close" in tprof("check", folder).stdout
    assert tprof("summary", folder).returncode == 1


def as_child_of(parent, folder):
    """Makes the file of a process that the rank forked, which made one copy and was killed."""
    of = {"pid": 4000, "start_ns": jobs.BASE_NS - 10**9}
    header = {"pid": 4712, "forked_from": of, "run_id": "another", "world_size": 4}
    rank = jobs.Rank([jobs.Op("cudaMemcpyAsync", 1, 16)], [], "recovered", header=header)
    (file,) = jobs.Job([], [rank]).write(folder).iterdir()
    file.rename(parent.with_suffix(".r1.json"))


def test_a_dead_child_is_told_apart_from_its_rank(tmp_path):
    """It belongs to its parent's job whatever else it says, and is no second rank 0."""
    folder = jobs.healthy(4, 30, 5).write(tmp_path / "job")
    as_child_of(folder / "rank-00000.json", tmp_path / "child")
    for command in ("check", "summary"):
        result = tprof(command, folder)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "note: child 4712 of rank 0 ended without closing" in result.stdout
        assert "launcher" not in result.stdout
    assert re.search(r"ranks 0-3, child \d+ of rank \d", tprof("summary", folder, "--verbose").stdout)
    assert told("report", folder)[1]["verdict"]["text"].startswith("The ranks did nothing wrong")

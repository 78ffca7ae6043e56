"""Ranks that ended by themselves with a status other than 0 are told, and those that ended well are not."""

import re

import pytest
from lib import faults, handmade, jobs
from lib.tool import generate, told, tprof


def ended(folder, statuses, end="closed", until=None):
    """Returns the folder of a job whose ranks all did the same and then exited so; None: it is not known."""
    job = jobs.healthy(len(statuses), 40, 3, [list(range(len(statuses)))], point_to_point=False)
    for rank, status in zip(job.ranks, statuses):
        rank.exit_status = status
    if until:
        job.ranks[-1].end, job.ranks[-1].until = end, until
    return job.write(folder)


# The statuses of ranks, and which ranks are told of which.
STATUSES = [
    ([0, 0, 0], []), ([None, None, None], []), ([0, None, 0], []), ([1, 1], [([0, 1], 1)]), ([0, 1, 0], [([1], 1)]),
    ([3, 0, 255], [([0], 3), ([2], 255)]),
]  # fmt: skip


@pytest.mark.parametrize(("statuses", "expected"), STATUSES)
def test_statuses_but_0_are_told_with_their_ranks(statuses, expected, tmp_path):
    code, found = told("check", ended(tmp_path / "job", statuses))
    assert (code, found["healthy"]) == (int(bool(expected)), not expected)
    assert [(f["kind"], f["severity"], f["ranks"]) for f in found["findings"]] == [
        ("exited", "warning", ranks) for ranks, _ in expected
    ]
    assert all(f["text"].endswith(f" {status}") for f, (_, status) in zip(found["findings"], expected))


def test_it_is_the_first_thing_that_is_said(tmp_path):
    folder = ended(tmp_path / "job", [1, 1])
    for command in ("summary", "report"):
        said = tprof(command, folder).stdout
        assert "anks 0,1 exited with status 1" in said.split("\n\n")[0]
        assert "Nothing is wrong" not in said and "did nothing wrong" not in said


def test_who_ended_first_is_said_with_its_status_and_once(tmp_path):
    """Rank 0 raised, and the launcher ended rank 1 later."""
    code, found = told("check", ended(tmp_path / "job", [1, None], "recovered", 90_000))
    (finding,) = [f for f in found["findings"] if f["severity"] != "note"]
    assert (finding["kind"], finding["ranks"]) == ("stopped", [0])
    assert finding["text"].startswith("rank 0 ended first: exited with status 1 at 2025-11-21 ")


@pytest.fixture(params=["well", "a rank is not here", "a rank is lost", "a bad setting", "different", "killed", "a bad line"])
def traces(request, tmp_path):
    job = faults.pin(jobs.healthy(3, 20, 5, [[0, 1, 2]]), 0)
    if request.param == "different":
        job = faults.plant_skipped(job, 1, 0, 9)
    if request.param == "killed":
        job = faults.plant_hung(job, 1, 0, 9)[0]
    if request.param == "a rank is lost":
        job.ranks[1].end = "lost"
    if request.param == "a bad setting":
        job.ranks[1].header["config"] = handmade.header()["args"]["config"] | {"TPROF_CALLSITE": "1"}
    file = job.write(tmp_path / "job") / "rank-00001.json"
    if request.param == "a rank is not here":
        file.unlink()
    if request.param == "a bad line":
        file.write_text(file.read_text().replace('"seq":5', '"seq":-5', 1))
    return tmp_path / "job"


@pytest.mark.parametrize(
    "command", ["summary", "check", "doctor", "merge -o x.json", "export --sqlite x.db", "export --csv x", "replay"]
)
def test_an_error_is_said_by_no_command_that_succeeds(traces, command):
    """Nor a warning, except by `summary`, which judges whether its counts are whole. Commands that only write from the
    traces succeed if they had all of them."""
    name, *options = command.split()
    done = tprof(name, traces, *options, cwd=traces.parent)
    said = re.findall("^(error|warning): ", done.stdout + done.stderr, re.MULTILINE)
    assert done.returncode in (0, 1)
    assert done.returncode <= bool(said), done
    assert not said or done.returncode == 1 or name == "summary", done


@pytest.mark.parametrize("command", ["summary", "check"])
def test_a_job_of_which_nothing_was_counted_is_no_success(command, tmp_path):
    generate(tmp_path / "job", 2, 0)
    code, found = told(command, tmp_path / "job")
    (finding,) = [f for f in found["findings"] if f["severity"] != "note"]
    assert (code, finding["kind"], finding["severity"]) == (1, "nothing_counted", "warning")
    generate(tmp_path / "one_call", 2, 1)
    assert told(command, tmp_path / "one_call")[0] == 0
    assert tprof("merge", tmp_path / "job", "-o", tmp_path / "merged.json").returncode == 0

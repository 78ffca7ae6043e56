"""tprof check and report on jobs whose ranks did not end together: who ended first, and who only waited for it."""

import json

import pytest
from lib import jobs
from lib.tool import told, tprof, worse_than_notes


def crashed(ends, hosts=None, clocks_s=None):
    """Returns a job whose ranks all did the same. `ends`: for each rank, how it ended and at which
    place in the program."""
    job = jobs.healthy(4, 12, 4, [[0, 1, 2, 3]], point_to_point=False)
    for number, (end, until) in enumerate(ends):
        rank = job.ranks[number]
        rank.end, rank.until = end, until
        rank.host = hosts[number] if hosts else 0
        rank.clock_ns = clocks_s[number] * 10**9 if clocks_s else 0
    return job


def one_more(at, ranks, job):
    """These ranks make a call more."""
    for rank in ranks:
        job.ranks[rank].ops.append(jobs.Op("ncclAllReduce", at, 5, 0, "float32", "sum"))
    return job


def one_fewer(rank, job):
    del job.ranks[rank].ops[-1]
    return job


def closed(until):
    return ("closed", until)


def killed(until):
    return ("recovered", until)


APART = [closed(5000), killed(95_000), closed(90_000), killed(99_000)], [0, 0, 1, 1]  # on two hosts
# The job; who ended first; the collective; and what the finding or its evidence says.
FIRST = {
    "two with an exception, before the launcher ended the others":
        (crashed([closed(5000), closed(5100), killed(9000), killed(9010)]), [0, 1], None,
         "ranks 0,1 ended first: closed in order at 2025-11-21 00:00:00.5", "; the others lived for 400.00 ms more"),
    # The last sign of life of a killed rank is up to half a second older than its end.
    "nothing tells":
        (crashed([closed(5000)] * 2 + [killed(4000)] * 2), [0, 1, 2, 3], None,
         "ranks 0,1 closed in order at 2025-11-21 00:00:00.500 UTC",
         "about when ranks 2,3 were killed or crashed: the traces do not tell who was first"),
    # The others are quiet behind its end, as they wait for it until the launcher ends them.
    "one at work": (crashed([killed(100)] + [killed(60_000)] * 3), [0], None),
    # No call was open, and all did as much; but nobody ends one rank of a job seconds before the others.
    "one between two calls":
        (crashed([killed(50_000)] * 3 + [killed(5000)]), [3], None, "the others lived for 4.500 s more"),
    "one killed, another closed later":
        (crashed([killed(50_000), closed(60_000), killed(90_000), killed(90_000)]), [0], None),
    "one within a call, to which another had not come":
        (one_more(3999, (0, 1, 3), crashed([killed(5000)] * 3 + [killed(4000)])), [0, 1, 2, 3], 12,
         "\nrank 2 never came to collective 12"),
    # Counts tell apart who left before a collective, and who left with that collective's error.
    "one a moment before another":
        (one_fewer(1, crashed([closed(5000), closed(100), killed(5500), killed(5500)])), [1], 11, "\nranks 0,1 "),
    "one a call behind which the others were ended":
        (one_more(4999, (0,), crashed([closed(5000)] + [killed(9000)] * 3)), [0], 12,
         "\nranks 1-3 never came to collective 12"),
    "on two hosts with one clock": (crashed(*APART), [0], None),
    # With clocks an hour apart, each of the two hosts has its own rank that ended first.
    "on two hosts, one an hour behind": (crashed(*APART, [0, 0, -3600, -3600]), [0, 2], None),
    "on two hosts, one an hour ahead": (crashed(*APART, [0, 0, 3600, 3600]), [0, 2], None),
}  # fmt: skip


@pytest.mark.parametrize("who", FIRST)
def test_who_ended_first_is_named(who, tmp_path):
    job, ranks, seq, *said = FIRST[who]
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("stopped", "warning", ranks)
    assert seq is None or finding["seq"] == seq
    told = "\n".join([finding["text"], *finding["evidence"]])
    assert [words for words in said if words not in told] == []
    assert "no rank had made a call" not in told


@pytest.mark.parametrize("before, said", [(1000, True), (100, False)])
def test_who_was_last_heard_of_first_is_said_and_nothing_made_of_it(tmp_path, before, said):
    """One rank was last heard of 0.1 s before the others, but a sign of life may be that old."""
    job = crashed([("recovered", 5000)] * 3 + [("recovered", 5000 - before)])
    result = tprof("check", job.write(tmp_path / "job"), "--json")
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["kind"], finding["ranks"]) == ("not_closed", [0, 1, 2, 3])
    assert (finding["severity"], result.returncode) == ("note", 0)
    silent = [line for line in finding["evidence"] if line.startswith("rank 3 was last heard of at ")]
    assert len(silent) == said and (not said or "the others for 100.00 ms more" in silent[0])


@pytest.mark.parametrize("ends", [[50_000] * 4, [50_000, 50_000, 50_000, 49_000]])
def test_for_how_long_a_job_had_stood_still_is_told_after_it_was_killed(tmp_path, ends):
    """Its last call ended 1.2 ms after its begin, and it was killed 5 s after that. In which order signals then came to
    the ranks says nothing."""
    job = crashed([("recovered", until) for until in ends])
    last = job.ranks[0].ops[-1]
    result = tprof("check", job.write(tmp_path / "job"), "--json")
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["kind"], finding["severity"], result.returncode) == ("not_closed", "note", 0)
    quiet = f"{(min(ends) * jobs.STEP_NS - last.at * jobs.STEP_NS - 5_000) / 1e9:.3f} s"
    call = f"{last.function}, collective 11 of communicator {job.id(0)}"
    said = f"no rank had made a call for {quiet} by then; every rank reached the last collective, {call}"
    assert said in finding["text"]
    assert "heard of" not in json.dumps(finding)
    assert "the launcher's output tells how each rank ended" in finding["next"]
    text = verdict_of(tmp_path / "job")["text"]
    assert text.endswith(f"; until then they did the same 12 collectives, and made no call in the last {quiet}.")


def test_a_job_that_stood_before_its_first_rank_ended_is_said_to(tmp_path):
    """Somebody ends a job that hangs: which rank the signal reaches first is not why it stood."""
    job = crashed([("recovered", 420_000)] * 3 + [("recovered", 400_000)])
    stood = f"{(400_000 - job.ranks[0].ops[-1].at) * jobs.STEP_NS / 1e9 - 5e-6:.3f} s"
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"]) == ("stopped", [3])
    assert finding["text"].endswith(f", {stood} after the last call of any rank; the others lived for 2.000 s more")
    assert f", {stood} after the last call of any rank;" in verdict_of(tmp_path / "job")["text"]


def verdict_of(folder):
    return told("report", folder)[1]["verdict"]


@pytest.mark.parametrize(
    "ends, said",
    [
        ([("closed", 5000)] * 4, "The ranks did nothing wrong"),
        ([("recovered", 5000)] * 4, "Ranks 0-3 ended without closing: killed by a signal, or"),
        (
            [("recovered", 5000)] * 3 + [("recovered", 4000)],
            "Ranks 0-3 ended without closing (rank 3 fell silent first, 100.00 ms before the others): ",
        ),
        ([("recovered", 50_000)] * 3 + [("recovered", 5000)], "Rank 3 ended first: killed or crashed"),
    ],
)
def test_a_report_does_not_call_an_end_without_closing_well(tmp_path, ends, said):
    verdict = verdict_of(crashed(ends).write(tmp_path / "job"))
    assert verdict["text"].startswith(said)
    if "without closing" in said:
        assert "until then they did the same 12 collectives" in verdict["text"]
        assert (verdict["severity"], verdict["finding"]) == ("note", 0)


def in_a_copy(since, first, ahead, last=600_000):
    """Rank 0 stands in a copy from `since` to `last`, when it and rank 2 are killed; rank 1 ended
    before, as `first` says, and had called `ahead` collectives more than rank 0."""
    job = jobs.healthy(3, 12, 4, [[0, 1, 2]], point_to_point=False)
    for rank in job.ranks:
        rank.end, rank.until = "recovered", last
    job.ranks[1].end, job.ranks[1].until = first
    job.ranks[0].inside = [jobs.Op("cudaMemcpyAsync", since, 408)]
    for _ in range(ahead):
        for rank in job.ranks[1:]:
            rank.ops.append(jobs.Op("ncclAllGather", 4990, 64, 0, "float32"))
    return job


@pytest.mark.parametrize("end", ["closed", "recovered"])
@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("since", [4995, 5100])
def test_who_left_is_named_and_not_whose_device_then_waits_for_it(tmp_path, end, ahead, since):
    """Its copy comes after a collective that needs rank 1, which left a moment before or after it."""
    job = in_a_copy(since, (end, 5000), ahead)
    folder = job.write(tmp_path / "job")
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("stopped", "warning", [1])
    assert finding["text"].startswith("rank 1 ended first: ")
    assert finding["text"].endswith("the others lived for 59.500 s more")
    assert "killed or crashed there" not in json.dumps(finding)


@pytest.mark.parametrize(
    "since, first, ahead",
    [
        (5000, ("closed", 205_000), 1),  # it stood for 20 s when rank 1 gave up
        (5000, ("recovered", 205_000), 1),
        (205_000, ("closed", 5000), 0),  # rank 1 had long been through
        (5000, ("recovered", 600_000), 1),  # all were killed together
    ],
)
def test_a_rank_that_hangs_in_a_copy_is_named_although_another_ended_first(tmp_path, since, first, ahead):
    job = in_a_copy(since, first, ahead)
    finding = worse_than_notes(job.write(tmp_path / "job"))[0]
    assert (finding["kind"], finding["ranks"]) == ("hang", [0])
    assert finding["text"].startswith("rank 0 was inside cudaMemcpyAsync since ")


@pytest.mark.parametrize("before, silent", [(1000, True), (0, False)])
def test_who_was_killed_in_a_copy_is_not_blamed_for_what_ended_all(tmp_path, before, silent):
    """All were killed within half a second, in which no trace tells who was first."""
    job = in_a_copy(5900, ("recovered", 6000 - before), ahead=1, last=6000)
    folder = job.write(tmp_path / "job")
    (finding,) = worse_than_notes(folder)
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("stopped", "warning", [0, 1, 2])
    assert finding["text"] == "ranks 0-2 were killed or crashed" + (
        ": rank 1 fell silent first, 100.00 ms before the others, which does not prove that it ended first"
        if silent
        else "; the traces do not tell who was first"
    )
    assert "killed or crashed there" not in json.dumps(finding)
    assert ("look at the output of rank 1" if silent else "the launcher's output") in finding["next"]
    assert verdict_of(folder)["text"].startswith("Ranks 0-2 were killed or crashed")

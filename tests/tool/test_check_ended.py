"""tprof check and report on jobs whose ranks did not end together, or are known in part: who ended first or stands, and
who only waited for it, is told, and where the traces do not tell, that is said."""

import dataclasses
import json

import pytest
from lib import jobs
from lib.jobs import Op
from lib.tool import told, worse_than_notes

SECOND = 10**9 // jobs.STEP_NS  # in places of a program
LATER = 60 * SECOND  # the collective after a long pause, which all ranks made
ANY = type("Any", (), {"__eq__": lambda self, other: True, "__repr__": lambda self: "any"})()


def closed(until):
    return "closed", until


def killed(until):
    return "recovered", until


def crashed(ends, hosts=None, clocks_s=None):
    """Returns a job whose ranks all did the same. `ends`: for each rank, how it ended and at which place in the program."""
    job = jobs.healthy(4, 12, 4, [[0, 1, 2, 3]], point_to_point=False)
    for number, (rank, (end, until)) in enumerate(zip(job.ranks, ends)):
        rank.end, rank.until, rank.host = end, until, hosts[number] if hosts else 0
        rank.clock_ns = clocks_s[number] * 10**9 if clocks_s else 0
    return job


def one_more(at, ranks, job):
    """These ranks make a call more."""
    for rank in ranks:
        job.ranks[rank].ops.append(Op("ncclAllReduce", at, 5, 0, "float32", "sum"))
    return job


def one_fewer(rank, job):
    del job.ranks[rank].ops[-1]
    return job


def in_a_copy(since, first, ahead, last=600_000):
    """Rank 0 stands in a copy from `since` to `last`, when it and rank 2 are killed; rank 1 ended
    before, as `first` says, and had called `ahead` collectives more than rank 0."""
    job = jobs.healthy(3, 12, 4, [[0, 1, 2]], point_to_point=False)
    for rank in job.ranks:
        rank.end, rank.until = killed(last)
    job.ranks[1].end, job.ranks[1].until = first
    job.ranks[0].inside = [Op("cudaMemcpyAsync", since, 408)]
    for rank in job.ranks[1:]:
        rank.ops += [Op("ncclAllGather", 4990, 64, 0, "float32")] * ahead
    return job


def in_a_copy_on_two_hosts():
    """Rank 1 is killed 1.5 s before the others, which stand in a copy. Clocks of two hosts are known to a second."""
    job = in_a_copy(4995, killed(5000), 0, 20_000)
    job.ranks[2].inside, job.ranks[2].host = job.ranks[0].inside, 1
    return job


def of_reductions(ranks, places, more=()):
    """All-reduces of all ranks at these places. `more`: by rank, its other calls, and how and when it ended."""
    job = jobs.Job([list(range(ranks))], [], 11)
    ops = [Op("ncclAllReduce", at, 64, 0, "float32", "sum") for at in places]
    job.ranks = [jobs.Rank(list(ops), [0]) for _ in range(ranks)]
    for rank, fields in more:
        job.ranks[rank] = dataclasses.replace(job.ranks[rank], **fields)
    return job


def paused(ranks, more, places=(1, 2, 3, LATER)):
    return of_reductions(ranks, places, more.items())


REDUCED = [Op("ncclAllReduce", at, 64, 0, "float32", "sum") for at in (1, 2, 3, LATER)]
SEND = Op("ncclSend", LATER, 64, 0, "float32", peer=1)


def known_until(seconds, ops=REDUCED[:3], **more):
    return {"ops": list(ops), "end": "snapshot", "until": round(seconds * SECOND)} | more


def in_the_last(until_s, end="recovered", call=REDUCED[3]):
    return {"ops": REDUCED[:3], "inside": [call], "end": end, "until": until_s * SECOND}


def ended(until_s, end="recovered", ops=REDUCED):
    return {"ops": list(ops), "end": end, "until": until_s * SECOND}


def came_late(at_s):
    """All run, and were seen after 200 s: rank 1 is in the call that the others made after 60 s."""
    inside = in_the_last(200, "snapshot", dataclasses.replace(REDUCED[3], at=at_s * SECOND))
    return paused(3, dict.fromkeys((0, 2), ended(200, "snapshot")) | {1: inside})


def went_on(next_s):
    after = Op("ncclAllReduce", LATER + next_s * SECOND, 32, 0, "float32", "sum")
    rest = dict.fromkeys((0, 2), ended(200, ops=[*REDUCED, after]))
    return paused(3, rest | {1: in_the_last(100, "snapshot")})


def received(at_s):
    receive = Op("ncclRecv", LATER + at_s * SECOND, 64, 0, "float32", peer=0)
    return paused(2, {0: in_the_last(100, "snapshot", SEND), 1: ended(200, ops=[*REDUCED[:3], receive])})


def stood(last):
    """Two killed ranks stood for a minute: rank 1 called one collective more than rank 0, which then made this call."""
    ops = [dataclasses.replace(op, at=at) for op, at in zip(REDUCED, (1, 2, 3, 5))]
    return paused(2, {0: ended(60, ops=[*ops[:3], Op(last, 4, 64)]), 1: ended(60, ops=ops)})


def one_call_too_many(count):
    last = Op("ncclAllReduce", 5, count, 0, "float32", "sum")
    return paused(2, {0: ended(60, ops=REDUCED[:3]), 1: ended(60, ops=[*REDUCED[:3], last])})


def both_send(lost):
    """Each of two ranks is in a send to the other; or one, whose peer's lines are not all there."""
    job = jobs.healthy(2, 12, 4, [[0, 1]], point_to_point=False)
    for rank in job.ranks:
        rank.end, rank.until = killed(65_000)
    job.ranks[1].inside = [Op("ncclSend", 5000, 64, 0, "float32", peer=0)]
    if lost:
        job.ranks[0].dropped = lost
    else:
        job.ranks[0].inside = [Op("ncclSend", 5000, 64, 0, "float32", peer=1)]
    return job


APART = [closed(5000), killed(95_000), closed(90_000), killed(99_000)], [0, 0, 1, 1]  # on two hosts
BLAMELESS = dict.fromkeys((0, 2), in_the_last(100))
# The job; kind, ranks and number of each finding that is worse than a note; values that the first one tells.
JOBS = {
    "two with an exception, before the launcher ended the others":
        (crashed([closed(5000), closed(5100), killed(9000), killed(9010)]), [("stopped", [0, 1], ANY)], "00:00:00.5", "400.00 ms"),
    # The last sign of life of a killed rank is up to half a second older than its end.
    "nothing tells": (crashed([closed(5000)] * 2 + [killed(4000)] * 2), [("stopped", [0, 1, 2, 3], ANY)], "00:00:00.500"),
    # The others are quiet behind its end, as they wait for it until the launcher ends them.
    "one at work": (crashed([killed(100)] + [killed(60_000)] * 3), [("stopped", [0], ANY)]),
    # No call was open, and all did as much; but nobody ends one rank of a job seconds before the others.
    "one between two calls": (crashed([killed(50_000)] * 3 + [killed(5000)]), [("stopped", [3], ANY)], "4.500 s"),
    "one killed, another closed later":
        (crashed([killed(50_000), closed(60_000), killed(90_000), killed(90_000)]), [("stopped", [0], ANY)]),
    "one within a call, to which another had not come":
        (one_more(3999, (0, 1, 3), crashed([killed(5000)] * 3 + [killed(4000)])), [("stopped", [0, 1, 2, 3], 12)], "rank 2"),
    # Counts tell apart who left before a collective, and who left with that collective's error.
    "one a moment before another":
        (one_fewer(1, crashed([closed(5000), closed(100), killed(5500), killed(5500)])), [("stopped", [1], 11)], "ranks 0,1"),
    "one a call behind which the others were ended":
        (one_more(4999, (0,), crashed([closed(5000)] + [killed(9000)] * 3)), [("stopped", [0], 12)], "ranks 1-3"),
    "on two hosts with one clock": (crashed(*APART), [("stopped", [0], ANY)]),
    # With clocks an hour apart, each of the two hosts has its own rank that ended first.
    "on two hosts, one an hour behind": (crashed(*APART, [0, 0, -3600, -3600]), [("stopped", [0, 2], ANY)]),
    "on two hosts, one an hour ahead": (crashed(*APART, [0, 0, 3600, 3600]), [("stopped", [0, 2], ANY)]),
    # Somebody ends a job that hangs: which rank the signal reaches first is not why it stood.
    "all stood before the first ended":
        (crashed([killed(420_000)] * 3 + [killed(400_000)]), [("stopped", [3], ANY)], "39.9", "2.000 s"),
    # Its copy comes after a collective that needs rank 1, which left a moment before or after it.
    **{
        f"one left, {end}, and another's device waits for it since {since}, {ahead} behind":
            (in_a_copy(since, (end, 5000), ahead), [("stopped", [1], ANY)], "59.500 s")
        for end in ("closed", "recovered") for since in (4995, 5100) for ahead in (0, 1)
    },
    **{
        f"one stands in a copy: {name}": (in_a_copy(since, first, ahead), [("hang", [0], ANY)])
        for name, since, first, ahead in (
            ("for 20 s when another gave up", 5000, closed(205_000), 1),
            ("for 20 s when another was killed", 5000, killed(205_000), 1),
            ("another had long been through", 205_000, closed(5000), 0),
            ("all were killed together", 5000, killed(600_000), 1),
        )
    },
    "others stand in a copy, one of them on another host": (in_a_copy_on_two_hosts(), [("stopped", ANY, ANY)], "rank 1"),
    "all were killed within half a second": (in_a_copy(5900, killed(6000), 1, 6000), [("stopped", [0, 1, 2], ANY)]),
    "one fell silent first within half a second":
        (in_a_copy(5900, killed(5000), 1, 6000), [("stopped", [0, 1, 2], ANY)], "rank 1", "100.00 ms"),
    # A snapshot tells what was until then, and nothing of what came later.
    **{
        f"an old snapshot, others {how}":
            (paused(3, dict.fromkeys((0, 2), ended(100, how)) | {1: known_until(40)}),
             ([("not_closed", [0, 2], ANY)] if how == "recovered" else []))
        for how in ("closed", "recovered", "snapshot")
    },
    **{
        f"others stand, an old snapshot on a clock {clock_s} s ahead":
            (paused(3, BLAMELESS | {1: known_until(40, **({"host": 1, "clock_ns": clock_s * 10**9} if clock_s else {}))}),
             [("hang", [0, 2], 3)], *([] if clock_s < 0 else ["00:40.000"]))
        for clock_s in (0, -3600, 3600)
    },
    **{
        f"not there {beyond} s behind a collective, others {how}":
            (paused(3, dict.fromkeys((0, 2), in_the_last(200, how)) | {1: known_until(60 + beyond)}), [("hang", ranks, 3)])
        for how in ("recovered", "snapshot") for beyond, ranks in ((-1, [0, 2]), (29, [0, 2]), (31, [1]))
    },
    # A rank that came lately may go on, whatever it did before.
    **{
        f"came {ago} s ago, after a pause": (came_late(200 - ago), found)
        for ago, found in ((5, []), (29, []), (31, [("hang", [1], 3)]))
    },
    "inside by a snapshot, and others went on by then": (went_on(1), [("hang", [1], 3)]),
    "inside by a snapshot, and others went on later": (went_on(50), [("not_closed", [0, 2], ANY)]),
    "a send to one who may have come": (paused(2, {0: in_the_last(200, call=SEND), 1: known_until(40)}), [("hang", [0], ANY)]),
    "a send to one who has not come": (paused(2, {0: in_the_last(200, call=SEND), 1: known_until(100)}), [("hang", [1], ANY)]),
    "in a send by a snapshot that was received by then": (received(1), [("hang", [0], ANY)]),
    "in a send by a snapshot that was received later": (received(50), [("not_closed", [1], ANY)]),
    **{
        f"first of those whose end is known, {until}":
            (paused(3, {0: ended(70), 2: ended(100), 1: known_until(until, REDUCED[: 3 + (until > 60)])}), [("stopped", [0], ANY)])
        for until in (40, 90)
    },
    # A host that reads from its device may wait for it, and is not blamed alone. cudaMemcpy is to the host in these jobs.
    "behind a copy to the host": (stood("cudaMemcpy"), [("hang", [0], 3)], "its host may wait for its device"),
    "behind a copy to the device": (stood("cudaMemcpyAsync"), [("hang", [0], 3)]),
    "behind a call that others made before": (one_call_too_many(64), [("hang", [0], 3)]),
    "behind a call that nobody ever made": (one_call_too_many(4096), [("hang", [0], 3)], "a call too many", "16.00 KiB"),
    "two that send to each other": (both_send({}), [("hang", [0, 1], ANY)]),
    # Rank 0 called the receive, or not: its lines do not tell.
    "a send whose receive may have no line": (both_send({"ring": 1}), [("hang", [1], ANY)]),
    "a send whose receive may be behind the quota": (both_send({"quota": 9}), [("hang", [1], ANY)]),
}  # fmt: skip
BESIDE = ("snapshot", "dropped")  # said of any such job


def values_of(finding):
    return "\n".join([finding["text"], *finding["evidence"]])


@pytest.mark.parametrize("name", JOBS)
def test_who_ended_first_or_stands_is_named(name, tmp_path):
    job, expected, *values = JOBS[name]
    folder = job.write(tmp_path / "job")
    worse = [f for f in worse_than_notes(folder) if f["kind"] not in BESIDE]
    found = sorted((f["kind"], f["ranks"], f["seq"]) for f in worse)
    assert [of[:2] for of in found] == [of[:2] for of in sorted(expected, key=str)]
    for first, (_, _, seq) in zip(worse, expected):
        assert first["seq"] == seq
        assert first["severity"] == ("error" if first["kind"] == "hang" else "warning")
    assert [value for value in values if value not in values_of(worse[0])] == []
    if worse:
        told_of = told("report", folder)[1]
        assert told_of["findings"][told_of["verdict"]["finding"]]["kind"] in {of[0] for of in found} | {*BESIDE}


QUIET = {"together": [50_000] * 4, "one a moment before": [50_000, 50_000, 50_000, 49_000]}


@pytest.mark.parametrize("ends", QUIET.values(), ids=QUIET)
def test_for_how_long_a_job_had_stood_still_is_told_after_it_was_killed(tmp_path, ends):
    """Its last call ended 1.2 ms after its begin, and it was killed 5 s after that. In which order signals then came to
    the ranks says nothing."""
    job = crashed([killed(until) for until in ends])
    last = job.ranks[0].ops[-1]
    code, found = told("check", job.write(tmp_path / "job"))
    (finding,) = found["findings"]
    assert (finding["kind"], finding["severity"], code) == ("not_closed", "note", 0)
    quiet = f"{(min(ends) * jobs.STEP_NS - last.at * jobs.STEP_NS - 5_000) / 1e9:.3f} s"
    assert quiet in finding["text"] and f"{last.function}, collective 11 of communicator {job.id(0)}" in finding["text"]
    assert quiet in told("report", tmp_path / "job")[1]["verdict"]["text"]


@pytest.mark.parametrize("before, said", [(1000, True), (100, False)])
def test_who_was_last_heard_of_first_is_said_and_nothing_made_of_it(tmp_path, before, said):
    """One rank was last heard of 0.1 s before the others, but a sign of life may be that old."""
    code, found = told("check", crashed([killed(5000)] * 3 + [killed(5000 - before)]).write(tmp_path / "job"))
    (finding,) = found["findings"]
    assert (code, finding["kind"], finding["severity"], finding["ranks"]) == (0, "not_closed", "note", [0, 1, 2, 3])
    assert ("100.00 ms" in json.dumps(finding["evidence"])) == said
    verdict = told("report", tmp_path / "job")[1]["verdict"]
    assert (verdict["severity"], verdict["finding"], "100.00 ms" in verdict["text"]) == ("note", 0, said)


def test_a_job_that_closed_is_all_right(tmp_path):
    assert told("report", crashed([closed(5000)] * 4).write(tmp_path / "job"))[1]["verdict"]["finding"] is None

"""tprof check where there is much of one kind: it always says the same, briefly, and soon."""

import collections
import dataclasses
import os
import random

import pytest
from lib import faults, handmade, jobs
from lib.tool import tprof, worse_than_notes


def pairs(ranks, operations=12, seed=5):
    """Makes a job on the world and on its ranks two by two: half as many pairs as ranks."""
    comms = [list(range(ranks)), *([r, r + 1] for r in range(0, ranks, 2))]
    return jobs.healthy(ranks, operations, seed, comms, point_to_point=False)


def held_up_in_pairs(ranks):
    """Makes a job in which each pair is in a call of its own, from which one rank does not return."""
    job = pairs(ranks)
    for rank in job.ranks:
        rank.end, rank.until = "recovered", 70_000
    for rank in range(0, ranks, 2):
        call = jobs.Op("ncclAllReduce", 900, 5, 1 + rank // 2, "float32", "sum")
        job.ranks[rank].inside = [call]
        job.ranks[rank + 1].ops.append(call)
    return job


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_order_of_the_files_changes_no_byte(tmp_path, form):
    """Where there are more places than are shown, the same ones are shown."""
    files = sorted(held_up_in_pairs(40).write(tmp_path / "job").iterdir())
    rng = random.Random(3)
    printed = set()
    for _ in range(12):
        rng.shuffle(files)
        printed.add(tprof("check", *files, *form).stdout)
    assert len(printed) == 1


def rank_dependent_sizes(ranks, like=1):
    """Makes a job whose third collective on the world has another size for every `like` ranks."""
    job = jobs.healthy(ranks, 9, 2, [list(range(ranks))], point_to_point=False)
    for rank in range(ranks):
        i = faults.index_of(job, rank, 0, 2)
        count = 1000 + rank // like
        job.ranks[rank].ops[i] = dataclasses.replace(job.ranks[rank].ops[i], count=count)
    return job


@pytest.mark.parametrize("lines", [True, False])
def test_one_mismatch_is_one_finding_however_many_groups(tmp_path, lines):
    folder = rank_dependent_sizes(48, like=2).write(tmp_path / "job")
    (finding,) = worse_than_notes(folder, *([] if lines else ["--no-lines"]))
    assert (finding["kind"], finding["ranks"]) == ("mismatch", list(range(48)))
    assert "ranks 2-47 issued 9 collectives as ranks 0,1 did, but not the same ones" in finding["text"]
    told = " ".join(finding["evidence"])
    assert "they also differ among themselves, in 23 ways: this shows ranks 2,3" in told
    assert finding["between"] == ([2, 3] if lines else [2, 4])
    assert not lines or ("rank 2, 2: " in told and "rank 0, 2: " in told)


def test_groups_that_part_at_the_same_place_are_one_finding(tmp_path):
    job = jobs.healthy(8, 9, 2, [list(range(8))], point_to_point=False)
    bad = faults.plant_count(faults.plant_function(job, 5, 0, 4), 2, 0, 4)
    (finding,) = worse_than_notes(bad.write(tmp_path / "job"))
    assert (finding["ranks"], finding["seq"]) == ([2, 5], 4)


def test_lost_ranks_are_one_finding(tmp_path):
    job = jobs.healthy(8, 20, 2)
    for rank in (1, 2, 5):
        job.ranks[rank].end = "lost"
    (finding,) = worse_than_notes(job.write(tmp_path / "job"))
    assert (finding["kind"], finding["ranks"]) == ("lost", [1, 2, 5])
    assert "ranks 1,2,5 did not close" in finding["text"] and "are exact until" in finding["text"]


def test_what_many_files_say_is_said_of_some_and_counted(tmp_path):
    job = jobs.healthy(40, 9, 2, [list(range(40))], point_to_point=False)
    for rank in range(1, 40):
        job.ranks[rank].no_line = {faults.index_of(job, rank, 0, 3)}
    findings = worse_than_notes(job.write(tmp_path / "job"))
    assert [f["ranks"] for f in findings[:-1]] == [[rank] for rank in range(1, 17)]
    assert {f["kind"] for f in findings} == {"seq_gap"}
    assert findings[-1]["text"] == "and 23 more findings of kind seq_gap: ranks 17-39"
    assert findings[-1]["ranks"] == list(range(17, 40))


def one_call_on_each(comms, rank, how):
    """The file of a rank that called one collective on each of many communicators, where rank 1 differs or
    was killed."""
    numbers = range(1, comms + 1)
    made = [handmade.comm(comm=n, id=f"{n:016x}", rank=rank) for n in numbers]
    calls = [handmade.event(ts=n, args={**handmade.event()["args"], "comm": n}) for n in numbers]
    mark = f"{7 if how == 'differs' and rank == 1 else 5:016x}"
    done = [{"comm": n, "collectives": 1, "signature": mark, "marks": [mark]} for n in numbers]
    if how == "fewer" and rank == 1:
        done = [{"comm": n, "collectives": 0, "signature": "0" * 16, "marks": []} for n in numbers]
    rows = [handmade.row(comm=n) for n in numbers]
    end = [] if how == "killed" else [*made, handmade.footer()]
    lines = [handmade.header(rank=rank, pid=rank + 1), *made, *calls, handmade.ledger(*rows, comms=done), *end]
    text = handmade.array(*lines)
    return text.removesuffix("\n]\n") + ",\n" if how == "killed" else text


CODES = {"alike": 0, "differs": 1, "fewer": 1, "killed": 1}


@pytest.mark.parametrize("how", CODES)
def test_time_grows_with_the_number_of_communicators_and_not_with_its_square(tmp_path, how):
    took = collections.Counter()
    for comms in (1_000, 4_000):
        for rank in (0, 1):
            (tmp_path / f"{comms}").mkdir(exist_ok=True)
            (tmp_path / f"{comms}/rank-{rank}.json").write_text(one_call_on_each(comms, rank, how))
        for lines in ([], ["--no-lines"]):
            before = os.times()
            assert tprof("check", *lines, tmp_path / f"{comms}").returncode == CODES[how]
            after = os.times()
            spent = after.children_user + after.children_system - before.children_user - before.children_system
            took[comms, bool(lines)] = spent
    for lines in (False, True):
        assert took[4_000, lines] <= 6 * took[1_000, lines] + 0.1

"""`tprof diff` names the ranks that hold up the others in one of two runs alone."""

import pytest
from generator import habits, rank_files
from generator.loop import MS, Loop
from lib.days import days, diff, made
from lib.thorough import ALL
from lib.tool import told, tprof

JOB = Loop(ranks=4, layers=4, steps=43, jitter=0.01)
MANY = 5 if ALL else 3
SLEEPS = {"stalls": {2: 60 * MS}}


def job(folder, seed=0, **fields):
    rank_files.write(habits.run(JOB.but(seed=seed, **fields)), folder)
    return folder


def only_in_one(a, b):
    """Returns who is told, after a look at whether the text has the same findings in the same words."""
    found = diff(a, b)["slow_ranks"]
    lines = tprof("diff", a, b).stdout.splitlines()
    said = [line for line in lines if line.startswith(("In A, but not in B: ", "In B, but not in A: "))]
    assert said == [f"In {f['only_in']}, but not in {'A' if f['only_in'] == 'B' else 'B'}: {f['text']}" for f in found]
    assert not said or lines[1] == said[0]
    return [(f["only_in"], f["kind"], f["ranks"]) for f in found]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("slow_cpu", {**SLEEPS, "stalls_every": 7}),
        ("slow_cpu", SLEEPS),
        ("slow_cpu", {**SLEEPS, "stalls_at_update": True}),
        ("slow_input", {"loader": {2: 60 * MS}}),
        ("slow_gpu", {"gpu": {2: 1.5}}),
    ],
)
def test_a_slow_rank_is_named_with_the_words_of_the_report(kind, fields, tmp_path):
    a, b = job(tmp_path / "a"), job(tmp_path / "b", seed=1, **fields)
    assert only_in_one(a, b) == [("B", kind, [2])]
    assert only_in_one(b, a) == [("A", kind, [2])]
    (found,) = diff(a, b)["slow_ranks"]
    _, report = told("report", b)
    (same,) = (f for f in report["findings"] if f["kind"] == kind)
    assert (found["text"], found["cost"]) == (same["text"], same["cost"])
    assert f"\nNext: tprof report {b} " in tprof("diff", a, b).stdout
    # It is a note.
    assert tprof("diff", a, b).returncode == 0


def test_what_both_runs_have_is_no_difference(tmp_path):
    every_7th = {**SLEEPS, "stalls_every": 7}
    a, b = job(tmp_path / "a", **every_7th), job(tmp_path / "b", seed=1, **every_7th)
    assert only_in_one(a, b) == []
    longer = job(tmp_path / "c", seed=1, stalls={2: 150 * MS}, stalls_every=7)
    assert only_in_one(a, longer) == []
    elsewhere = job(tmp_path / "d", seed=1, stalls={1: 60 * MS}, stalls_every=7)
    assert only_in_one(a, elsewhere) == [("B", "slow_cpu", [1]), ("A", "slow_cpu", [2])]


def test_ranks_that_are_slow_by_chance_are_not_told(tmp_path):
    """Garbage collection stops each rank now and then: some of them happens to have most of it."""
    pauses = {"pauses_ns": 60 * MS, "pauses": 0.03, "ranks": 2}
    jobs = [job(tmp_path / str(seed), seed=seed, **pauses) for seed in range(MANY)]
    kinds = [f["kind"] for of in jobs for f in told("report", of)[1]["findings"]]
    assert "slow_cpu" in kinds  # a report tells what it saw
    assert [only_in_one(a, b) for a in jobs for b in jobs] == [[]] * MANY**2


def test_a_rank_that_is_slow_in_many_steps_is_no_chance(tmp_path):
    a, b, case = days(tmp_path, "fsdp", "slow_sometimes", seed=3, ranks=2, steps=48)
    (found,) = only_in_one(a, b)
    assert found[0] == "B" and found[2] == case.truth.ranks
    healthy, _ = made(tmp_path / "c", "fsdp", seed=3, ranks=2, steps=48, again=7, like="slow_sometimes")
    assert only_in_one(a, healthy) == []


def test_a_rank_that_is_slow_in_every_fifth_step_is_named_though_another_writes_checkpoints(tmp_path):
    """In some of these steps rank 0 writes its checkpoint, and then the others wait for rank 0."""
    both = {
        "ranks": 2, "steps": 60, "jitter": 0.05, "pauses_ns": 30 * MS, "pauses": 0.03,
        "checkpoint": "barrier", "checkpoint_every": 25, "checkpoint_ns": 1400 * MS,
    }  # fmt: skip
    a, again = job(tmp_path / "a", **both), job(tmp_path / "again", seed=2, **both)
    b = job(tmp_path / "b", seed=1, stalls={1: 400 * MS}, stalls_every=5, **both)
    assert only_in_one(a, b) == [("B", "slow_cpu", [1])]
    assert only_in_one(a, again) == []


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_slow_in_many_steps_is_named_though_one_is_now_and_then_in_the_other_run(rank, tmp_path):
    """Each fifth forward pass where a step here is one of two micro-batches: 2,5,7,10,… has no regular distance.
    In both runs rank 0 writes checkpoints, and the others go on."""
    both = {"ranks": 2, "steps": 41, "jitter": 0.05, "pauses_ns": 20 * MS, "pauses": 0.03}
    both |= {"checkpoint": "first", "checkpoint_every": 15, "checkpoint_ns": 50 * MS}
    slow = {"stalls": {rank: 150 * MS}, "stalls_steps": tuple(step for five in range(0, 41, 5) for step in (five + 2, five + 5))}
    a, again, b = (job(tmp_path / name, seed=i, **both, **how) for i, (name, how) in enumerate((("a", {}), ("again", {}), ("b", slow))))
    assert "slow_cpu" in [f["kind"] for f in told("report", a)[1]["findings"]]
    assert only_in_one(a, b) == [("B", "slow_cpu", [rank])]
    assert only_in_one(a, again) == []


def test_one_step_far_longer_than_any_other_is_told_with_the_rank_that_holds_it_up(tmp_path):
    pauses = {"pauses_ns": 60 * MS, "pauses": 0.03}
    a = job(tmp_path / "a", **pauses)
    b = job(tmp_path / "b", seed=1, checkpoint_every=30, checkpoint="barrier", checkpoint_ns=3000 * MS, **pauses)
    assert only_in_one(a, b) == [("B", "long_steps", [0, 1, 2])]
    # The checkpoint is in step 29; the others are the pauses that habits.py draws, but for one of two ranks in a step.
    by = ", held up by rank 0 in steps 10,29,30, rank 2 in steps 19,36 and rank 1 in steps 3,5, "
    assert by in diff(a, b)["slow_ranks"][0]["text"]


def test_of_runs_that_cannot_be_compared_nothing_is_said(tmp_path):
    a, b = job(tmp_path / "a"), job(tmp_path / "b", **SLEEPS)
    untimed = tmp_path / "c"
    rank_files.write(habits.run(JOB), untimed, settings=rank_files.Settings(timing=False))
    for options in [(a, b, "--no-lines"), (a, b, "--steps", "2-9"), (untimed, b), (a, untimed)]:
        assert diff(*options)["slow_ranks"] is None

"""`tprof budget` with a budget of another run: what came more often, bigger or beside it is told, and a job that is
only longer, or has its evaluations elsewhere, is within."""

import dataclasses
import json
import random

import pytest
from lib import loops
from lib.loops import BATCH, Loop, Shape
from lib.tool import told, tprof

ACCUMULATING = Shape(steps=20, accumulate=4, no_sync=True)
BUCKETS = (37248, 33088, 33088, 4160)
DDP = ("--model", "ddp", "--params", sum(BUCKETS), "--dtype", "fp32")


def write(loop, folder):
    return loop.job.write(folder)


def budget_of(folder):
    file = folder.parent / f"{folder.name}.budget.json"
    done = tprof("budget", folder, "--write", file)
    assert (done.returncode, done.stderr) == (0, "")
    return file


def last_line(*arguments):
    done = tprof("budget", *arguments)
    return done.returncode, done.stdout.splitlines()[-1]


def accumulated(steps=20, every_micro_batch=lambda loop: None, every_step=lambda loop, step: None):
    """DDP with four micro-batches, of which the last reduces. Steps are counted from 1."""
    loop = Loop([[0, 1]])
    for step in range(1, steps + 1):
        loop.step()
        for _ in range(4):
            loop.micro_batch()
            every_micro_batch(loop)
        for bucket in BUCKETS if step > 1 else [sum(BUCKETS)]:
            loop.reduce(bucket)
        every_step(loop, step)
    return loop


# How often gradients are reduced.


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_step_that_may_be_a_micro_batch_of_the_budgets_is_asked_for(kind, tmp_path):
    good = write(getattr(loops, kind)(ACCUMULATING), tmp_path / "good")
    bad = write(getattr(loops, kind)(dataclasses.replace(ACCUMULATING, no_sync=False)), tmp_path / "bad")
    file = budget_of(good)
    done = tprof("budget", bad, "--budget", file)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stdout
    assert "whether the 80 repeats are steps or micro-batches" in done.stderr
    assert "a step of the budget has the work of 4 of them" in done.stderr
    assert "if 4 make a step, not everything is" in done.stderr and "makes the same calls 4 times" in done.stderr
    for options in (("--micro-batches", 4), ("--steps", 20)):
        code, report = told("budget", bad, "--budget", file, *options)
        assert code == 1 and any("makes the same calls 4 times" in said for said in report["explained_by"])
        assert report["may_be_micro_batches"] is False
    if kind == "ddp":  # whoever says that these are steps is believed
        for options in (("--micro-batches", 1), ("--steps", 80)):
            assert last_line(bad, "--budget", file, *options) == (0, "Within the budget.")
    assert last_line(good, "--budget", file) == (0, "Within the budget.")


def test_a_model_is_met_only_if_what_repeats_is_a_step(tmp_path):
    bad = write(loops.ddp(dataclasses.replace(ACCUMULATING, no_sync=False)), tmp_path / "bad")
    code, line = last_line(bad, *DDP)
    assert code == 0 and line.startswith("Within the budget, if the 80 repeats are steps and not micro-batches")
    assert tprof("budget", bad, *DDP).stdout.startswith("Each of ranks 0,1 in a step, or a micro-batch of one, ")
    assert told("budget", bad, *DDP)[1]["may_be_micro_batches"] is True
    assert last_line(bad, *DDP, "--steps", 80) == (0, "Within the budget.")
    assert tprof("budget", bad, *DDP, "--steps", 20).returncode == 1
    good = write(loops.ddp(dataclasses.replace(ACCUMULATING, copies=3)), tmp_path / "good")
    assert last_line(good, *DDP) == (0, "Within the budget.")


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_steps_of_one_micro_batch_that_are_as_in_the_budget_are_within(kind, tmp_path):
    made = getattr(loops, kind)
    file = budget_of(write(made(Shape(steps=20)), tmp_path / "good"))
    assert last_line(write(made(Shape(steps=33)), tmp_path / "longer"), "--budget", file) == (0, "Within the budget.")


def test_a_budget_by_hand_does_not_tell_steps_from_micro_batches(tmp_path):
    bad = write(loops.ddp(dataclasses.replace(ACCUMULATING, no_sync=False)), tmp_path / "bad")
    file = tmp_path / "b.json"
    rows = [{"bucket": "ALLREDUCE", "bytes_per_step": {"max": 4 * sum(BUCKETS)}}]
    file.write_text(json.dumps({"schema": "tprof-budget/1", "rows": rows}))
    code, line = last_line(bad, "--budget", file)
    assert code == 0 and "if the 80 repeats are steps" in line


# Calls of some steps only.


def test_copies_of_evaluations_and_checkpoints_are_in_no_step(tmp_path):
    def beside(loop, step):
        if step == 2:
            loop.copy("cudaMemcpy", 512)
        if step % 10 == 0:
            loop.copy("cudaMemcpyAsync", 12 * BATCH)
            loop.copy("cudaMemcpy", 1 << 20, [0])

    file = budget_of(write(accumulated(20, every_step=beside), tmp_path / "good"))
    shorter = write(accumulated(13, every_step=beside), tmp_path / "shorter")
    code, report = told("budget", shorter, "--budget", file)
    assert (code, report["explained_by"]) == (0, [])
    (copies,) = [row for row in report["rows"] if row["bucket"] == "H2D"]
    assert (copies["calls"], copies["bytes"]) == (4, 4 * BATCH)
    assert not [row for row in report["rows"] if row["bucket"] == "D2H"]
    seldom = "the figures leave out D2H, as only a few steps have any"
    assert [note for note in report["notes"] if "only a few steps" in note] == [seldom]

    more = write(accumulated(20, lambda loop: loop.copy("cudaMemcpyAsync", 640)), tmp_path / "more")
    code, report = told("budget", more, "--budget", file)
    assert code == 1
    assert report["explained_by"] == ["H2D: 2.50 KiB a step more than expected, and no known mistake explains it"]


@pytest.mark.parametrize("every", [2, 3])
def test_copies_that_come_in_every_other_step_are_in_the_budget(every, tmp_path):
    def beside(loop, step):
        if step % every == 0:
            loop.copy("cudaMemcpy", 4096)

    file = budget_of(write(accumulated(20, every_step=beside), tmp_path / "good"))
    for steps in range(20, 20 + 2 * every):
        longer = write(accumulated(steps, every_step=beside), tmp_path / f"{steps}")
        assert last_line(longer, "--budget", file) == (0, "Within the budget.")


def test_batches_of_any_size_are_within(tmp_path):
    def job(seed):
        rng = random.Random(seed)
        return accumulated(40, lambda loop: loop.copy("cudaMemcpyAsync", 4 * rng.randrange(1000, 16000)))

    file = budget_of(write(job(1), tmp_path / "good"))
    for seed in range(2, 8):
        assert last_line(write(job(seed), tmp_path / f"{seed}"), "--budget", file) == (0, "Within the budget.")


def in_steps(*steps, count=65536, times=1):
    """Each of these steps makes all-gathers beside the reductions of all."""

    def beside(loop, step):
        if step in steps:
            for _ in range(times):
                loop.gather(count)

    return beside


def test_collectives_that_only_other_steps_make_are_told(tmp_path):
    good = write(accumulated(20), tmp_path / "good")
    some = write(accumulated(20, every_step=in_steps(4, 11, 18)), tmp_path / "some")
    said = "steps 4,11,18 have 1 ncclAllGather of float32 more, of 512.00 KiB"  # of 2 x 65,536
    known = budget_of(good)
    unknown = tmp_path / "unknown.json"  # as budgets were that knew nothing of other steps
    unknown.write_text(json.dumps({k: v for k, v in json.loads(known.read_text()).items() if k != "kinds"}))
    for options in (("--budget", known), ("--budget", unknown), DDP):
        code, report = told("budget", some, *options)
        never = known in options
        assert (code, report["within"], len(report["explained_by"])) == (never, not never, never)
        # DDP's first step has one bucket of all.
        assert any(note.startswith("the figures leave out 4 steps with unusual coll") for note in report["notes"])
        assert report["other_steps"] == [
            {"steps": [4, 11, 18], "bucket": "ALLGATHER", "function": "ncclAllGather", "dtype": "float32", "calls": 1}
            | {"bytes": 524288, "in_run": "never" if never else None}
        ]
        code, report = told("budget", good, *options)
        assert (code, report["other_steps"]) == (0, [])
    assert told("budget", some, "--budget", known)[1]["explained_by"] == [
        "steps 4,11,18 have 1 ncclAllGather of float32 more, of 512.00 KiB, which is in no step of the run that the "
        "budget is from"
    ]
    assert last_line(some, "--budget", known) == (1, "Not within the budget.")
    within = f"The usual step is within the budget; 3 other steps make more: {said}."
    assert last_line(some, "--budget", unknown) == (0, within)
    assert last_line(good, "--budget", unknown) == (0, "Within the budget.")
    allow = tmp_path / "allow.json"
    allow.write_text(json.dumps(json.loads(known.read_text()) | {"others": "allow"}))
    assert tprof("budget", some, "--budget", allow).returncode == 0


def test_other_steps_of_the_budgets_run_may_come_as_often_as_they_like(tmp_path):
    file = budget_of(write(accumulated(20, every_step=in_steps(7, 14, times=3)), tmp_path / "good"))
    longer = write(accumulated(50, every_step=in_steps(*range(5, 50, 5), times=3)), tmp_path / "longer")
    assert last_line(longer, "--budget", file) == (0, "Within the budget.")
    # Sizes of an evaluation vary a little.
    smaller = write(accumulated(20, every_step=in_steps(7, 14, count=60000, times=3)), tmp_path / "smaller")
    assert last_line(smaller, "--budget", file) == (0, "Within the budget.")
    # It may have another number of batches, which nobody can tell from calls that should not be.
    fewer = write(accumulated(20, every_step=in_steps(8, 16, times=2)), tmp_path / "fewer")
    assert last_line(fewer, "--budget", file) == (
        0,
        "The usual step is within the budget; 2 other steps make more, unlike any in the budget's run: steps 8,16 "
        "have 2 ncclAllGather of float32 more, of 1.00 MiB together.",
    )
    larger = write(accumulated(20, every_step=in_steps(8, 16, count=1 << 20, times=3)), tmp_path / "larger")
    code, report = told("budget", larger, "--budget", file)
    assert (code, report["explained_by"]) == (
        1,
        [
            "steps 8,16 have 3 ncclAllGather of float32 more, of 24.00 MiB together, a size that is in no step of "
            "the run that the budget is from"
        ],
    )


# Small calls.


def test_more_small_collectives_than_in_the_budget_are_over_it(tmp_path):
    def log(loop, step):
        if step % 10 == 0:
            loop.reduce(1)

    file = budget_of(write(accumulated(20, every_step=log), tmp_path / "good"))
    bad = write(accumulated(20, lambda loop: loop.reduce(1), log), tmp_path / "bad")
    code, report = told("budget", bad, "--budget", file)
    said = "ALLREDUCE: 4 small calls per step (of less than 16 KiB each), but the budget has none"
    assert (code, report["explained_by"]) == (1, [said])
    assert [(small["calls"], small["most_calls"]) for small in report["small"]] == [(4, 0)]
    allowed = json.loads(file.read_text()) | {"others": "allow"}
    file.write_text(json.dumps(allowed))
    code, report = told("budget", bad, "--budget", file)
    assert (code, report["explained_by"]) == (0, [said])
    assert told("budget", write(accumulated(13, every_step=log), tmp_path / "13"), "--budget", file)[0] == 0
    # A run whose steps all have them is the budget of such.
    assert last_line(bad, "--budget", budget_of(bad)) == (0, "Within the budget.")


def test_more_small_copies_than_in_the_budget_are_told_and_within(tmp_path):
    file = budget_of(write(accumulated(20), tmp_path / "good"))
    items = write(accumulated(20, lambda loop: loop.copy("cudaMemcpy", 4)), tmp_path / "items")
    code, report = told("budget", items, "--budget", file)
    assert (code, report["explained_by"]) == (0, [])
    assert "D2H: 4 small calls per step (of less than 64 B each), but the budget has none" in report["notes"]

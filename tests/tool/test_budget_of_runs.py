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
WITHIN = "Within the budget."


def run_of(folder, program):
    return Loop([[0, 1]]).run(program).job.write(folder)


def budget_of(folder):
    file = folder.parent / f"{folder.name}.budget.json"
    done = tprof("budget", folder, "--write", file)
    assert (done.returncode, done.stderr) == (0, "")
    return file


def last_line(*arguments):
    done = tprof("budget", *arguments)
    return done.returncode, done.stdout.splitlines()[-1]


def accumulated(steps=20, each=lambda: "", beside=lambda step: ""):
    """DDP with four micro-batches, of which the last reduces; `each` behind each of them, `beside` behind a step."""
    reduced = " ".join(f"r{bucket}" for bucket in BUCKETS)
    return "".join(
        "S " + "".join(f"b {each()} " for _ in range(4)) + (f"r{sum(BUCKETS)}" if step == 1 else reduced) + f" {beside(step)} "
        for step in range(1, steps + 1)
    )


def every(n, words, but=None):
    return lambda step: words if step % n == 0 else but[1] if but and step == but[0] else ""


def in_steps(*steps, count=65536, times=1):
    """Each of these steps makes all-gathers beside the reductions of all."""
    return lambda step: times * f"g{count} " if step in steps else ""


def batches(seed):
    rng = random.Random(seed)
    return accumulated(40, lambda: f"c{4 * rng.randrange(1000, 16000)}")


EVALUATIONS = every(10, f"c{12 * BATCH} d{1 << 20}", but=(2, "d512"))
SELDOM = "the figures leave out D2H, as only a few steps have any"
OTHERS = accumulated(20, beside=in_steps(7, 14, times=3))
LOGGING = every(10, "r1")
SMALL = "ALLREDUCE: 4 small calls per step (of less than 16 KiB each), but the budget has none"
ITEMS = "D2H: 4 small calls per step (of less than 64 B each), but the budget has none"
# the budget's run, another run, and what is said of it: how it is explained, a note, or the last line
RUNS = {
    **{f"it is longer: {step}": (20 * step, 33 * step, {"last": WITHIN}) for step in (
        "S b r37248 r33088 ", "S b g4160 g16544 g16544 | g16544 s16544 g16544 s16544 s4160 . ")},
    "evaluations and checkpoints copy": (accumulated(beside=EVALUATIONS), accumulated(13, beside=EVALUATIONS), {"note": SELDOM}),
    "each micro-batch copies more": (
        accumulated(beside=EVALUATIONS), accumulated(each=lambda: "c640"),
        {"explained": "H2D: 2.50 KiB a step more than expected, and no known mistake explains it"},
    ),
    **{f"each {n} steps copy, in {steps}": (accumulated(beside=every(n, "d4096")), accumulated(steps, beside=every(n, "d4096")),
                                            {"last": WITHIN}) for n in (2, 3) for steps in range(20, 20 + 2 * n)},
    **{f"batches of any size, seed {seed}": (batches(1), batches(seed), {"last": WITHIN}) for seed in range(2, 8)},
    "other steps come more often": (OTHERS, accumulated(50, beside=in_steps(*range(5, 50, 5), times=3)), {"last": WITHIN}),
    "sizes of an evaluation vary a little": (OTHERS, accumulated(beside=in_steps(7, 14, count=60000, times=3)), {"last": WITHIN}),
    # Nobody can tell them from calls that should not be.
    "an evaluation has fewer batches": (OTHERS, accumulated(beside=in_steps(8, 16, times=2)), {
        "last": "The usual step is within the budget; 2 other steps make more, unlike any in the budget's run: steps 8,16 "
                "have 2 ncclAllGather of float32 more, of 1.00 MiB together."}),
    "other steps gather more": (OTHERS, accumulated(beside=in_steps(8, 16, count=1 << 20, times=3)), {
        "explained": "steps 8,16 have 3 ncclAllGather of float32 more, of 24.00 MiB together, a size that is in no step of "
                     "the run that the budget is from"}),
    "each micro-batch reduces a number": (accumulated(beside=LOGGING), accumulated(each=lambda: "r1", beside=LOGGING),
                                          {"explained": SMALL}),
    "some steps log": (accumulated(beside=LOGGING), accumulated(13, beside=LOGGING), {"last": WITHIN}),
    "all steps of both log": 2 * (accumulated(each=lambda: "r1", beside=LOGGING),) + ({"last": WITHIN},),
    "each micro-batch reads a number": (accumulated(), accumulated(each=lambda: "d4"), {"note": ITEMS}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_held_against_the_budget_of_another(name, tmp_path):
    good, now, said = RUNS[name]
    file = budget_of(run_of(tmp_path / "good", good))
    folder = run_of(tmp_path / "now", now)
    code, report = told("budget", folder, "--budget", file)
    assert report["explained_by"] == ([said["explained"]] if "explained" in said else [])
    assert code == ("explained" in said)
    if "last" in said:
        assert last_line(folder, "--budget", file) == (0, said["last"])
    if "note" in said:
        about = ("only a few steps", "small calls")
        assert [note for note in report["notes"] if any(words in note for words in about)] == [said["note"]]
    if said.get("note") == SELDOM:
        rows = {row["bucket"]: (row["calls"], row["bytes"]) for row in report["rows"]}
        assert rows["H2D"] == (4, 4 * BATCH) and "D2H" not in rows
    if said.get("explained") == SMALL:
        assert [(small["calls"], small["most_calls"]) for small in report["small"]] == [(4, 0)]
        file.write_text(json.dumps(json.loads(file.read_text()) | {"others": "allow"}))
        code, report = told("budget", folder, "--budget", file)
        assert (code, report["explained_by"]) == (0, [SMALL])


# How often gradients are reduced.


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_a_step_that_may_be_a_micro_batch_of_the_budgets_is_asked_for(kind, tmp_path):
    made = getattr(loops, kind)
    good = made(ACCUMULATING).job.write(tmp_path / "good")
    bad = made(dataclasses.replace(ACCUMULATING, no_sync=False)).job.write(tmp_path / "bad")
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
            assert last_line(bad, "--budget", file, *options) == (0, WITHIN)
    assert last_line(good, "--budget", file) == (0, WITHIN)


def test_a_model_or_a_budget_by_hand_is_met_only_if_what_repeats_is_a_step(tmp_path):
    bad = loops.ddp(dataclasses.replace(ACCUMULATING, no_sync=False)).job.write(tmp_path / "bad")
    by_hand = tmp_path / "b.json"
    rows = [{"bucket": "ALLREDUCE", "bytes_per_step": {"max": 4 * sum(BUCKETS)}}]
    by_hand.write_text(json.dumps({"schema": "tprof-budget/1", "rows": rows}))
    for options in (DDP, ("--budget", by_hand)):
        code, line = last_line(bad, *options)
        assert code == 0 and line.startswith("Within the budget, if the 80 repeats are steps and not micro-batches")
    assert tprof("budget", bad, *DDP).stdout.startswith("Each of ranks 0,1 in a step, or a micro-batch of one, ")
    assert told("budget", bad, *DDP)[1]["may_be_micro_batches"] is True
    assert last_line(bad, *DDP, "--steps", 80) == (0, WITHIN)
    assert tprof("budget", bad, *DDP, "--steps", 20).returncode == 1
    good = loops.ddp(dataclasses.replace(ACCUMULATING, copies=3)).job.write(tmp_path / "good")
    assert last_line(good, *DDP) == (0, WITHIN)


def test_collectives_that_only_other_steps_make_are_told(tmp_path):
    good = run_of(tmp_path / "good", accumulated())
    some = run_of(tmp_path / "some", accumulated(beside=in_steps(4, 11, 18)))
    said = "steps 4,11,18 have 1 ncclAllGather of float32 more, of 512.00 KiB"  # of 2 x 65,536
    known = budget_of(good)
    unknown = tmp_path / "unknown.json"  # as budgets were that knew nothing of other steps
    unknown.write_text(json.dumps({k: v for k, v in json.loads(known.read_text()).items() if k != "kinds"}))
    for options in (("--budget", known), ("--budget", unknown), DDP):
        code, report = told("budget", some, *options)
        never = known in options
        why = [f"{said}, which is in no step of the run that the budget is from"]
        assert (code, report["within"], report["explained_by"]) == (never, not never, why * never)
        # DDP's first step has one bucket of all.
        assert any(note.startswith("the figures leave out 4 steps with unusual coll") for note in report["notes"])
        assert report["other_steps"] == [
            {"steps": [4, 11, 18], "bucket": "ALLGATHER", "function": "ncclAllGather", "dtype": "float32", "calls": 1}
            | {"bytes": 524288, "in_run": "never" if never else None}
        ]
        assert (told("budget", good, *options)[0], told("budget", good, *options)[1]["other_steps"]) == (0, [])
    assert last_line(some, "--budget", known) == (1, "Not within the budget.")
    within = f"The usual step is within the budget; 3 other steps make more: {said}."
    assert last_line(some, "--budget", unknown) == (0, within)
    assert last_line(good, "--budget", unknown) == (0, WITHIN)
    known.write_text(json.dumps(json.loads(known.read_text()) | {"others": "allow"}))
    assert tprof("budget", some, "--budget", known).returncode == 0

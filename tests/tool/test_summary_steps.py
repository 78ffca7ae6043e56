"""Steps are found from the order of calls: each is right, or they are said not to be known."""

import random

import pytest
from lib import jobs, loops
from lib.loops import Shape
from lib.thorough import some
from lib.tool import summary_of, tprof


def found(folder, *more):
    return summary_of(folder, "--by", "step", *more)


def starts(report):
    """Returns the start of each step, as a place in the loop: ranks and hosts are a few nanoseconds apart."""
    return [round((step["ts"] - jobs.BASE_NS) / jobs.STEP_NS) for step in report["steps"]]


def check(loop, folder, allow_unknown=False):
    """Returns what was found: "steps", "micro-batches" (those of steps, not told to be steps) or None."""
    report = found(loop.job.write(folder))
    if report["steps_found"] is None:
        assert report["steps"] is None and report["steps_unknown"]
        assert allow_unknown, report["steps_unknown"]
        return None
    assert report["steps_found"] == "period"
    begun = starts(report)
    if report["steps_whole"]:
        assert begun == loop.steps
        return "steps"
    assert begun in (loop.steps, loop.micro_batches)
    return "steps" if begun == loop.steps else "micro-batches"


SEEDS = some(range(12), 3)
TURNS = [(1, 2), (1, 2, 3), (1, 2, 3, 4), (3, 3, 3, 2), (3, 3, 1), (4, 4, 4, 4, 1), (2, 1, 1, 1, 1, 1)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("no_sync", [False, True])
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("kind", ["fsdp", "ddp", "tensor_parallel"])
def test_steps_of_different_numbers_of_micro_batches(tmp_path, kind, turns, no_sync):
    loop = getattr(loops, kind)(Shape(steps=24, turns=turns, no_sync=no_sync))
    if kind == "ddp" and no_sync:  # a micro-batch that reduces nothing may be one of an evaluation
        report = found(loop.job.write(tmp_path / "job"))
        assert len(report["steps"]) == 24
        (note,) = report["steps_unknown"]
        assert "which may be micro-batches of the step" in note
        return
    said = check(loop, tmp_path / "job")
    assert said == ("steps" if no_sync or kind == "tensor_parallel" else "micro-batches")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("kind", ["fsdp", "ddp", "tensor_parallel"])
def test_fewer_than_six_repeats_are_not_told_from_layers_or_micro_batches(tmp_path, kind, steps):
    report = found(getattr(loops, kind)(Shape(steps=steps, no_sync=True)).job.write(tmp_path / "job"))
    assert (report["steps_found"], report["steps"]) == (None, None)


@pytest.mark.parametrize("accumulate", [1, 2, 4])
@pytest.mark.parametrize("steps", [2, 3])
def test_layers_of_a_few_steps_are_no_steps(tmp_path, steps, accumulate):
    loop = loops.tensor_parallel(Shape(steps=steps, accumulate=accumulate))
    assert check(loop, tmp_path / "job", allow_unknown=True) in ("micro-batches", None)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["fsdp", "ddp", "zero3", "tensor_parallel"])
def test_steps_of_any_shape(tmp_path, kind, seed):
    """Layers that reduce activations are not taken for steps, and ZeRO-3 gathers parameters before a step ends."""
    shape = loops.draw(random.Random(seed))
    quiet = shape.no_sync and kind != "zero3"
    whole = shape.accumulate == 1 or quiet or kind == "tensor_parallel"
    assert check(getattr(loops, kind)(shape), tmp_path / "job") == ("steps" if whole else "micro-batches")


@pytest.mark.parametrize("evaluate", [0, 3])
@pytest.mark.parametrize("clip", [False, True])
def test_batches_that_come_in_ahead(tmp_path, evaluate, clip):
    shape = Shape(prefetch=True, evaluate=evaluate, clip=clip)
    assert check(loops.fsdp(shape), tmp_path / "job") == "steps"


@pytest.mark.parametrize("each", [1, 4])
def test_two_models_are_one_step_or_not_known(tmp_path, each):
    loop = loops.two_models(Shape(), each)
    assert check(loop, tmp_path / "job", allow_unknown=each > 1) in ("steps", None)


def test_checkpoints_between_steps_are_named(tmp_path):
    loop = loops.fsdp(Shape(steps=12), checkpoint=5)
    assert check(loop, tmp_path / "job") == "steps"
    report = found(tmp_path / "job")
    odd = {step["step"]: step["differs"] for step in report["steps"] if step["differs"]}
    more = {(d["bucket"], d["more_calls"]) for d in odd[5]}
    assert set(odd) == {5, 10}
    assert more == {("ALLGATHER", 12), ("ALLGATHER", 2), ("D2H", 2)}  # both ranks together
    text = tprof("summary", tmp_path / "job", "--by", "step").stdout
    assert "steps 5,10: 2 more ALLGATHER of 32.50 KiB, 12 more ALLGATHER of 129.25 KiB" in text


EVALUATION, CHECKPOINT = 3 * 7, 7  # all-gathers of a rank


@pytest.mark.parametrize(
    "steps, evaluate, checkpoint, at_the_end, gathers",
    [
        (40, 20, 8, False, EVALUATION + CHECKPOINT),
        (40, 10, 8, False, EVALUATION + CHECKPOINT),
        (40, 20, 0, False, EVALUATION),
        # A last evaluation behind all steps, which is like those of some.
        (40, 20, 8, True, EVALUATION + CHECKPOINT),
        (40, 20, 0, True, EVALUATION),
        (38, 8, 19, True, CHECKPOINT),
        (40, 12, 8, True, CHECKPOINT),
    ],
)
def test_the_last_step_has_all_that_is_due_behind_it(tmp_path, steps, evaluate, checkpoint, at_the_end, gathers):
    """No other step has both, and what the program does when all steps are over is no part of the last one."""
    shape = Shape(steps=steps, evaluate=evaluate)
    loop = loops.fsdp(shape, checkpoint=checkpoint)
    if at_the_end:
        for _ in range(3):
            loop.copy("cudaMemcpyAsync", loops.BATCH // 2)
            for n in range(shape.layers + 1):
                loop.gather(16544 if n else 4160)
        loop.reduce(2)
    assert check(loop, tmp_path / "job") == "steps"
    last = found(tmp_path / "job")["steps"][-1]
    assert last["step"] == steps
    assert sum(d["more_calls"] for d in last["differs"] if d["bucket"] == "ALLGATHER") == 2 * gathers


def test_a_tail_of_fewer_micro_batches_is_a_step(tmp_path):
    loop = loops.fsdp(Shape(accumulate=4, no_sync=True))
    short = loops.fsdp(Shape(steps=1, accumulate=2, no_sync=True))
    first = short.steps[0]
    loop.steps.append(loop.at)
    for mine, more in zip(loop.job.ranks, short.job.ranks):
        mine.ops += [
            jobs.dataclasses.replace(op, at=op.at - first + loop.at) for op in more.ops if op.at >= first
        ]
    assert check(loop, tmp_path / "job") == "steps"


@pytest.mark.parametrize("ops", range(3, 60, 7))
def test_a_killed_job_has_the_steps_that_it_finished(tmp_path, ops):
    loop = loops.fsdp(Shape(steps=10))
    of_step = (len(loop.job.ranks[0].ops) - 1) // 10
    for rank in loop.job.ranks:
        rank.ops = rank.ops[: 1 + 7 * of_step + ops % of_step]
        rank.end = "recovered"
    report = found(loop.job.write(tmp_path / "job"))
    assert starts(report) == loop.steps[: len(report["steps"])]
    assert len(report["steps"]) == 7


def test_ranks_that_were_killed_apart_have_the_same_steps(tmp_path):
    loop = loops.fsdp(Shape(steps=9))
    of_step = (len(loop.job.ranks[0].ops) - 1) // 9
    for rank, steps in zip(loop.job.ranks, (8, 6)):
        rank.ops = rank.ops[: 1 + steps * of_step + 5]
        rank.end = "recovered"
    report = found(loop.job.write(tmp_path / "job"))
    assert starts(report) == loop.steps[:8]
    calls = [step["buckets"]["RESHARDING"]["calls"] for step in report["steps"]]
    assert calls == [14] * 6 + [7] * 2  # calls of the rank that was still there


@pytest.mark.parametrize("steps", [3, 4, 9])
def test_parameters_that_lie_in_the_hosts_memory_are_no_batches(tmp_path, steps):
    """FSDP with CPU offload: each unit's shard comes to the device before it is gathered."""
    loop, shard = loops.Loop([[0, 1]]), 16544
    for step in range(steps):
        loop.step()
        loop.micro_batch(size=4096)
        for unit in range(8):
            loop.copy("cudaMemcpyAsync", 4 * shard)
            loop.gather(shard)
            if unit >= 4:
                loop.scatter(shard)
        loop.copy("cudaMemcpy", 4 + step % 2)
    said = check(loop, tmp_path / "job", allow_unknown=steps < 6)
    assert said == ("steps" if steps >= 6 else None)


def test_what_does_not_repeat_has_no_steps(tmp_path):
    report = found(jobs.healthy(4, 300, seed=1).write(tmp_path / "random"))
    assert (report["steps_found"], report["steps"]) == (None, None)
    assert report["steps_unknown"]


@pytest.mark.parametrize("function", ["gather", "reduce", "scatter"])
def test_one_operation_alone_has_no_steps(tmp_path, function):
    loop = loops.Loop([[0, 1]])
    for _ in range(50):
        getattr(loop, function)(4096)
    assert found(loop.job.write(tmp_path / "job"))["steps_found"] is None


def test_no_lines_no_steps(tmp_path):
    loop = loops.fsdp(Shape())
    for rank in loop.job.ranks:
        rank.lines = False
    result = tprof("summary", loop.job.write(tmp_path / "job"), "--by", "step")
    assert "Not known: no rank has event lines of collectives, or steps that" in result.stdout
    refused = tprof("summary", tmp_path / "job", "--steps", "2-")
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr.startswith("tprof: --steps: no steps are known")


def test_a_schedule_without_steps_opens_no_window(tmp_path):
    loop = loops.fsdp(Shape())
    for rank in loop.job.ranks:
        rank.lines = False
        rank.header = {"config": {"TPROF_SCHEDULE": "wait=5,active=5"}}
    folder = loop.job.write(tmp_path / "job")
    assert "Not known: no window of TPROF_SCHEDULE opened" in tprof("summary", folder, "--by", "step").stdout


@pytest.mark.parametrize("steps", [20, 21])
@pytest.mark.parametrize("kind", ["fsdp", "ddp"])
def test_what_follows_some_steps_follows_the_last_one_too(kind, steps, tmp_path):
    """Each fifth step is followed by a reduction of one number, and the last one is as the others are."""
    report = found(getattr(loops, kind)(Shape(steps=steps, log=5)).job.write(tmp_path / "job"))
    usual = 0 if kind == "fsdp" else 2 * 4
    reductions = [(step["buckets"].get("ALLREDUCE") or {"calls": 0})["calls"] for step in report["steps"]]
    assert [n - usual for n in reductions[1:]] == [2 * (k % 5 == 0) for k in range(2, steps + 1)]


def test_a_rank_whose_lines_were_dropped_is_named(tmp_path):
    loop = loops.fsdp(Shape(steps=10))
    loop.job.ranks[1].quota = 100
    report = found(loop.job.write(tmp_path / "job"))
    assert starts(report)[:4] == loop.steps[:4]
    assert any("rank 1" in note and "line" in note for note in report["steps_unknown"])


@pytest.mark.parametrize(
    ("kinds", "rest"), [(6, ""), (7, ", and 1 other difference"), (8, ", and 2 other differences")]
)
def test_differences_of_an_odd_step_beyond_the_first_six_are_counted(kinds, rest, tmp_path):
    loop = loops.Loop([[0, 1]])
    for step in range(1, 13):
        loop.step()
        loop.micro_batch()
        with loop.backward():
            loop.reduce(400_000)
        for n in range(kinds if step == 7 else 0):
            loop.copy("cudaMemcpy", 64 << n)
    text = tprof("summary", loop.job.write(tmp_path / "job"), "--by", "step").stdout
    (odd,) = [line for line in text.splitlines() if line.endswith(" than in most")]
    assert odd.startswith("  step 7: 2 more D2H of 64 B, ")
    assert odd.endswith(f"2 more D2H of 2.00 KiB{rest} than in most")

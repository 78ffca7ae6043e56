"""Steps of pipelines, which reduce no gradients: each call is in the step of which its schedule makes it, or the steps
are said not to be known."""

import dataclasses
import random
import sqlite3

import pytest
from lib import jobs, schedules
from lib.schedules import Pipeline, Shape
from lib.thorough import some
from lib.tool import told, tprof

SCHEDULES = {
    "1f1b": Shape(schedules.one_f_one_b),
    "gpipe": Shape(schedules.gpipe),
    "interleaved": Shape(schedules.interleaved, chunks=2),
}


def found(folder):
    return told("summary", folder, "--by", "step")[1]


def placed(pipeline, folder):
    """Returns for each rank the step of each call, as the tool finds it (0: none)."""
    if not folder.exists():
        pipeline.job.write(folder)
    table = folder.parent / "run.db"
    table.unlink(missing_ok=True)
    assert tprof("export", folder, "--sqlite", table).returncode in (0, 1)
    with sqlite3.connect(table) as db:
        rows = db.execute("SELECT rank, step FROM calls WHERE comm IS NOT NULL ORDER BY rank, ts_ns").fetchall()
    return [[step or 0 for of, step in rows if of == rank] for rank in range(pipeline.size)]


def right(shape, tmp_path):
    """Asserts that each call of each rank is in its step."""
    pipeline = Pipeline(shape)
    steps = placed(pipeline, tmp_path / "job")
    for rank in range(pipeline.size):
        assert steps[rank] == pipeline.steps_of(rank), f"rank {rank}"
    report = found(tmp_path / "job")
    assert (report["steps_found"], len(report["steps"])) == ("period", shape.steps)
    return report


VARIANTS = {
    "a loss": {"loss": 1},
    "a loss now and then": {"loss": 5},
    "no loss": {"loss": 0},
    "a communicator for each pair, no copies": {"copies": False, "pairs": True},
    "messages of any size": {"lengths": True, "loss": 0},
    "neighbours that said hello": {"handshake": True, "loss": 0},
    "data parallel groups": {"replicas": 2, "loss": 1},
    "data parallel groups, no loss": {"replicas": 2, "loss": 0},
    # At the last stage each micro-batch looks as a step of several would.
    "two tensors for each micro-batch": {"tensors": 2, "loss": 0},
    "three tensors for each micro-batch": {"tensors": 3, "loss": 0},
    "tensor parallel layers": {"tensor_parallel": 2},
    "tensor and data parallel groups": {"tensor_parallel": 2, "replicas": 2},
    "evaluations": {"evaluate": 3, "loss": 1},
    "evaluations, no loss": {"evaluate": 3, "loss": 0},
    **{f"{stages} stages, {batches} micro-batches": {"stages": stages, "batches": batches, "loss": 0}
       for stages in (2, 3, 4) for batches in (4, 8, 12)},
}  # fmt: skip
# In an interleaved schedule a group of micro-batches is as large as there are stages, and nothing evaluates.
MADE = [
    (schedule, name)
    for schedule in SCHEDULES
    for name, more in VARIANTS.items()
    if schedule != "interleaved" or ("evaluate" not in more and more.get("batches", 0) % more.get("stages", 4) == 0)
]


@pytest.mark.parametrize(("schedule", "variant"), some(MADE, 3))
def test_each_call_is_in_its_step(tmp_path, schedule, variant):
    report = right(dataclasses.replace(SCHEDULES[schedule], **VARIANTS[variant]), tmp_path)
    assert not variant.endswith("loss") or (report["steps_whole"] and report["steps_unknown"] == [])


def test_evaluation_alone_has_no_steps(tmp_path):
    forward = lambda stage, stages, batches, chunks: [schedules.Pass(True, 0, n) for n in range(batches)]  # noqa: E731
    for loss in (0, 1):
        report = found(Pipeline(Shape(forward, loss=loss)).job.write(tmp_path / str(loss)))
        assert (report["steps_found"], report["steps"]) == (None, None)


def test_steps_of_more_and_more_micro_batches(tmp_path):
    right(Shape(turns=(4,) * 3 + (8,) * 17, loss=0), tmp_path)


@pytest.mark.parametrize("tensors", [1, 3])
def test_one_micro_batch_may_be_one_of_several(tmp_path, tensors):
    """A step of one micro-batch: stages do not show that it is a whole step, and this is said."""
    for loss in (0, 1):
        folder = tmp_path / str(loss)
        folder.mkdir()
        report = found(Pipeline(Shape(batches=1, loss=loss, tensors=tensors, copies=False)).job.write(folder / "job"))
        assert report["steps_found"] is None or not report["steps_whole"]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("steps", range(1, 6))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fewer_than_six_are_not_told(tmp_path, schedule, steps):
    pipeline = Pipeline(dataclasses.replace(SCHEDULES[schedule], steps=steps, loss=0))
    report = found(pipeline.job.write(tmp_path / "job"))
    assert (report["steps_found"], report["steps"]) == (None, None)


def test_the_last_stage_alone_does_not_tell(tmp_path):
    pipeline = Pipeline(Shape(loss=0))
    for rank in pipeline.job.ranks[:3]:
        rank.lines = False
    report = found(pipeline.job.write(tmp_path / "job"))
    assert report["steps_found"] is None
    assert "rank 3: " in report["steps_unknown"][0] and "micro-batch" in report["steps_unknown"][0]
    # A report that does not know praises nothing, and there is a way out.
    way = "\n{}-> mark them with tprof.step(), or TPROF_STEP=call:FUNCTION for the call that ends each step\n"
    assert way.format("  ") in tprof("summary", tmp_path / "job", "--by", "step").stdout
    screen = tprof("report", tmp_path / "job").stdout
    assert way.format("") in screen
    assert "no steps are known, so their speed is unknown (TPROF_STEP=call:FUNCTION names the call that ends each step)." in " ".join(screen.split())


def test_ranks_without_lines_leave_the_others_their_steps(tmp_path):
    pipeline = Pipeline(Shape(loss=0))
    pipeline.job.ranks[1].lines = False
    pipeline.job.write(tmp_path / "job")
    steps = placed(pipeline, tmp_path / "job")
    assert steps[0] == pipeline.steps_of(0)
    for rank in (2, 3):  # rank 2 tells its steps itself, and those of rank 3
        assert steps[rank] == pipeline.steps_of(rank)


@pytest.mark.parametrize("lost", [1, 9, 20])
def test_a_killed_job_has_the_steps_that_it_finished(tmp_path, lost):
    pipeline = Pipeline(Shape(steps=10, loss=0))
    until = max(op.at for rank in pipeline.job.ranks for op in rank.ops) - lost
    for rank in pipeline.job.ranks:
        rank.ops = [op for op in rank.ops if op.at <= until]
        rank.end = "recovered"
    report = found(pipeline.job.write(tmp_path / "job"))
    assert len(report["steps"]) in (9, 10)
    for rank, steps in enumerate(placed(pipeline, tmp_path / "job")):
        finished = [step for step in steps if 0 < step <= 9]
        assert finished == [step for step in pipeline.steps_of(rank) if step <= 9][: len(finished)]


def test_calls_in_no_order_have_no_steps(tmp_path):
    """Sends and receives drawn at random between two ranks."""
    rng = random.Random(5)
    calls = [rng.choice(["ncclSend", "ncclRecv"]) for _ in range(400)]
    other = {"ncclSend": "ncclRecv", "ncclRecv": "ncclSend"}
    mine = [jobs.Op(call, 1 + at, 4096, 0, "float32", None, 1) for at, call in enumerate(calls)]
    theirs = [dataclasses.replace(op, function=other[op.function], peer=0) for op in mine]
    job = jobs.Job([[0, 1]], [jobs.Rank(ops, [0]) for ops in (mine, theirs)])
    report = found(job.write(tmp_path / "job"))
    assert (report["steps_found"], report["steps"]) == (None, None)

"""Batches differ in size from step to step, on each rank in another way: sequences have any length."""

import random

import pytest
from lib import loops
from lib.loops import Loop, Shape
from lib.tool import told, tprof

KIB = 1 << 10
SIZES = {
    "two": lambda rng, step, rank: (16 if (step * 3 + rank) % 5 else 32) * KIB,
    "cycle": lambda rng, step, rank: (8, 16, 32, 64)[(step + rank) % 4] * KIB,
    "slow cycle": lambda rng, step, rank: (8, 16, 32, 64)[(step * 7 + rank * 3 + step // 3) % 4] * KIB,
    "any": lambda rng, step, rank: 4 * rng.randrange(1000, 16000),
    "rarely": lambda rng, step, rank: (8 if step % 7 == 3 + rank else 64) * KIB,
}


class OddBatches(Loop):
    """Each rank's batches have sizes of their own."""

    def __init__(self, comms, sizes):
        super().__init__(comms)
        self.sizes, self.rng = sizes, random.Random(3)

    def micro_batch(self, copies=1, size=None):
        self.micro_batches.append(self.at)
        at = self.at
        for _ in range(copies):
            for rank in range(self.job.size):
                self.copy("cudaMemcpyAsync", self.sizes(self.rng, len(self.micro_batches), rank), [rank])
        assert self.at == at + copies * self.job.size


def begun(report):
    """Returns where each step begins, as the loop counts."""
    return [round((step["ts"] - loops.jobs.BASE_NS) / loops.jobs.STEP_NS) for step in report["steps"]]


def check(loop, folder):
    """Returns what `summary` says; all ranks have all steps, and each begins where it does."""
    report = told("summary", loop.job.write(folder), "--by", "step")[1]
    assert report["steps_unknown"] == []
    assert begun(report) == loop.steps
    # Each batch is in its step, and every rank has all steps.
    assert {step["buckets"]["H2D"]["calls"] for step in report["steps"]} == {loop.job.size}
    return report


@pytest.mark.one_of(3)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("buckets", [(4160, 4160), (9000, 4160), (9000,)])
def test_ddp(tmp_path, monkeypatch, buckets, sizes):
    monkeypatch.setattr(loops, "Loop", lambda comms: OddBatches(comms, SIZES[sizes]))
    check(loops.ddp(Shape(steps=40), buckets=buckets), tmp_path / "job")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("clip", [False, True])
def test_fsdp(tmp_path, monkeypatch, clip, sizes):
    monkeypatch.setattr(loops, "Loop", lambda comms: OddBatches(comms, SIZES[sizes]))
    check(loops.fsdp(Shape(steps=40, clip=clip)), tmp_path / "job")


def test_a_rank_without_steps_has_its_reason_said(tmp_path):
    """Rank 1 was killed in its fourth step."""
    loop = loops.ddp(Shape(steps=20))
    rank = loop.job.ranks[1]
    rank.ops, rank.end = [op for op in rank.ops if op.at <= loop.steps[3]], "recovered"
    report = told("summary", loop.job.write(tmp_path / "job"), "--by", "step")[1]
    assert len(report["steps"]) == 20
    why = "rank 1: no steps were found: the calls do not repeat like steps"
    assert report["steps_unknown"] == [why]
    screen = " ".join(tprof("report", tmp_path / "job").stdout.split())
    assert f"{why}; anything that needs the steps of all ranks is unknown" in screen

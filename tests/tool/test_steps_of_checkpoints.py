"""A rank that saves copies whole parameters back to its device: the batches of its steps are smaller than these.

FSDP1 does so on rank 0 alone where `rank0_only` is set. The truth is where the loop begins its steps: with a batch.
"""

import pytest
from lib.loops import Loop, has_its_steps

LAYER, ROOT, LAYERS, ELEMENT = 16544, 4160, 4, 4


class Job(Loop):
    """FSDP1 with no_sync(). Behind an evaluation the root is still gathered, and the next step does not gather it."""

    def __init__(self, batch, micro_batches):
        super().__init__([[0, 1]])
        self.batch, self.count, self.root_there = batch, micro_batches, False

    def forward(self):
        if not self.root_there:
            self.gather(ROOT)
        self.root_there = False
        for _ in range(LAYERS):
            self.gather(LAYER)

    def train(self):
        self.step()
        for n in range(self.count):
            self.micro_batch(2, self.batch)
            self.forward()
            for layer in range(LAYERS):
                if layer > 0:  # FSDP keeps the last layer
                    self.gather(LAYER)
                if n + 1 == self.count:
                    self.scatter(LAYER)
        self.scatter(ROOT)
        self.reduce(1)

    def evaluate(self, batch):
        for _ in range(3):
            for _ in range(2):
                self.copy("cudaMemcpyAsync", batch)
            self.forward()
            self.root_there = True
        self.copy("cudaMemcpyAsync", 4)
        self.reduce(1)

    def save(self, ranks, padding):
        self.root_there = False
        for count in (ROOT, *[LAYER] * LAYERS):
            self.gather(count)
            if ranks:
                self.copy("cudaMemcpyAsync", 2 * count * ELEMENT - padding, ranks)
        self.reduce(1)


def run(micro_batches=2, batch=2048, evaluate=(20,), of=1, save=(25,), by=(0,), padding=0, steps=30):
    loop = Job(batch, micro_batches)
    loop.copy("cudaMemcpyAsync", 1 << 20)
    loop.copy("cudaMemcpyAsync", 1 << 20)
    for step in range(1, steps + 1):
        loop.train()
        if step in evaluate:
            loop.evaluate(of * batch)
        if step in save:
            loop.save(list(by), padding)
    return loop


@pytest.mark.one_of(5)
@pytest.mark.parametrize("micro_batches", [1, 2, 4])
@pytest.mark.parametrize("by", [(0,), (0, 1), ()])
@pytest.mark.parametrize("batch", [256, 2048, 1 << 16])
@pytest.mark.parametrize("evaluate", [(20,), (7, 14, 21, 28), ()])
def test_an_evaluation_belongs_to_the_step_before(tmp_path, evaluate, batch, by, micro_batches):
    has_its_steps(run(micro_batches, batch, evaluate, by=by), tmp_path / "job")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("padding", [0, 4, 60])
@pytest.mark.parametrize("every", [3, 5, 10])
def test_saved_again_and_again(tmp_path, every, padding):
    has_its_steps(run(save=range(every, 30, every), padding=padding), tmp_path / "job")


@pytest.mark.one_of(4)
@pytest.mark.parametrize("of", [1, 4, 16, 64])
@pytest.mark.parametrize("evaluate", [(20,), (10, 20), (7, 14, 21, 28)])
@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_batches_of_an_evaluation_are_larger(tmp_path, micro_batches, evaluate, of):
    has_its_steps(run(micro_batches, evaluate=evaluate, of=of, save=()), tmp_path / "job")

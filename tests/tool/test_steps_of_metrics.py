"""Programs gather metrics as large as their batches, and logs in some steps only.

The truth is where the loop begins its steps: with a batch.
"""

import pytest
from lib.loops import Loop, has_its_steps, trained

BUCKETS = (277_736, 780_800)


class Job(Loop):
    """DDP with no_sync(). Behind an evaluation the predictions are gathered: as many bytes as a batch has."""

    def __init__(self, batch, micro_batches, every):
        super().__init__([[0, 1]])
        self.batch, self.count, self.every, self.forwards = batch, micro_batches, every, 0

    def forward(self):
        self.forwards += 1
        if self.every and self.forwards % self.every == 0:
            self.gather(5000)  # a log of activations

    def train(self):
        self.step()
        for _ in range(self.count):
            self.micro_batch(2, self.batch)
            self.forward()
        for bucket in BUCKETS:
            self.reduce(bucket)

    def evaluate(self):
        for _ in range(3):
            for _ in range(2):
                self.copy("cudaMemcpyAsync", self.batch)
            self.gather(self.batch // 4)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("evaluate", [0, 10])
@pytest.mark.parametrize(
    "micro_batches, every", [(1, 0), (1, 2), (1, 4), (1, 5), (2, 0), (2, 2), (2, 4), (2, 5), (4, 0), (4, 2), (4, 4)]
)
@pytest.mark.parametrize("batch", [4096, 1 << 16])
def test_steps_begin_with_their_batch(tmp_path, batch, micro_batches, every, evaluate):
    has_its_steps(trained(Job(batch, micro_batches, every), 40, evaluate), tmp_path / "job")

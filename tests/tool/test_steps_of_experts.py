"""Mixtures of experts send as many tokens to each rank as its experts get, which differs in each forward pass.

PyTorch's uneven all-to-all is a group of sends and receives, without those of no tokens. The truth is
where the loop begins its steps: with a batch.
"""

import random

import pytest
from lib.loops import Loop, has_its_steps, trained
from lib.tool import told

WIDTH, TOKENS = 128, 256


class Job(Loop):
    """Dense gradients are all-reduced in two buckets, or sharded; experts keep theirs on their own rank."""

    def __init__(self, ranks, micro_batches, layers, sharded, seed, copies=2):
        super().__init__([list(range(ranks))])
        self.copies = copies  # of a batch; 0: data are made on the device
        self.ranks, self.micro_batches_of_a_step, self.layers, self.sharded = ranks, micro_batches, layers, sharded
        self.rng = random.Random(seed)

    def exchange(self, tokens):
        """`tokens[a][b]`: how many a sends to b."""
        for a in range(self.ranks):
            for b in range(self.ranks):
                if tokens[a][b]:
                    self.send(a, b, tokens[a][b] * WIDTH)

    def experts(self):
        """There and back, as the router says."""
        self.gather(self.ranks)  # how many tokens come
        there = [[0] * self.ranks for _ in range(self.ranks)]
        for a in range(self.ranks):
            for _ in range(TOKENS):
                there[a][min(int(self.rng.expovariate(1.0)), self.ranks - 1)] += 1
            if self.rng.random() < 0.1:
                there[a][-1], there[a][0] = 0, there[a][0] + there[a][-1]
        back = [list(column) for column in zip(*there, strict=True)]
        self.exchange(there)
        self.exchange(back)
        return there, back

    def forward(self):
        passes = []
        for _ in range(self.layers):
            if self.sharded:
                self.gather(16_544)
            passes.append(self.experts())
        return passes

    def train(self):
        self.step()
        for micro_batch in range(self.micro_batches_of_a_step):
            self.micro_batch(self.copies, 1 << 16)
            for there, back in reversed(self.forward()):
                if self.sharded:
                    self.gather(16_544)
                self.exchange(there)  # the gradients of what came back
                self.exchange(back)
                if self.sharded and micro_batch == self.micro_batches_of_a_step - 1:
                    self.scatter(16_544)
        if not self.sharded:
            self.reduce_gradients()

    def reduce_gradients(self):
        self.reduce(277_736)
        self.reduce(780_800)

    def evaluate(self):
        for _ in range(3):
            self.copy("cudaMemcpyAsync", 1 << 16)
            self.forward()
        self.reduce(2)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("evaluate", [0, 10])
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("ranks, layers", [(2, 2), (4, 1), (3, 6)])
def test_steps_begin_with_their_batch(tmp_path, ranks, layers, micro_batches, sharded, evaluate):
    loop = Job(ranks, micro_batches, layers, sharded, seed=ranks + 10 * layers)
    has_its_steps(trained(loop, 30, evaluate), tmp_path / "job")


class LayerByLayer(Job):
    def reduce_gradients(self):
        for _ in range(self.layers):
            self.reduce(16_384)
            self.reduce(128)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("layers", [2, 3, 4, 6])
@pytest.mark.parametrize("ranks", [2, 3])
def test_layers_are_no_steps_where_no_batch_comes_in(tmp_path, ranks, layers):
    loop = LayerByLayer(ranks, 1, layers, sharded=False, seed=layers, copies=0)
    for _ in range(30):
        loop.train()
    report = told("summary", loop.job.write(tmp_path / "job"), "--by", "step")[1]
    assert report["steps"] is None or len(report["steps"]) == len(loop.steps)

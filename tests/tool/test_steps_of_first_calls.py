"""The first step makes a call that few others make: a log, a metric in each so many-th step from 0 on.

The truth is where the loop begins its steps: with a batch.
"""

import pytest
from lib.loops import Loop, has_its_steps

LAYER, ROOT = 16_544, 4160


class Job(Loop):
    """FSDP2, which copies the addresses of what it gathers and scatters: nearly as many bytes as a batch has."""

    def __init__(self, extra):
        super().__init__([[0, 1]])
        self.extra = extra  # where in a step: "forward", "between" or "backward"

    def gather(self, count, comm=0):
        super().gather(count, comm)
        self.copy("cudaMemcpyAsync", 3528 if count == LAYER else 2296)

    def scatter(self, count, comm=0):
        self.copy("cudaMemcpyAsync", 3532 if count == LAYER else 2300)
        super().scatter(count, comm)

    def more(self, where, now):
        if now and where == self.extra:
            Loop.gather(self, 65_536)

    def train(self, now):
        self.step()
        self.micro_batch(2, 4096)
        self.gather(ROOT)
        for layer in range(4):
            self.gather(LAYER)
            if layer == 2:
                self.more("forward", now)
        self.more("between", now)
        for layer in reversed(range(4)):
            if layer != 3:
                self.gather(LAYER)
            self.scatter(LAYER)
            if layer == 1:
                self.more("backward", now)
        self.scatter(ROOT)
        self.reduce(1)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("extra", ["forward", "between", "backward"])
@pytest.mark.parametrize("every", [1000, 10, 5, 3])
@pytest.mark.parametrize("setup", [0, 4096, 3528])
def test_steps_begin_with_their_batch(tmp_path, setup, every, extra):
    loop = Job(extra)
    for size in (1 << 20, setup):
        if size:
            loop.copy("cudaMemcpyAsync", size)
    for step in range(40):
        loop.train(step % every == 0)
    has_its_steps(loop, tmp_path / "job")

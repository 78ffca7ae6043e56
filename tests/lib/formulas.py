"""Computes what FSDP must ask of NCCL for the model of tests/clients/common.py, from its shapes alone.

Counts are the API's: what one rank sends to an all-gather, or receives from a reduce-scatter.
"""

import dataclasses
import math

DEPTH = 4


def _linear(out: int, into: int) -> list[tuple[int, ...]]:
    return [(out, into), (out,)]


@dataclasses.dataclass(frozen=True)
class Model:
    """Parameter shapes of the units that are wrapped: the root's own, and one block's."""

    width: int = 64
    hidden: int = 256

    def root(self) -> list[tuple[int, ...]]:
        return _linear(self.width, self.width) + _linear(self.width, self.width)

    def block(self) -> list[tuple[int, ...]]:
        return _linear(self.hidden, self.width) + _linear(self.width, self.hidden)


def shard_by_rows(shapes: list[tuple[int, ...]], ranks: int) -> int:
    """FSDP2: every parameter is split, and padded, along its first dimension."""
    return sum(math.ceil(shape[0] / ranks) * math.prod(shape[1:]) for shape in shapes)


def shard_flat(shapes: list[tuple[int, ...]], ranks: int) -> int:
    """FSDP1: the unit's parameters are one flat parameter, padded at its end."""
    return math.ceil(sum(math.prod(shape) for shape in shapes) / ranks)


def gathers_and_scatters(
    root: int, block: int, steps: int, reshard_after_forward: bool
) -> tuple[dict[int, int], dict[int, int]]:
    """Returns count -> calls of all-gathers and of reduce-scatters, for the whole run.

    The root keeps its parameters after the forward pass, so it is gathered once a step.
    """
    passes = 2 if reshard_after_forward else 1
    gathers = {block: DEPTH * passes * steps, root: steps}
    scatters = {block: DEPTH * steps, root: steps}
    return gathers, scatters

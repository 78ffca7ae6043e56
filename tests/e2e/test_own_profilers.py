"""Compares the frameworks' own profilers with our counts, in the same run."""

import collections
import json
import math

import pytest
from lib import figures, formulas
from lib.cases import CASES

CHECKPOINT_UNITS, CHECKPOINT_STEPS = 5, 3  # fsdp1_checkpoint.py: one parameter a unit


def printed(run, what: str) -> list[dict]:
    """Returns what each rank printed after `what:`."""
    return [json.loads(line.split(what + ": ", 1)[1]) for line in run.lines() if what in line]


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("zero3-")])
def test_deepspeed_profiler_sees_all_gathers_but_those_of_the_optimizers_construction(name, pair_of):
    pair = pair_of(name)
    profiles = printed(pair.traced, "profiler")
    shapes = formulas.Model().root() + formulas.DEPTH * formulas.Model().block()
    parameters = len(shapes)
    everything = sum(math.prod(shape) for shape in shapes)
    assert len(profiles) == len(pair.traced.ranks())
    for profile in profiles:
        calls = sum(profile[f"{phase}_all_gather"][0] for phase in ("forward", "backward"))
        elements = sum(profile[f"{phase}_all_gather"][1] for phase in ("forward", "backward"))
        for file in pair.traced.ranks():
            rows = [r for r in file.ledger_rows() if r["name"] == "ncclAllGather"]
            # create_reduce_and_remove_grad_hooks gathers every parameter once, outside of the
            # coordinator that the profiler lives in.
            assert sum(row["calls"] for row in rows) == calls + parameters
            assert sum(row["elements"] for row in rows) == elements + everything


def test_simple_profiler_sees_a_part_of_the_all_gathers_of_a_checkpoint(pair_of):
    """It has ranges around some of FSDP's state-dict code, and none around training."""
    pair = pair_of("fsdp1-2-checkpoint")
    entered, *others = printed(pair.traced, "SimpleProfiler")
    assert others == [entered]
    adam_states = 2
    not_in_a_range = {
        "training, forward and backward": 2 * CHECKPOINT_UNITS * CHECKPOINT_STEPS,
        "parameters put together to save and to load the model": 2 * CHECKPOINT_UNITS,
        "optimizer states put together to load them": adam_states * CHECKPOINT_UNITS,
    }
    for file in pair.traced.ranks():
        calls = collections.Counter()
        for key, value in figures.of_ledger(file).items():
            calls[key[1:3]] += value["calls"]
        outside = sum(not_in_a_range.values())
        assert calls["ncclAllGather", "float32"] == entered["all_gather"] + outside
        # An object gather is a size and then the bytes. One more lets ranks agree on names.
        objects = entered["all_gather_object"] + entered["preprocessing_with_comm"]
        assert calls["ncclAllGather", "int64"] == objects
        assert calls["ncclAllGather", "uint8"] == objects


def test_resharding_of_simple_profiler_is_not_the_reduce_scatter(pair_of):
    """Its range of that name turns flat parameters into whole ones and back."""
    pair = pair_of("fsdp1-2-checkpoint")
    entered = printed(pair.traced, "SimpleProfiler")[0]
    for file in pair.traced.ranks():
        rows = [row for row in file.ledger_rows() if row["bucket"] == "RESHARDING"]
        assert sum(row["calls"] for row in rows) == CHECKPOINT_UNITS * CHECKPOINT_STEPS
        assert entered["resharding"] != CHECKPOINT_UNITS * CHECKPOINT_STEPS

"""Real frameworks have as many units and buckets as the model, each with its parameters' size and its calls."""

import math

import pytest
from lib import formulas, launch
from lib.build import LIBTPROF
from lib.cases import CASES, STEPS
from lib.layers import OPS, layers_of, left_of, rows_of
from test_fsdp_formulas import FSDP, REPLICATED


def calls(ranks, passes, **each):
    """Returns the calls of a unit, over all ranks and passes."""
    return {op: ranks * passes * each.get(op, 0) for op in OPS}


@pytest.mark.parametrize("name", FSDP)
def test_units_are_the_models_modules(name, pair_of):
    shard, model, ranks, reshard, dtype = FSDP[name]
    layers = layers_of(pair_of(name).traced.traces)
    world, again, replicas = CASES[name].ranks, int(reshard), int(name in REPLICATED)
    root = shard(model.root(), ranks), calls(world, STEPS, forward=1, scattered=1, reduced=replicas)
    block = shard(model.block(), ranks), calls(world, STEPS, forward=1, backward=again, scattered=1, reduced=replicas)
    assert rows_of(layers) == [root, *[block] * formulas.DEPTH]
    (group,) = layers["groups"]
    assert (group["ranks"], group["nranks"], group["rank_steps"]) == (list(range(world)), ranks, world * STEPS)
    assert all(row["elements"] == row["count"] * ranks and row["dtype"] == dtype for row in group["rows"])
    assert rows_of(layers, "bucket") == []
    assert {why for why, bucket in left_of(layers)} <= {"outside", "behind"}


def test_zero3_gathers_the_parameters_of_each_module_together(pair_of):
    """Each module that has parameters of its own is a unit; all gradients are one bucket."""
    layers = layers_of(pair_of("zero3-2").traced.traces)
    model = formulas.Model()
    shapes = [model.root()[:2], *[model.block()[:2], model.block()[2:]] * formulas.DEPTH, model.root()[2:]]
    parameters = model.root() + formulas.DEPTH * model.block()
    sizes = [sum(math.ceil(math.prod(shape) / 2) for shape in module) for module in shapes]
    assert [size for size, _ in rows_of(layers)] == sizes
    made = [calls for _, calls in rows_of(layers)]
    assert all(made[0] == calls for calls in made) and made[0]["forward"] == made[0]["backward"] > 2
    ((size, reduced),) = rows_of(layers, "bucket")
    assert size == sum(map(math.prod, parameters)) // 2
    assert reduced == dict.fromkeys(OPS, 0) | {"scattered": made[0]["forward"]}


def test_ddp_has_buckets_and_no_units(pair_of):
    layers = layers_of(pair_of("ddp-2").traced.traces)
    parameters = formulas.Model().root() + formulas.DEPTH * formulas.Model().block()
    assert rows_of(layers) == []
    buckets = rows_of(layers, "bucket")
    assert len(buckets) > 1 and sum(size for size, _ in buckets) == sum(map(math.prod, parameters))
    # The first of eight backward passes reduces all at once.
    assert all(made == calls(2, 7, reduced=1) for _, made in buckets)
    assert left_of(layers)["order", "ALLREDUCE"] == 2


@pytest.mark.parametrize("name", ["collectives-2", "objects-4", "point-to-point-4"])
def test_programs_that_train_nothing_have_no_layers(name, pair_of):
    layers = layers_of(pair_of(name).traced.traces)
    assert layers["groups"] == [] and layers["why"]


def test_units_are_named_for_the_modules_that_fsdp_says(torch, tmp_path):
    command = launch.without_agent("loops.py", 2, ("fsdp2", "--steps", "8", "--emit-nvtx"))
    run = launch.start(command, tmp_path, NVTX_INJECTION64_PATH=str(LIBTPROF))
    assert run.code == 0, run.stderr
    (group,) = layers_of(run.traces)["groups"]
    assert [row["name"] for row in group["rows"]] == ["(root)", *[f"blocks.{n}" for n in range(formulas.DEPTH)]]
    assert {row["named_by"] for row in group["rows"]} == {"module"}

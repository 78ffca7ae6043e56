"""Compares FSDP's collectives with the numbers that follow from the model's shapes."""

import collections
import math

import pytest
from lib import figures, formulas
from lib.cases import CASES, STEPS
from lib.thorough import ALL

PADDED = formulas.Model(width=65, hidden=251)
PLAIN = formulas.Model()

# case -> (how a unit is sharded, model, ranks that share a copy, resharded after forward, dtype
# of all-gathers)
FSDP = {
    "fsdp1-2": (formulas.shard_flat, PLAIN, 2, True, "float32"),
    "fsdp1-2-grad-op": (formulas.shard_flat, PLAIN, 2, False, "float32"),
    "fsdp1-4-padded": (formulas.shard_flat, PADDED, 4, True, "float32"),
    "fsdp1-4-hybrid": (formulas.shard_flat, PLAIN, 2, True, "float32"),
    "fsdp2-2": (formulas.shard_by_rows, PLAIN, 2, True, "float32"),
    "fsdp2-2-offload": (formulas.shard_by_rows, PLAIN, 2, True, "float32"),
    "fsdp2-2-kept": (formulas.shard_by_rows, PLAIN, 2, False, "bfloat16"),
    "fsdp2-4-padded": (formulas.shard_by_rows, PADDED, 4, True, "float32"),
    "fsdp2-4-hsdp": (formulas.shard_by_rows, PLAIN, 2, True, "float32"),
}
if ALL:
    FSDP["fsdp1-2-offload"] = FSDP["fsdp1-2"]
REPLICATED = [name for name in FSDP if name.endswith(("hybrid", "hsdp"))]


def expected(name: str) -> tuple[dict[int, int], dict[int, int], str, int]:
    shard, model, ranks, reshard, dtype = FSDP[name]
    root, block = shard(model.root(), ranks), shard(model.block(), ranks)
    gathers, scatters = formulas.gathers_and_scatters(root, block, STEPS, reshard)
    return gathers, scatters, dtype, ranks


def lines_by_count(file, function: str, dtype: str) -> dict[int, int]:
    return dict(
        collections.Counter(
            event["args"]["count"]
            for event in file.events
            if event["name"] == function and event["args"]["dtype"] == dtype
        )
    )


@pytest.mark.parametrize("name", FSDP)
def test_every_all_gather_and_reduce_scatter_has_the_formulas_size(name, pair_of):
    gathers, scatters, dtype, _ = expected(name)
    for file in pair_of(name).traced.ranks():
        assert lines_by_count(file, "ncclAllGather", dtype) == gathers, file.path
        assert lines_by_count(file, "ncclReduceScatter", "float32") == scatters, file.path


@pytest.mark.parametrize("name", FSDP)
def test_tally_has_the_formulas_totals(name, pair_of):
    """Uses the run without the preload, where there is one."""
    gathers, scatters, dtype, ranks = expected(name)
    pair = pair_of(name)
    for tally in (pair.plain or pair.traced).tallies().values():
        table = figures.of_tally(tally)
        for function, type_, sizes in (
            ("ncclAllGather", dtype, gathers),
            ("ncclReduceScatter", "float32", scatters),
        ):
            rows = [value for key, value in table.items() if key[1:3] == (function, type_)]
            count = sum(size * calls for size, calls in sizes.items())
            assert sum(row["calls"] for row in rows) == sum(sizes.values())
            assert sum(row["count"] for row in rows) == count
            assert sum(row["elements"] for row in rows) == count * ranks


@pytest.mark.parametrize("name", REPLICATED)
def test_replicas_all_reduce_each_shard_once_a_step(name, pair_of):
    _, scatters, _, ranks = expected(name)
    for file in pair_of(name).traced.ranks():
        # The replicas' communicator is as large as the shards' in a 2x2 mesh: it is the one
        # that no all-gather uses.
        sharded = {e["args"]["comm"] for e in file.events if e["name"] == "ncclReduceScatter"}
        assert len(sharded) == 1, file.path
        reduced = collections.Counter(
            e["args"]["count"]
            for e in file.events
            if e["name"] == "ncclAllReduce"
            and e["args"]["comm"] not in sharded
            and e["args"]["count"] > 1
        )
        assert dict(reduced) == scatters, file.path
        assert CASES[name].ranks == 2 * ranks


@pytest.mark.parametrize("name", [name for name in FSDP if name.startswith("fsdp1")])
def test_fsdp1_reduces_the_gradient_norm_once_a_step_and_ends_with_a_barrier(name, pair_of):
    for file in pair_of(name).traced.ranks():
        scalars = lines_by_count(file, "ncclAllReduce", "float32").get(1, 0)
        # With replicas the norm of the shards is reduced over the shards' communicator only.
        assert scalars == STEPS + 1, file.path


def test_cpu_offload_brings_every_shard_and_every_gradient_back_to_the_host(pair_of):
    """FSDP2 copies each parameter's shard once when it is wrapped, its gradient once a step."""
    shapes = PLAIN.root() + formulas.DEPTH * PLAIN.block()
    shards = collections.Counter(4 * math.prod(shape) // 2 for shape in shapes)
    for file in pair_of("fsdp2-2-offload").traced.ranks():
        back = collections.Counter(
            e["args"]["bytes"] for e in file.events if e["cat"] == "D2H" and e["args"]["bytes"] > 4
        )
        assert back == collections.Counter(
            {size: (1 + STEPS) * n for size, n in shards.items()}
        )

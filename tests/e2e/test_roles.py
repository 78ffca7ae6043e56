"""The tool guesses what communicators are for from what real frameworks sent on them."""

import pytest
from lib.tool import told

EXPECTED = {
    "fsdp2-4-hsdp": {"shard", "replicate"},
    "ddp-2": {"data"},
    "zero3-2": {"shard"},
    "collectives-2": set(),  # some of everything, and no backward pass
}


@pytest.mark.parametrize("name", EXPECTED)
def test_roles_are_those_that_the_program_gave(name, pair_of):
    traces = pair_of(name).traced.traces
    comms = told("summary", traces)[1]["comms"]
    assert {c["role"] for c in comms if c["role"]} == EXPECTED[name]
    for comm in comms:
        assert comm["role_guessed"] or comm["role"] is None
        if name == "fsdp2-4-hsdp" and comm["role"]:
            # The mesh is 2 by 2: shards next to each other, replicas across.
            apart = comm["ranks"][1] - comm["ranks"][0]
            assert apart == {"shard": 1, "replicate": 2}[comm["role"]]

"""The tool guesses what communicators are for from what real frameworks sent on them."""

import pytest
from lib.tool import told

# The ranks of one communicator are so far apart on the mesh of 2 by 2.
EXPECTED = {
    "fsdp2-4-hsdp": {"shard": 1, "replicate": 2},
    "mesh-4-fsdp": {"tensor": 1, "shard": 2},
    "mesh-4-sequence": {"tensor": 1, "shard": 2},
    "mesh-4-ddp": {"tensor": 1, "data": 2},
    "ddp-2": {"data": 1},
    "zero3-2": {"shard": 1},
    "collectives-2": {},  # some of everything, and no backward pass
}


@pytest.mark.parametrize("name", EXPECTED)
def test_roles_are_those_that_the_program_gave(name, pair_of):
    traces = pair_of(name).traced.traces
    comms = told("summary", traces)[1]["comms"]
    assert {c["role"] for c in comms if c["role"]} == set(EXPECTED[name])
    for comm in comms:
        assert comm["role_guessed"] or comm["role"] is None
        if comm["role"]:
            assert comm["ranks"][1] - comm["ranks"][0] == EXPECTED[name][comm["role"]]


@pytest.mark.parametrize("name", ["mesh-4-fsdp", "mesh-4-sequence", "mesh-4-ddp"])
def test_a_mesh_is_filtered_by_its_dimensions(name, pair_of):
    traces = pair_of(name).traced.traces
    whole = told("summary", traces)[1]["comms"]
    for word, apart in {"tp": 1, "dp": 2}.items():
        chosen = told("summary", traces, "--comm", word)[1]["comms"]
        assert chosen == [c for c in whole if c["ranks"][1] - c["ranks"][0] == apart] != []

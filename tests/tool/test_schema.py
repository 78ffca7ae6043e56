"""Checks rank files and merged traces against the contract, line by line."""

import json

from lib.build import GOLDEN
from lib.contract import SCHEMA
from lib.rankfile import lines_of
from lib.tool import generate, tprof


def assert_valid(file):
    for number, line in enumerate(lines_of(file)):
        errors = [error.message for error in SCHEMA.iter_errors(json.loads(line))]
        assert not errors, f"{file}, object {number}: {line[:200]}\n{errors[0][:300]}"


def test_merged_traces_follow_the_schema(tmp_path):
    """Merges a trace that is written by hand and one that is made for other tests, whose lines stand in it, too."""
    generate(tmp_path / "made", 2, 40)
    for traces in (GOLDEN / "two_ranks", tmp_path / "made"):
        merged = tmp_path / f"{traces.name}.json"
        assert tprof("merge", traces, "-o", merged).returncode == 0
        assert_valid(merged)


def test_schema_refuses_what_the_contract_does_not_allow():
    lines = [json.loads(line) for line in lines_of(GOLDEN / "two_ranks/rank-00000.json")]
    call = next(line for line in lines if line["name"] == "ncclAllGather")
    header = next(line for line in lines if line["name"] == "tprof_header")
    assert SCHEMA.is_valid(call) and SCHEMA.is_valid(header)
    without_bytes = {key: call["args"][key] for key in call["args"] if key != "bytes"}
    assert not SCHEMA.is_valid({**call, "args": without_bytes})
    assert not SCHEMA.is_valid({**call, "args": {**call["args"], "made_up": 1}})
    assert not SCHEMA.is_valid({**call, "cat": "H2D"})
    assert not SCHEMA.is_valid({**call, "args": {**call["args"], "result": 0}})
    assert not SCHEMA.is_valid({**header, "args": {**header["args"], "rank": "3"}})

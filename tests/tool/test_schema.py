"""Rank files and merged traces against the contract, line by line."""

import json

from conftest import GOLDEN, lines_of


def assert_valid(schema, file):
    for number, line in enumerate(lines_of(file)):
        errors = [error.message for error in schema.iter_errors(json.loads(line))]
        assert not errors, f"{file}, object {number}: {line[:200]}\n{errors[0][:300]}"


def test_generated_rank_files_follow_the_schema(schema, generate, tmp_path):
    generate(tmp_path, 2, 40)
    for file in sorted(tmp_path.iterdir()):
        assert_valid(schema, file)


def test_hand_written_rank_file_follows_the_schema(schema):
    assert_valid(schema, GOLDEN / "two_ranks/rank-00000.json")


def test_merged_trace_follows_the_schema(schema, tprof, tmp_path):
    merged = tmp_path / "merged.json"
    assert tprof("merge", GOLDEN / "two_ranks", "-o", merged).returncode == 0
    assert_valid(schema, merged)


def test_schema_refuses_what_the_contract_does_not_allow(schema):
    lines = [json.loads(line) for line in lines_of(GOLDEN / "two_ranks/rank-00000.json")]
    call = next(line for line in lines if line["name"] == "ncclAllGather")
    header = next(line for line in lines if line["name"] == "tprof_header")
    assert schema.is_valid(call) and schema.is_valid(header)
    without_bytes = {key: call["args"][key] for key in call["args"] if key != "bytes"}
    assert not schema.is_valid({**call, "args": without_bytes})
    assert not schema.is_valid({**call, "args": {**call["args"], "made_up": 1}})
    assert not schema.is_valid({**call, "cat": "H2D"})
    assert not schema.is_valid({**call, "args": {**call["args"], "result": 0}})
    assert not schema.is_valid({**header, "args": {**header["args"], "rank": "3"}})

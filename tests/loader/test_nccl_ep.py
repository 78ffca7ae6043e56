"""Calls of NCCL EP are passed on with all their arguments, counted, and have a bucket of their own."""

import subprocess

import pytest
from lib.build import BUILD
from lib.rankfile import closed, named
from lib.tool import told

CLIENT = BUILD / "nccl_ep_client"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ep")
    env = {"LD_PRELOAD": str(BUILD / "libtprof.so"), "TPROF_OUTPUT_DIR": str(folder)}
    plain = subprocess.run([CLIENT], capture_output=True, text=True, check=True)
    traced = subprocess.run([CLIENT], env=env, capture_output=True, text=True, check=True)
    assert (traced.stdout, traced.stderr) == (plain.stdout, plain.stderr) != ("0\n", "")
    return folder


def test_tokens_are_counted_on_the_communicator_of_their_group(traces):
    (rank_file,) = traces.glob("*.json")
    lines = closed(rank_file)
    counted = {
        (row["bucket"], row["name"], row["dtype"], row["comm"]): tuple(
            row[figure] for figure in ("calls", "count", "elements", "bytes")
        )
        for row in named(lines, "tprof_ledger")[-1]["rows"]
    }
    tokens = 5 * 64  # of this rank, whatever room there is for those of others
    assert counted == {
        ("EP", "ncclEpDispatch", "bfloat16", 1): (3, 3 * tokens, 3 * tokens, 6 * tokens),
        ("EP", "ncclEpCombine", "bfloat16", 1): (3, 3 * tokens, 3 * tokens, 6 * tokens),
        ("EP", "ncclEpComplete", "int8", 1): (3, 0, 0, 0),
    }


def test_calls_of_a_version_with_other_arguments_are_named(traces):
    (rank_file,) = traces.glob("*.json")
    unseen = named(closed(rank_file), "tprof_footer")[-1]["coverage"]["unseen"]
    assert {"path": "ncclEpDispatch", "kind": "uncounted"} in unseen


def test_the_summary_has_the_bucket(traces):
    _, summary = told("summary", traces)
    assert summary["buckets"]["EP"]["calls"] == summary["buckets"]["ALL"]["calls"] == 9

"""Functions that NCCL has and the nccl.h that we were built with may lack are passed on and counted."""

import subprocess

import pytest
from lib.build import BUILD
from lib.rankfile import closed, named
from lib.tool import told, tprof

CLIENT = BUILD / "newer_nccl_client"

# Calls, count, elements, bytes: 3 calls of 5 float32 on 2 ranks, of 6 int8, of 7 float64.
EXPECTED = {
    ("ALLGATHER", "ncclAllGatherConfig", "float32"): (3, 15, 30, 120),
    ("REDUCE", "ncclReduceConfig", "int8"): (3, 18, 18, 18),
    ("P2P", "ncclPutSignal", "float64"): (3, 21, 21, 168),
    ("P2P", "ncclSignal", "int8"): (3, 0, 0, 0),
    ("P2P", "ncclWaitSignal", "int8"): (3, 0, 0, 0),
}


def test_newer_functions_get_all_their_arguments_and_are_counted(tmp_path):
    env = {"LD_PRELOAD": str(BUILD / "libtprof.so"), "TPROF_OUTPUT_DIR": str(tmp_path)}
    plain = subprocess.run([CLIENT], capture_output=True, text=True, check=True)
    traced = subprocess.run([CLIENT], env=env, capture_output=True, text=True, check=True)
    assert (traced.stdout, traced.stderr) == (plain.stdout, plain.stderr) != ("0\n", "")

    (rank_file,) = tmp_path.glob("*.json")
    ledger = named(closed(rank_file), "tprof_ledger")[-1]
    counted = {
        (row["bucket"], row["name"], row["dtype"]): tuple(
            row[figure] for figure in ("calls", "count", "elements", "bytes")
        )
        for row in ledger["rows"]
    }
    assert counted == EXPECTED
    # One-sided calls have no part in the order of collectives.
    assert [comm["collectives"] for comm in ledger["comms"]] == [6]


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """Returns the traces of four ranks, of which two were there from the start."""
    folder = tmp_path_factory.mktemp("grown")
    for rank, world in ((0, 2), (1, 2), (2, 3), (3, 4)):
        env = {"LD_PRELOAD": str(BUILD / "libtprof.so"), "TPROF_OUTPUT_DIR": str(folder)}
        env |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
        subprocess.run([BUILD / "newer_nccl_grow", str(rank)], env=env, check=True)
    return folder


@pytest.mark.parametrize("merged", [False, True], ids=["files", "merged"])
def test_a_grown_communicator_is_one_to_ranks_that_know_it_by_different_names(grown, merged, tmp_path):
    """This holds also for the one that is split from it, and for the one that is grown from that."""
    path = grown
    if merged:
        path = tmp_path / "merged.json"
        assert tprof("merge", grown, "-o", path).returncode == 0
    found = [
        (c["nranks"], c["ranks"], c["collectives"], c["calls"])
        for c in told("summary", path)[1]["comms"]
    ]
    assert sorted(found) == [
        (2, [0, 1], 1, 2),
        (3, [0, 1, 2], 2, 6),
        (3, [0, 1, 2], 3, 9),
        (4, [0, 1, 2, 3], 4, 16),
    ]
    assert told("check", path)[1]["healthy"]


def test_one_sided_calls_have_no_other_end_to_miss(tmp_path):
    env = {"LD_PRELOAD": str(BUILD / "libtprof.so"), "TPROF_OUTPUT_DIR": str(tmp_path)}
    for rank in (0, 1):
        ranked = env | {"RANK": str(rank), "WORLD_SIZE": "2"}
        for events in ("on", "off"):
            subprocess.run(
                [CLIENT],
                env=ranked | {"TPROF_EVENTS": events, "TPROF_OUTPUT_DIR": str(tmp_path / events)},
                capture_output=True,
                check=True,
            )
            text = (tmp_path / events / f"rank-{rank:05}.json").read_text()
            (tmp_path / events / f"rank-{rank:05}.json").write_text(
                text.replace('"nranks":2,"rank":0', f'"nranks":2,"rank":{rank}')
            )
    for events in ("on", "off"):
        kinds = {f["kind"] for f in told("check", tmp_path / events)[1]["findings"]}
        assert kinds <= {"dropped"}

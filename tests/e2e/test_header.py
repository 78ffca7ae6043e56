"""The header of a rank file names its rank and its run, and the libraries that served it."""

import re

from lib.build import STANDIN
from lib.cases import CASES


def test_rank_and_world_size_are_the_launchers(case, pair):
    files = pair.traced.ranks()
    world = CASES[case].ranks
    assert [file.rank for file in files] == list(range(world))
    for file in files:
        assert (file.header["world_size"], file.header["local_rank"]) == (world, file.rank)
        assert file.path.name == f"rank-{file.rank:05}.json"


def test_all_ranks_of_a_run_carry_its_id(pair):
    assert len({file.header["run_id"] for file in pair.traced.ranks()}) == 1


def test_versions_and_paths_are_those_of_the_libraries_that_served(pair):
    for file in pair.traced.ranks():
        assert file.header["nccl_path"] == str(STANDIN / "libnccl.so.2")
        assert file.header["cudart_path"] == str(STANDIN / "libcudart.so.13")
        assert file.header["nccl_version"] // 10000 == 2
        assert file.header["cudart_version"] // 1000 == 13


def test_every_rank_used_the_gpu_of_its_local_rank(pair):
    for file in pair.traced.ranks():
        assert {comm["device"] for comm in file.comms} <= {file.rank}, file.path
        assert {e["args"]["device"] for e in file.events if "device" in e["args"]} <= {file.rank}


def test_command_is_the_scripts(pair_of):
    for file in pair_of("dataloader-2").traced.ranks():
        assert re.search(r"python\S* -u \S*dataloader\.py", file.header["command"]), file.header

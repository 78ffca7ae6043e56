"""Many libraries call NCCL: each is looked up once, and then costs what the first does."""

import shutil

import pytest
from lib import runs
from lib.build import BUILD, LIBTPROF

COUNT = BUILD / "libfault_count_loader.so"


@pytest.mark.parametrize("callers", [1, 16, 64, 65, 2000])
def test_libraries_from_several_threads_ask_the_loader_once_each(callers, tmp_path):
    plugins = []
    for i in range(callers):
        plugins.append(tmp_path / f"libplugin{i}.so")
        shutil.copyfile(BUILD / "libfault_plugin.so", plugins[-1])
    command = [str(BUILD / "callers"), *map(str, plugins)]
    traced = runs.run(tmp_path, command, LD_PRELOAD=f"{LIBTPROF}:{COUNT}", TPROF_QUOTA="1MiB", TPROF_RING_DIR="")  # a disk may be slow
    assert (traced.code, traced.stderr) == (0, "")
    said = {name: int(n) for name, n in map(str.split, traced.stdout.splitlines())}
    assert said["reopened"] == 0 and said["opened"] >= callers
    calls = 2 * callers * min(callers, 16) * 2
    lines = traced.only_rank_file()
    assert runs.ledger(lines) == {("ALLREDUCE", "ncclAllReduce", "float32"): (calls, calls * 16, 0, 0)}

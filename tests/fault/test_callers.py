"""Many libraries call NCCL: each is looked up once, and then costs what the first does."""

import shutil

from lib import runs
from lib.build import BUILD, LIBTPROF

CALLERS = 16
COUNT = BUILD / "libfault_count_loader.so"


def test_sixteen_libraries_from_sixteen_threads_ask_the_loader_once_each(tmp_path):
    plugins = []
    for i in range(CALLERS):
        plugins.append(tmp_path / f"libplugin{i}.so")
        shutil.copyfile(BUILD / "libfault_plugin.so", plugins[-1])
    command = [str(BUILD / "callers"), *map(str, plugins)]
    traced = runs.run(tmp_path, command, LD_PRELOAD=f"{LIBTPROF}:{COUNT}")
    assert (traced.code, traced.stderr) == (0, "")
    said = {name: int(n) for name, n in map(str.split, traced.stdout.splitlines())}
    assert said == {"reopened": 0, "open": 0, "counted": 1}
    calls = 2 * CALLERS * CALLERS * 2
    lines = traced.only_rank_file()
    assert runs.ledger(lines) == {("ALLREDUCE", "ncclAllReduce", "float32"): (calls, calls * 16, 0, 0)}

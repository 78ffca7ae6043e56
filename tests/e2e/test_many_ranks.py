"""Several ranks in one process, on the stand-in: each counts as if it had a process of its own."""

import subprocess

import pytest
from lib import figures, rankfile, tally
from lib.build import BUILD
from lib.launch import TIME_LIMIT_S, environment
from lib.tool import told

STEPS = 5

# name -> (processes, arguments, ranks)
SHAPES = {
    "one thread of four": (1, ("--devices", "4"), 4),
    "InitAll": (1, ("--devices", "4", "--all", "1"), 4),
    "two threads of two": (1, ("--threads", "2", "--devices", "2"), 4),
    "four threads": (1, ("--threads", "4"), 4),
    "two processes of two": (2, ("--devices", "2"), 4),
}


def launch(folder, processes, arguments, **extra):
    (folder / "tally").mkdir(parents=True)
    env = environment(folder) | {"PROCESSES": str(processes)} | extra
    env["MANY_RANKS_ID"] = str(folder / "id")
    command = [BUILD / "many_ranks", *arguments, "--steps", str(STEPS)]
    running = [
        subprocess.Popen(command, env=env | {"PROCESS": str(p)}, stderr=subprocess.PIPE, text=True)
        for p in range(processes)
    ]
    for process in running:
        _, stderr = process.communicate(timeout=TIME_LIMIT_S)
        assert (process.returncode, stderr) == (0, "")
    return folder


@pytest.fixture(scope="module", params=SHAPES.values(), ids=SHAPES)
def run(request, tmp_path_factory):
    processes, arguments, ranks = request.param
    return launch(tmp_path_factory.mktemp("run"), processes, arguments), processes, ranks


def test_every_communicator_of_every_rank_counts_what_the_tally_says(run):
    folder, processes, _ = run
    tallies = tally.by_pid(folder / "tally")
    files = [rankfile.read(file) for file in (folder / "traces").iterdir()]
    assert len(files) == processes
    for file in files:
        theirs = tallies[file.header["pid"]]
        assert len(file.comms) == len(theirs["comms"])
        assert not figures.difference(
            figures.by_member(figures.of_ledger(file), file.comms),
            figures.by_member(figures.of_tally(theirs), theirs["comms"]),
        )


def test_summary_says_of_each_rank_what_it_did(run):
    folder, _, ranks = run
    code, found = told("summary", folder / "traces")
    assert code == 0, found["findings"]
    assert (found["ranks"], found["missing_ranks"]) == (list(range(ranks)), [])
    per_rank = {name: bucket["per_rank"] for name, bucket in found["buckets"].items() if bucket}
    assert per_rank["ALLGATHER"]["bytes"] == [STEPS * 64 * ranks * 4] * ranks
    assert per_rank["RESHARDING"]["bytes"] == [STEPS * 32 * ranks * 4] * ranks
    assert per_rank["ALLREDUCE"]["calls"] == [STEPS] * ranks
    assert per_rank["H2D"]["calls"] == [STEPS * (r + 1) for r in range(ranks)]
    assert per_rank["H2D"]["bytes"] == [STEPS * 256 * (r + 1) ** 2 for r in range(ranks)]
    assert sorted((c["nranks"], c["ranks"]) for c in found["comms"]) == [
        (2, [0, 2]),
        (2, [1, 3]),
        (4, [0, 1, 2, 3]),
    ]


def test_check_finds_nothing_where_nothing_is(run):
    folder, *_ = run
    code, found = told("check", folder / "traces")
    assert code == 0, found


@pytest.mark.parametrize("shape", ["one thread of four", "two processes of two"])
def test_the_rank_that_differs_is_named(tmp_path, shape):
    processes, arguments, _ = SHAPES[shape]
    folder = launch(tmp_path / "run", processes, (*arguments, "--odd", "2"))
    code, found = told("check", folder / "traces")
    (finding,) = [f for f in found["findings"] if f["kind"] == "mismatch"]
    assert code == 1
    # Each step makes two collectives on the world: the reduce-scatter of the third is number 5.
    assert (finding["ranks"], finding["seq"], finding["function"]) == ([2], 5, "ncclReduceScatter")
    assert "rank 2 (device 2 of pid " in finding["text"]

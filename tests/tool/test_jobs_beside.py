"""Two jobs in one folder at one time are two jobs: neither attempts of each other, nor ranks that are claimed twice."""

import re

import pytest
from lib import handmade, jobs
from lib.tool import told, tprof

SECOND = 10**9


def copying(ranks, seed):
    calls = [jobs.Op("cudaMemcpyAsync", at, count=64) for at in range(1, 6)]
    return jobs.Job([], [jobs.Rank(list(calls), []) for _ in range(ranks)], seed)


def communicating(ranks, seed):
    return jobs.healthy(ranks, 12, seed, comms=[list(range(ranks))])


def place(folder, seed, name, ranks=2, starts=0, make=communicating, **header):
    """Puts the files of a job into the folder: its program, when it begins, what its headers say."""
    made = make(ranks, seed)
    for number, rank in enumerate(made.ranks):
        ours = {"run_id": None, "pid": 1000 * seed + number, "command": f"python {name}.py"}
        rank.header = ours | {"launcher": {"pid": 100 + seed, "start_ticks": 7}} | header
        rank.clock_ns = starts * SECOND
    folder.mkdir(exist_ok=True)
    for file in made.write(folder.parent / f"{folder.name}-{seed}").iterdir():
        file.rename(folder / f"{seed}-{file.name}")


def of(name, **how):
    return {"name": name, **how}


MEET = [{"rendezvous": f"{port:016x}"} for port in range(9)]
COPIES = {"make": copying, "nccl_path": None, "nccl_version": None}
ONE_PARENT = {"launcher": {"pid": 9, "start_ticks": 1}}
TOGETHER = "jobs of the same time"
KINDS = {
    "a trainer beside an engine": (TOGETHER, of("train", ranks=4, run_id="x"), of("engine", run_id="x")),
    "two torchruns of one id": (TOGETHER, of("a", run_id="x", **MEET[1]), of("b", run_id="x", **MEET[2])),
    "two torchruns without an id": (TOGETHER, of("a", **MEET[1]), of("b", **MEET[2])),
    "two engines without a launcher": (TOGETHER, of("a", launcher=None), of("b", launcher=None)),
    "two engines of one process": (TOGETHER, of("a", ranks=1), of("b", ranks=1)),
    "actors of one parent": (TOGETHER, of("a", **ONE_PARENT), of("b", **ONE_PARENT)),
    "a job beside one that only copies": (TOGETHER, of("a", **MEET[1]), of("b", **COPIES, **MEET[2])),
    "two that only copy": (TOGETHER, of("a", **COPIES), of("b", **COPIES)),
    "one after the other": ("runs", of("a"), of("b", starts=50)),
    "attempts": ("attempts of one run", of("a", run_id="x"), of("a", run_id="x", restart=1, starts=50)),
    "an attempt that was killed late":
        ("attempts of one run", of("a", run_id="x", **ONE_PARENT), of("a", run_id="x", restart=1, **ONE_PARENT)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_are_told_apart(kind, tmp_path):
    called, *given = KINDS[kind]
    folder = tmp_path / "all"
    for seed, job in enumerate(given, start=1):
        place(folder, seed, **job)
    status, found = told("check", folder)
    assert status == 0 and [f["kind"] for f in found["findings"]] == ["other_run"], found
    text = found["findings"][0]["text"]
    assert text.startswith(f"there are 2 {called}; this is the last to start, ")
    shown, left = re.search(r"to start, (\S+); not shown: (\S+) \(ranks", text).groups()
    seen = []
    for label in (shown, left) if called != "attempts of one run" else ():
        status, one = told("summary", folder, "--run", label)
        assert status == 0 and one["findings"] == []
        command = re.findall(r"  command   (.*)", tprof("summary", folder, "--run", label, "--verbose").stdout)
        seen.append((command, one["ranks"]))
    expected = [([f"python {job['name']}.py"], list(range(job.get("ranks", 2)))) for job in given]
    assert sorted(seen) == sorted(expected) or called == "attempts of one run"
    for command in (["summary"], ["report"], ["doctor"], ["top", "--once"], ["merge", "-o", tmp_path / "merged.json"]):
        done = tprof(command[0], folder, *command[1:])
        assert done.returncode == 0 and called in " ".join((done.stdout + done.stderr).split()), command


def test_groups_that_a_communicator_joins_are_one_job_and_nobody_is_claimed(tmp_path):
    """An engine gets its weights through a communicator that holds rank 0 of the trainer and all of its own."""
    folder = tmp_path / "all"
    place(folder, 1, "train", ranks=4, **MEET[1])
    place(folder, 2, "engine", **MEET[2])
    for member, name in enumerate(("1-rank-00000", "2-rank-00000", "2-rank-00001")):
        feed = handmade.comm(comm=9, id="feed", nranks=3, rank=member) | {"pid": int(name[-1])}
        handmade.insert(folder / f"{name}.json", feed, before='"tprof_comm"')
    for command in ("summary", "check"):
        status, found = told(command, folder)
        said = {f["kind"]: f["text"] for f in found["findings"]}
        assert status == 0 and list(said) == ["rank_groups"], said
        assert "2 groups of processes" in said["rank_groups"]
        assert "ranks 0-3 on node0 (python train.py)" in said["rank_groups"]
        assert "ranks 0,1 on node0 (python engine.py)" in said["rank_groups"]


def test_replica_groups(tmp_path):
    folder = tmp_path / "all"
    for group in range(1, 9):
        place(folder, group, f"group{group}", ranks=4, run_id="x", **MEET[group])
    status, found = told("check", folder)
    assert status == 0 and [f["kind"] for f in found["findings"]] == ["other_run"]
    assert found["findings"][0]["text"].startswith("there are 8 jobs, some of the same time;")
    for group in range(1, 9):
        assert told("summary", folder, "--run", f"x#{group}")[1]["ranks"] == [0, 1, 2, 3]


def differing(folder, value_of, ranks=8):
    """Makes a job whose ranks have these fields in their headers."""
    job = communicating(ranks, 1)
    for number, rank in enumerate(job.ranks):
        rank.header = value_of(number)
    return job.write(folder)


DIFFER = {
    "one rank": (lambda r: {"env": {"NCCL_ALGO": "Tree" if r == 7 else "Ring"}}, "NCCL_ALGO: Ring on ranks 0-6, Tree on rank 7"),
    "one rank has it": (lambda r: {"env": {"NCCL_PROTO": "LL"} if r == 3 else {}}, "NCCL_PROTO: not set on ranks 0-2,4-7, LL on rank 3"),
    "one host": (lambda r: {"host": f"h{r // 4}", "env": {"NCCL_BUFFSIZE": str(r // 4)}}, "NCCL_BUFFSIZE: 0 on ranks 0-3, 1 on ranks 4-7"),
    "NCCL": (lambda r: {"nccl_version": 22703 if r == 1 else 22809}, "different versions of NCCL: 22703 on rank 1, 22809 on ranks 0,2-7"),
    "tprof": (lambda r: {"tprof_version": "0.2" if r == 1 else "0.1"}, "different versions of tprof: 0.1 on ranks 0,2-7, 0.2 on rank 1"),
}  # fmt: skip
ONES_OWN = {
    "devices": lambda r: {"env": {"CUDA_VISIBLE_DEVICES": str(r % 2)}},
    "each rank's": lambda r: {"env": {"NCCL_DEBUG_FILE": f"log{r}"}},
    "each local rank's": lambda r: {"host": f"h{r // 4}", "local_rank": r % 4, "env": {"NCCL_IB_HCA": f"mlx{r % 4}"}},
    "each host's": lambda r: {"host": f"h{r // 2}", "env": {"GLOO_SOCKET_IFNAME": f"eth{r // 2}"}},
}


@pytest.mark.parametrize("kind", DIFFER)
def test_what_differs_between_ranks_is_told_with_whose_it_is(kind, tmp_path):
    value_of, said = DIFFER[kind]
    folder = differing(tmp_path / "job", value_of)
    for command in ("summary", "check", "report", "doctor"):
        assert said in " ".join(tprof(command, folder).stdout.split()), command


@pytest.mark.parametrize("kind", ONES_OWN)
def test_what_is_each_ones_own_is_no_finding(kind, tmp_path):
    folder = differing(tmp_path / "job", ONES_OWN[kind])
    assert told("summary", folder)[1]["findings"] == []
    ((name, _),) = ONES_OWN[kind](0)["env"].items()
    (env,) = re.findall(r"  env .*", tprof("summary", folder, "--verbose").stdout)
    assert f" {name}=" in env and "(rank" in env


def test_a_setting_of_one_rank_is_not_printed_as_the_jobs(tmp_path):
    given = lambda r: {"config": {"TPROF_QUOTA": "1MiB" if r == 0 else "2MiB"}}  # noqa: E731
    folder = differing(tmp_path / "job", given)
    for command in (["summary", folder, "--verbose"], ["doctor", folder]):
        assert "TPROF_QUOTA=1MiB (rank 0), 2MiB (ranks 1-7)" in tprof(*command).stdout

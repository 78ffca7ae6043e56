"""tprof replay: its lines make the calls of the job. This follows from what nccl-tests makes of its
options and, where nccl-tests is there, from running them."""

import collections
import random
import shlex

import nccl_tests
import pytest
from lib import figures, jobs, launch, loops, rankfile, signatures, tally
from lib.build import BUILD
from lib.tool import told, tprof

TYPES = {"half": "float16", "float": "float32", "double": "float64", "f8e4m3": "float8e4m3", "f8e5m2": "float8e5m2"}
OPS = {"mulsum": "custom"}
FUNCTIONS = {f"{p.name}_perf": p.functions for p in nccl_tests.PROGRAMS}
REDUCES = ("all_reduce_perf", "reduce_scatter_perf", "reduce_perf")
ROOTED = ("broadcast_perf", "reduce_perf", "gather_perf", "scatter_perf")
PARTS = ("all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "gather_perf", "scatter_perf")


def made_by(command):
    """Returns (function, dtype, count, ranks, reduction, root) -> calls on all ranks, by nccl-tests' sources."""
    program, *words = command.split()
    given = dict(nccl_tests.pairs(tuple(words)))
    numbers = nccl_tests.DEFAULTS | {k: int(v) for k, v in given.items() if k in nccl_tests.DEFAULTS}
    ranks = numbers["-t"] * numbers["-g"]
    dtype = TYPES.get(given["-d"], given["-d"])
    size = figures.SIZE[dtype]
    assert given["-b"] == given["-e"]
    count = int(given["-b"]) // size
    if program in PARTS:
        count = count // ranks & ~(16 // size - 1)
    reduce = OPS.get(given.get("-o", "sum"), given.get("-o", "sum")) if program in REDUCES else None
    root = int(given.get("-r", 0)) if program in ROOTED else None
    calls = nccl_tests.executed_per_line(numbers) * ranks
    return {(function, dtype, count, ranks, reduce, root): calls for function in FUNCTIONS[program]}


def of_lines(commands):
    total = collections.Counter()
    for command in commands:
        total.update(made_by(command))
    return total


def of_job(job):
    """Returns the same for what the job's ranks do; peers of sends and receives are no roots."""
    total = collections.Counter()
    for rank in job.ranks:
        for op in rank.ops:
            if op.comm is not None and not op.captured:
                total[key_of(job, op)] += 1
    return total


def key_of(job, op):
    root = None if op.function in ("ncclSend", "ncclRecv") else op.peer
    return op.function, op.dtype, op.count, len(job.comms[op.comm]), op.reduce, root


def reasons(found):
    """Returns (why, function) -> calls that no line makes."""
    total = collections.Counter()
    for left in found["left"]:
        total[left["why"], left["function"]] += left["calls"]
    return total


def replay(folder, *more, code=0):
    returned, found = told("replay", folder, *more)
    assert (returned, found["schema"]) == (code, "tprof-replay/1")
    # All calls are either in the lines or left out, with all that they moved.
    summary = told("summary", folder)[1]["buckets"]
    for figure in ("calls", "elements", "bytes"):
        together = sum(entry[figure] for entry in (*found["lines"], *found["left"]))
        assert together == sum(b[figure] for name, b in summary.items() if name in set(figures.BUCKET.values()))
    return found


def random_job(seed):
    """Makes a job of random collectives on communicators of several sizes, each call once to five times."""
    dice = random.Random(seed)
    loop = loops.Loop([[0, 1, 2, 3], [0, 2], [1, 3], [0, 1, 2]], seed)
    for _ in range(60):
        comm, function = dice.randrange(4), dice.choice(jobs.COLLECTIVES)
        members = loop.job.comms[comm]
        count = dice.choice((1, 3, 16, 100, 1024, 65536))
        dtype = dice.choice(list(jobs.SIZES))
        reduce = dice.choice(signatures.REDUCTIONS[1:]) if function in jobs.REDUCING else None
        peer = dice.randrange(len(members)) if function in jobs.ROOTED else None
        for _ in range(dice.randint(1, 5)):
            op = jobs.Op(function, loop.at, count, comm, dtype, reduce, peer)
            for rank in members:
                loop.job.ranks[rank].ops.append(op)
            loop.at += 1
    for _ in range(3):
        for rank in range(3):
            loop.send(rank, (rank + 1) % 3, 77, comm=3)
    return loop.job


@pytest.mark.parametrize("seed", range(4))
def test_lines_make_the_calls_of_the_job_and_no_others(seed, tmp_path):
    job = random_job(seed)
    found = replay(job.write(tmp_path / "job"))
    expected, made = of_job(job), of_lines(line["command"] for line in found["lines"])
    left = {
        key: "once" if calls == key[3] else "size"
        for key, calls in expected.items()
        if calls == key[3] or (key[0] in jobs.TIMES_RANKS and key[2] * figures.SIZE[key[1]] % 16)
    }
    assert made == {key: calls for key, calls in expected.items() if key not in left}
    assert made["ncclSend", "bfloat16", 77, 3, None, None] == made["ncclRecv", "bfloat16", 77, 3, None, None] == 9
    unmade = collections.Counter()
    for key in left:
        unmade[key[0]] += expected[key]
    assert sum(unmade.values()) == sum(reasons(found).values()) > 0
    for (why, function), calls in reasons(found).items():
        assert why in ("once", "size") and calls <= unmade[function]


def test_lines_stand_in_the_order_in_which_their_calls_came(tmp_path):
    job = random_job(1)
    came = {}
    for op in sorted((op for rank in job.ranks for op in rank.ops), key=lambda op: op.at):
        came.setdefault(key_of(job, op), op.at)
    found = replay(job.write(tmp_path / "job"))
    order = [min(came[key] for key in made_by(line["command"])) for line in found["lines"]]
    assert order == sorted(order) and len(order) > 10


def test_the_script_is_the_lines_and_says_what_each_stands_for(tmp_path):
    folder = random_job(0).write(tmp_path / "job")
    script = tprof("replay", folder).stdout.splitlines()
    lines = [line for line in script if not line.startswith("#")]
    found = told("replay", folder)[1]["lines"]
    assert [line.split("  # ")[0] for line in lines] == [line["command"] for line in found]
    for line, of in zip(lines, found, strict=True):
        assert shlex.split(line, comments=True) == of["words"]
        ranks = f"{of['nranks']} rank" + "s" * (of["nranks"] > 1)
        assert f"# {of['times']} {' and '.join(of['calls_of'])} on each of {ranks}, count {of['count']:,}" in line
        assert of["calls"] == of["times"] * of["nranks"] * len(of["calls_of"])
    mpi = told("replay", folder, "--mpi")[1]["lines"]
    for one, other in zip(found, mpi, strict=True):
        size = str(one["nranks"])
        in_one = one["command"].replace(f"-g {size} ", "-g 1 ")
        assert other["command"] == f"mpirun -np {size} {in_one}"


def test_a_merged_trace_has_the_same_lines(tmp_path):
    folder = random_job(2).write(tmp_path / "job")
    assert tprof("merge", folder, "-o", tmp_path / "m.json.gz").returncode == 0
    assert replay(tmp_path / "m.json.gz") == replay(folder)


def test_what_no_line_makes_has_a_reason(tmp_path):
    loop = loops.Loop([[0, 1, 2, 3]])
    for _ in range(6):
        loop.gather(1024)
        loop.reduce(0)
        loop.send(0, 1, 64)  # a pipeline's send: no ring
    ranks = loop.job.ranks
    ranks[2].ops.append(jobs.Op("ncclAllReduce", loop.at, 512, 0, "float32", "sum"))
    ranks[0].ops.append(jobs.Op("ncclBroadcast", loop.at, 512, 0, "float32", peer=0, captured=True))
    ranks[0].launches = 5
    ranks[3].no_line = {0}
    found = replay(loop.job.write(tmp_path / "job"))
    # One rank has one line of the gathers less, so the others have one too many.
    assert [line["times"] for line in found["lines"]] == [5]
    assert reasons(found) == {
        ("no_line", "ncclAllGather"): 1, ("ranks", "ncclAllGather"): 3, ("size", "ncclAllReduce"): 24,
        ("ranks", "ncclAllReduce"): 1, ("ring", "ncclSend"): 6, ("ring", "ncclRecv"): 6,
        ("graph", "ncclBroadcast"): 5,
    }  # fmt: skip
    text = tprof("replay", tmp_path / "job").stdout
    assert "# Not repeated:\n#   5 ncclBroadcast, 10.00 KiB: launches of CUDA graphs made them\n" in text


def test_ranks_without_a_file_leave_their_communicator_out(tmp_path):
    folder = random_job(1).write(tmp_path / "job")
    (folder / "rank-00003.json").unlink()
    found = replay(folder)
    assert {line["nranks"] for line in found["lines"]} <= {2, 3}
    assert any(why == "ranks" for why, _ in reasons(found))


def counted(folder):
    """Returns (function, dtype, ranks) -> calls, elements and bytes, as the stand-in counted them."""
    total = collections.Counter()
    for process in tally.read_all(folder):
        size = {comm["ordinal"]: comm["nranks"] for comm in process["comms"]}
        for (_, function, dtype, comm, mode), of in figures.of_tally(process).items():
            if comm is not None and mode != "captured":
                for figure in ("calls", "elements", "bytes"):
                    total[function, dtype, size[comm], figure] += of[figure]
    return +total


def sized(run):
    """Returns the ledger's rows by function, type and size class."""
    total = collections.Counter()
    for path in run.traces.iterdir():
        for row in rankfile.read(path).ledger_rows():
            if row["comm"] is not None and row["mode"] != "captured":
                for figure in ("calls", "count", "elements", "bytes"):
                    total[row["name"], row["dtype"], row["bytes_class"], figure] += row[figure]
    return +total


def many_ranks(folder):
    """Runs four ranks in a process; two communicators of two together make one line."""
    return launch.start([BUILD / "many_ranks", 4, 5], folder)


def test_of_a_traced_job_they_make_what_the_stand_in_counted(tmp_path):
    run = many_ranks(tmp_path)
    found = replay(run.traces)
    assert found["left"] == [] and sorted(line["communicators"] for line in found["lines"]) == [1, 1, 2]
    made = collections.Counter()
    for (function, dtype, count, ranks, _, _), calls in of_lines(line["command"] for line in found["lines"]).items():
        elements = count * (ranks if function in figures.COUNT_IS_PER_RANK else 1)
        of = {"calls": calls, "elements": elements * calls, "bytes": elements * figures.SIZE[dtype] * calls}
        made.update({(function, dtype, ranks, figure): value for figure, value in of.items()})
    assert made == counted(run.tally)


def traced_program(name, *options):
    return lambda folder: launch.start([nccl_tests.folder() / f"{name}_perf", "-c", "0", *options], folder)


SIZES = ("-b", "1K", "-e", "4K", "-f", "2")
RERUN = {"many_ranks": many_ranks} | {
    program.name: traced_program(program.name, *SIZES, "-g", "4", *more)
    for program, more in zip(
        (p for p in nccl_tests.PROGRAMS if p.times == "once"),
        (("-n", "4"), ("-n", "1", "-o", "mulsum", "-d", "half"), ("-n", "3", "-d", "int8"), ("-n", "0", "-r", "3"),
         ("-n", "2", "-w", "2", "-r", "-1"), ("-d", "double", "-o", "max", "-r", "1"), ("-o", "avg", "-m", "3"),
         ("-t", "1", "-n", "7"), ("-n", "5", "-d", "uint8")),
        strict=True,
    )
}  # fmt: skip


@pytest.mark.skipif(nccl_tests.why_not() is not None, reason=nccl_tests.why_not() or "")
@pytest.mark.parametrize("job", RERUN)
def test_run_they_make_the_same_ledger(job, tmp_path):
    run = RERUN[job](tmp_path / "job")
    assert run.code == 0, run.stdout
    found = replay(run.traces)
    assert found["lines"] and found["left"] == []
    script = tmp_path / "replay.sh"
    script.write_text("set -e\n" + tprof("replay", run.traces).stdout)
    path = f"{nccl_tests.folder()}:/usr/bin:/bin"
    again = launch.start(["/bin/sh", script], tmp_path / "again", PATH=path)
    assert again.code == 0 and again.words_of_ours() == [], again.stdout + again.stderr
    assert counted(again.tally) == counted(run.tally)
    assert sized(again) == sized(run)

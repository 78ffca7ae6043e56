"""tprof check on jobs whose messages do not meet: it names the message and the rank, and nobody who only waits. NCCL lets
the k-th send of a rank to another meet the k-th receive there, so that is how the tests count too."""

import dataclasses
import itertools
import random

import pytest
from lib import jobs
from lib.thorough import some
from lib.tool import tprof, worse_than_notes
from test_check_ended import ANY, values_of

LONG, SHORT = 300_000, 100  # 30 s and 10 ms, as places in the program
GROUPS = itertools.count(1)


class Program:
    """The calls of each rank of some communicators, in its order."""

    def __init__(self, comms, streams=None):
        ranks = range(1 + max(itertools.chain(*comms)))
        self.comms, self.streams = comms, streams or [0] * len(comms)
        self.ops = [[] for _ in ranks]
        self.made = {}  # (comm, from, to, function) -> how many

    def add(self, rank, function, comm, count, peer=None, group=None):
        message = function in ("ncclSend", "ncclRecv")
        key = (comm, rank, peer, function)
        number = self.made[key] = self.made.get(key, -1) + 1
        reduce = "sum" if function == "ncclAllReduce" else None
        op = jobs.Op(
            function, len(self.ops[rank]) + 1, count, comm, "float32", reduce, peer if message else None,
            stream=self.streams[comm], group=group,
        )  # fmt: skip
        self.ops[rank].append(op)
        return number

    def send(self, a, b, count=16, comm=0, group=None):
        self.add(a, "ncclSend", comm, count, self.comms[comm].index(b), group)

    def receive(self, a, b, count=16, comm=0, group=None):
        self.add(a, "ncclRecv", comm, count, self.comms[comm].index(b), group)

    def exchange(self, rank, sizes, comm=0, dropped=()):
        """One all-to-all of grouped messages: sizes(from, to), by ranks of the communicator."""
        group, me = next(GROUPS), self.comms[comm].index(rank)
        for peer in range(len(self.comms[comm])):
            if ("ncclSend", me, peer) not in dropped:
                self.add(rank, "ncclSend", comm, sizes(me, peer), peer, group)
            if ("ncclRecv", me, peer) not in dropped:
                self.add(rank, "ncclRecv", comm, sizes(peer, me), peer, group)

    def reduce(self, rank, comm=0):
        self.add(rank, "ncclAllReduce", comm, 500)

    def job(self, end="recovered", places=LONG, seed=5):
        job = jobs.Job(self.comms, [], seed)
        last = max(len(ops) for ops in self.ops)
        for rank, ops in enumerate(self.ops):
            order = [comm for comm, members in enumerate(self.comms) if rank in members]
            job.ranks.append(jobs.Rank(ops, order, end=end, until=last + places, host=0))
        return job


def alike(count):
    return lambda a, b: count


def uneven(seed):
    """Sizes as a router of experts chooses them, none among them."""
    return lambda a, b: random.Random(f"{seed} {a} {b}").choice([0, 0, 1, 40, 77, 500])


def warm(program, rank, steps=8, comms=1):
    for step in range(steps):
        program.exchange(rank, alike(250))
        program.exchange(rank, uneven(step))
        for comm in range(comms):
            program.reduce(rank, comm)


def in_order(ranks, odd, calls, comms=1, streams=None, later=0):
    """All ranks make these calls behind their steps, and one of them the other way round."""
    program = Program([list(range(ranks))] * comms, streams)
    for rank in range(ranks):
        warm(program, rank, comms=comms)
        for call in reversed(calls) if rank == odd else calls:
            call(program, rank)
        for _ in range(later):
            program.exchange(rank, alike(250))
    return program


def all_to_all(count):
    return lambda program, rank: program.exchange(rank, alike(count))


def reduction(comm):
    return lambda program, rank: program.reduce(rank, comm)


def lone(function, ranks, grouped):
    """The last of the first two ranks' messages has one end only."""
    program = Program([list(range(ranks))])
    for rank in range(ranks):
        warm(program, rank)
    group = next(GROUPS) if grouped else None
    program.add(0, "ncclSend", 0, 300, 1, group)
    program.add(1, "ncclRecv", 0, 300, 0, group)
    rank, peer = (0, 1) if function == "ncclSend" else (1, 0)
    program.add(rank, function, 0, 300, peer, group)
    for rank in range(ranks):
        program.reduce(rank)
    return program


def with_closed(job, rank):
    job.ranks[rank].end = "closed"
    return job


def without_lines(job):
    for rank in job.ranks:
        rank.quota = 0
    return job


def splits(ranks):
    """They do not fit for some pairs."""
    program, wrong = Program([list(range(ranks))]), {(0, 1): 300, (0, 2): 50}
    for rank in range(ranks):
        warm(program, rank)
        program.exchange(rank, lambda a, b, me=rank: wrong.get((a, b), 100) if a == me != b else 100)
        program.reduce(rank)
    return program


def two_of_a_pair():
    program = Program([[0, 1, 2, 3]])
    for rank in range(4):
        program.reduce(rank)
    for count in (10, 20):
        program.send(2, 3, count)
        program.receive(3, 2, 30 - count)
    return program


def pipeline(stages, microbatches, missing=None):
    """1F1B; each stage sends what it computed and receives what comes next in one batch."""
    program = Program([list(range(stages))])
    for stage in range(stages):
        warmup = min(stages - stage - 1, microbatches)
        order = [("F", n) for n in range(warmup)]
        for n in range(microbatches - warmup):
            order += [("F", warmup + n), ("B", n)]
        order += [("B", n) for n in range(microbatches - warmup, microbatches)]
        group = next(GROUPS)
        for kind, n in order:
            before, behind = (stage - 1, stage + 1) if kind == "F" else (stage + 1, stage - 1)
            if 0 <= before < stages:
                if kind == "B" and missing and n >= missing[1] and stage <= missing[0]:
                    break  # its host waits for the gradient
                program.receive(stage, before, 32, group=group)
                if kind == "F" and missing and stage > missing[0] and n >= missing[1]:
                    break
            if 0 <= behind < stages and (kind, stage, n) != ("F", *(missing or (None, None))):
                group = next(GROUPS)
                program.send(stage, behind, 32, group=group)
    return program



ENDS = {"ncclSend": (1, "ncclRecv"), "ncclRecv": (0, "ncclSend")}  # of a lone message: who does not call the other one
# The job; kind, severity, ranks and number of the only finding, or nothing; values that it tells.
JOBS = {
    **{
        f"two all-to-alls of a communicator that one of {ranks} swaps, {later} behind":
            (in_order(ranks, ranks - 1, [all_to_all(250), all_to_all(600)], later=later).job(),
             # With two ranks no side is the majority.
             ("p2p_sizes", "error", [0, 1] if ranks == 2 else [ranks - 1], 16), "1000 B", "2.34 KiB", f"group of {2 * ranks}")
        for ranks in (2, 3, 5, 8) for later in (0, 700)
    },
    **{
        f"an all-to-all and a reduction of another communicator, {ranks} ranks, streams {streams}":
            (in_order(ranks, 1, [all_to_all(250), reduction(1)], 2, streams).job(),
             ("group_order", "error" if streams[0] == streams[1] else "warning", [1], None), f"group of {2 * ranks}")
        for ranks in (3, 4, 8) for streams in ([0, 0], [7, 7], [1, 2])
    },
    # One communicator orders its messages and collectives, whatever their streams: a deadlock by itself.
    **{
        f"an all-to-all and a reduction of one communicator, killed {places} behind":
            (in_order(3, 2, [all_to_all(250), reduction(0)]).job(places=places), ("group_order", "error", [2], None))
        for places in (LONG, SHORT)
    },
    **{
        f"a lone {function} of {ranks} ranks":
            (lone(function, ranks, grouped).job(), ("hang", "error", [absent], 17), other, "1.17 KiB", "17 times")
        for function, (absent, other) in ENDS.items() for ranks, grouped in ((2, False), (3, True), (8, True))
    },
    # It may be in flight when a job is killed.
    **{f"a lone {function}, killed at once": (lone(function, 3, True).job(places=SHORT), None) for function in ENDS},
    **{
        f"a lone {function}, the other rank closed":
            (with_closed(lone(function, 2, True).job(places=SHORT), absent), (ANY, ANY, [absent], ANY), other)
        for function, (absent, other) in ENDS.items()
    },
    # In a killed job only the rings tell that no rank had made a call for long, and these have no ring.
    "a lone receive, without lines": (without_lines(lone("ncclRecv", 3, True).job("closed")), ("unmatched_p2p", ANY, ANY, ANY)),
    "a lone receive, killed without lines": (without_lines(lone("ncclRecv", 3, True).job()), None),
    "a lone receive, all closed": (lone("ncclRecv", 3, True).job("closed"), ("unmatched_p2p", ANY, [0, 1], ANY), "ncclRecv"),
    **{
        f"splits of {ranks} ranks": (splits(ranks).job(places=SHORT), ("p2p_sizes", "error", [0], 16), "200 B", "400 B", "1.17 KiB")
        for ranks in (3, 4, 8)
    },
    "two messages of a pair in another order": (two_of_a_pair().job(), ("p2p_sizes", "error", [2, 3], 0)),
    # Rank 1 stands in the receive, so its gradient does not come, and all others only wait.
    "a microbatch that a stage does not send": (pipeline(4, 6, missing=(0, 5)).job(), ("hang", ANY, ANY, ANY), "ncclRecv 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", some(JOBS, 2))
def test_the_message_and_its_rank_are_named(name, tmp_path):
    job, expected, *values = JOBS[name]
    findings = worse_than_notes(job.write(tmp_path / "job"))
    assert len(findings) == (expected is not None), [f["text"] for f in findings]
    for f in findings:
        seq = f["seq"] if f["kind"] != "group_order" else None
        assert (f["kind"], f["severity"], f["ranks"], seq) == expected
        assert [value for value in values if value not in values_of(f)] == []
        assert not name.startswith("a microbatch") or set(f["ranks"]) <= {0, 1}


def healthy(seed):
    rng = random.Random(seed)
    ranks = rng.randint(2, 8)
    comms = [list(range(ranks)), sorted(rng.sample(range(ranks), rng.randint(2, ranks)))]
    program = Program(comms, rng.choice([[0, 0], [1, 2]]))
    shape = rng.choice(["experts", "pipeline", "pairs"])
    if shape == "pipeline":
        program = pipeline(ranks, rng.randint(1, 9))
    for step in range(rng.randint(1, 12)):
        comm = rng.randrange(len(program.comms))
        for rank in program.comms[comm]:
            if shape == "experts":
                program.exchange(rank, uneven((seed, step)), comm)
                program.reduce(rank, comm)
            elif shape == "pairs":
                group, me = next(GROUPS), program.comms[comm].index(rank)
                n = len(program.comms[comm])
                program.add(rank, "ncclSend", comm, 1000 * me + step, (me + 1) % n, group)
                program.add(rank, "ncclRecv", comm, 1000 * ((me - 1) % n) + step, (me - 1) % n, group)
    return rng, program


@pytest.mark.parametrize("tenth", range(10))
def test_healthy_jobs_say_nothing_however_they_end(tmp_path, tenth):
    for seed in range(12 * tenth, 12 * tenth + 12):
        rng, program = healthy(seed)
        end = rng.choice(["closed", "recovered"])
        stands = rng.random() < 0.5
        job = program.job(end, LONG if stands else SHORT)
        if end == "recovered" and not stands:  # at work: each host is somewhere else
            at = rng.randint(1, max(len(rank.ops) for rank in job.ranks))
            for rank in job.ranks:
                rank.ops = rank.ops[: max(1, at - rng.randint(0, 12))]
                rank.until = at + SHORT
        for rank in job.ranks:
            some = rng.random()
            if some < 0.2:
                rank.quota = rng.randint(0, 20)
            elif some < 0.3:
                rank.lines = False
        result = tprof("check", job.write(tmp_path / str(seed)))
        # Collectives that not all came to are told of a killed job as ever.
        said = [line for line in result.stdout.splitlines() if line.startswith(("error", "warning"))]
        assert [line for line in said if " never came to collective " not in line] == [], seed


def test_captured_messages_meet_when_their_graph_is_launched(tmp_path):
    program = lone("ncclRecv", 2, True)
    job = program.job()
    for rank in job.ranks:
        rank.launches = 3
        rank.ops = [dataclasses.replace(op, captured=op.function in ("ncclSend", "ncclRecv")) for op in rank.ops]
    assert worse_than_notes(job.write(tmp_path / "job")) == []

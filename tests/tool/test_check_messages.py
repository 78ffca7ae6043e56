"""tprof check on jobs whose messages do not meet: it names the message and the rank, and nobody who only waits. NCCL lets
the k-th send of a rank to another meet the k-th receive there, so that is how the tests count too."""

import dataclasses
import itertools
import random

import pytest
from lib import jobs
from lib.tool import tprof, worse_than_notes

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


def found(program, tmp_path, **how):
    return worse_than_notes(program.job(**how).write(tmp_path / "job"))


def only(findings):
    assert len(findings) == 1, [f["text"] for f in findings]
    return findings[0]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("later", [0, 700])
def test_two_all_to_alls_of_one_communicator_that_a_rank_swaps(tmp_path, ranks, later):
    program = Program([list(range(ranks))])
    odd = ranks - 1
    for rank in range(ranks):
        warm(program, rank)
        for count in (600, 250) if rank == odd else (250, 600):
            program.exchange(rank, alike(count))
        for _ in range(later):
            program.exchange(rank, alike(250))
    finding = only(found(program, tmp_path))
    both = ranks == 2  # no side is the majority
    assert (finding["kind"], finding["severity"]) == ("p2p_sizes", "error")
    assert (finding["ranks"], finding["seq"]) == ([0, 1] if both else [odd], 16)
    assert f"the two ends of message 16 from rank 0 to rank {odd} differ: 1000 B sent, 2.34 KiB to be received" in finding["text"]
    evidence = "\n".join(finding["evidence"])
    assert f"in a group of {2 * ranks}" in evidence and "the next: 2.34 KiB" in evidence
    assert f"rank {odd} makes these two calls in the opposite order" in evidence
    assert ("no side is the majority" in evidence) == both


@pytest.mark.one_of(3)
@pytest.mark.parametrize("ranks", [3, 4, 8])
@pytest.mark.parametrize("streams", [[0, 0], [7, 7], [1, 2]])
def test_an_all_to_all_and_a_collective_of_another_communicator_in_another_order(tmp_path, ranks, streams):
    program = Program([list(range(ranks)), list(range(ranks))], streams)
    odd = 1
    for rank in range(ranks):
        warm(program, rank, comms=2)
        calls = [lambda r: program.exchange(r, alike(250)), lambda r: program.reduce(r, 1)]
        for call in reversed(calls) if rank == odd else calls:
            call(rank)
    finding = only(found(program, tmp_path))
    one_stream = streams[0] == streams[1]
    assert (finding["kind"], finding["ranks"]) == ("group_order", [odd])
    assert finding["severity"] == ("error" if one_stream else "warning")
    others = [rank for rank in range(ranks) if rank != odd]
    assert finding["text"].startswith("ranks 0,2")
    assert f"of communicator {Program.job(program).id(0)}, in a group of {2 * ranks} before collective 8 of" in finding["text"]
    assert "rank 1 the other way round" in finding["text"] and len(others) == ranks - 1


@pytest.mark.parametrize("places", [LONG, SHORT])
def test_one_communicator_orders_its_messages_and_collectives(tmp_path, places):
    """Whatever their streams, so that the other order is a deadlock by itself."""
    program = Program([[0, 1, 2]])
    for rank in range(3):
        warm(program, rank)
        calls = [lambda r: program.exchange(r, alike(250)), program.reduce]
        for call in reversed(calls) if rank == 2 else calls:
            call(rank)
    finding = only(found(program, tmp_path, places=places))
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("group_order", "error", [2])


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


@pytest.mark.parametrize("function, absent", [("ncclSend", 1), ("ncclRecv", 0)])
@pytest.mark.parametrize("ranks, grouped", [(2, False), (3, True), (8, True)])
def test_a_message_with_one_end_in_a_job_that_stands(tmp_path, function, absent, ranks, grouped):
    finding = only(found(lone(function, ranks, grouped), tmp_path))
    other = {"ncclSend": "ncclRecv", "ncclRecv": "ncclSend"}[function]
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("hang", "error", [absent])
    assert (finding["seq"], finding["function"]) == (17, other)
    way = "to rank 1" if function == "ncclSend" else "from rank 0"
    assert f"rank {absent} never called the {other} for which rank {1 - absent} called {function} 17 {way} of 1.17 KiB" in finding["text"]
    assert f"18 times, which called {other} 17 times" in "\n".join(finding["evidence"])


@pytest.mark.parametrize("function", ["ncclSend", "ncclRecv"])
def test_a_message_may_be_in_flight_when_a_job_is_killed(tmp_path, function):
    assert found(lone(function, 3, True), tmp_path, places=SHORT) == []


@pytest.mark.parametrize("closed", ["ncclSend", "ncclRecv"])
def test_a_rank_that_closed_calls_no_end_any_more(tmp_path, closed):
    job = lone(closed, 2, True).job(places=SHORT)
    absent = 1 if closed == "ncclSend" else 0
    job.ranks[absent].end = "closed"
    finding = only(worse_than_notes(job.write(tmp_path / "job")))
    assert finding["ranks"] == [absent] and "never called the" in finding["text"], finding


@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_splits_that_do_not_fit_for_some_pairs(tmp_path, ranks):
    program = Program([list(range(ranks))])
    wrong = {(0, 1): 300, (0, 2): 50}
    for rank in range(ranks):
        warm(program, rank)
        program.exchange(rank, lambda a, b, me=rank: wrong.get((a, b), 100) if a == me != b else 100)
        program.reduce(rank)
    finding = only(found(program, tmp_path, places=SHORT))
    assert (finding["kind"], finding["severity"], finding["ranks"]) == ("p2p_sizes", "error", [0])
    assert finding["text"].endswith(
        "the two ends of message 16 from rank 0 to rank 1 differ: 1.17 KiB sent, 400 B to be received; 2 pairs of ranks have such a message, each with rank 0"
    )
    assert "message 16 from rank 0 to rank 2: 200 B sent, 400 B to be received" in finding["evidence"]


def test_two_messages_of_a_pair_in_another_order(tmp_path):
    program = Program([[0, 1, 2, 3]])
    for rank in range(4):
        program.reduce(rank)
    program.send(2, 3, 10)
    program.send(2, 3, 20)
    program.receive(3, 2, 20)
    program.receive(3, 2, 10)
    finding = only(found(program, tmp_path))
    assert (finding["kind"], finding["ranks"], finding["seq"]) == ("p2p_sizes", [2, 3], 0)
    assert "rank 3 makes these two calls in the opposite order" in finding["evidence"]


def test_a_microbatch_that_a_stage_does_not_send(tmp_path):
    """Rank 1 stands in the receive, so its gradient does not come, and all others only wait."""
    program = pipeline(4, 6, missing=(0, 5))
    finding = only(found(program, tmp_path))
    assert finding["kind"] == "hang" and set(finding["ranks"]) <= {0, 1}
    assert "rank 1 called ncclRecv 5 from rank 0" in finding["text"] + "\n".join(finding["evidence"])


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


@pytest.mark.parametrize("end, kinds", [("closed", ["unmatched_p2p"]), ("recovered", [])])
def test_without_lines_the_ledgers_tell_that_a_message_lacks_an_end(tmp_path, end, kinds):
    """In a killed job only where the rings tell that no rank had made a call for long, and these have no ring."""
    job = lone("ncclRecv", 3, True).job(end)
    for rank in job.ranks:
        rank.quota = 0
    findings = worse_than_notes(job.write(tmp_path / "job"))
    assert [f["kind"] for f in findings] == kinds
    assert all("some have no counterpart" in f["text"] for f in findings)


def test_captured_messages_meet_when_their_graph_is_launched(tmp_path):
    program = lone("ncclRecv", 2, True)
    job = program.job()
    for rank in job.ranks:
        rank.launches = 3
        rank.ops = [dataclasses.replace(op, captured=op.function in ("ncclSend", "ncclRecv")) for op in rank.ops]
    assert worse_than_notes(job.write(tmp_path / "job")) == []

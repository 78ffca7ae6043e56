"""tprof check of PyTorch's Flight Recorder dumps: real ones, those that others published with their truth, jobs made here
by Python's own pickle module, and bytes that are none."""

import copy
import json
import pickle
import random
import struct
import subprocess
import sys

import pytest
from lib import launch
from lib.build import REPO
from lib.tool import told, tprof, worse_than_notes

PUBLISHED = REPO.parent / "shared/data/external/flight_recorder"

# Rank 1 makes one collective fewer than rank 0.
PROGRAM = """
import os, sys, time, torch, torch.distributed as dist
from torch._C import _distributed_c10d as c10d
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
pair = dist.new_group([0, 1], group_desc="pair")
t = torch.ones(10, device="cuda")
for _ in range(3): dist.all_reduce(t)
dist.all_reduce(t, group=pair)
torch.cuda.synchronize()
if rank == 0: dist.all_gather_into_tensor(torch.empty(20, device="cuda"), t, group=pair)
time.sleep(0.5)
os.makedirs(f"{folder}/pickle", exist_ok=True), os.makedirs(f"{folder}/json", exist_ok=True)
open(f"{folder}/pickle/nccl_trace_rank_{rank}", "wb").write(c10d._dump_nccl_trace(True, True, False))
open(f"{folder}/json/x_comm_lib_trace_rank_{rank}", "wb").write(c10d._dump_nccl_trace_json(True, False))
os._exit(0)
"""


def test_what_pytorch_itself_dumps(torch, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "tally").mkdir()
    env = launch.environment(tmp_path, preload=False, TORCH_FR_BUFFER_SIZE="100")
    command = [sys.executable, tmp_path / "program.py"]
    ranks = [subprocess.Popen([*map(str, command), str(rank), str(tmp_path)], env=env) for rank in (0, 1)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    reports = [told("check", tmp_path / form)[1] for form in ("pickle", "json")]
    [hang] = [f for f in reports[0]["findings"] if f["severity"] == "error"]
    [pair] = [c for c in reports[0]["communicators"] if c["name"] == "pair"]
    assert (hang["kind"], hang["ranks"], hang["seq"], hang["function"]) == ("hang", [1], 1, "ncclAllGather")
    assert hang["communicator"] == pair["id"]
    assert "ncclAllGather of 10 float32" in " ".join(hang["evidence"])
    assert reports[0]["findings"] == reports[1]["findings"]


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="shared/data/external is not here")
@pytest.mark.parametrize(
    "fault, kind, ranks", [("gpu_error_1st", "lost_device", [[12, 14]]), ("lock_gil_1st", "hang", [[9], [14]])]
)
def test_published_hangs(fault, kind, ranks):
    worse = worse_than_notes(PUBLISHED / fault)
    assert [(f["kind"], f["ranks"], f["severity"]) for f in worse] == [(kind, rank, "error") for rank in ranks]


OPERATIONS = {  # PyTorch's name -> NCCL's, elements in and out of a rank, for 16 elements a rank of `n`
    "all_reduce": ("ncclAllReduce", lambda n: (16, 16)),
    "_all_gather_base": ("ncclAllGather", lambda n: (16, 16 * n)),
    "_reduce_scatter_base": ("ncclReduceScatter", lambda n: (16 * n, 16)),
    "broadcast": ("ncclBroadcast", lambda n: (16, 16)),
}


class Dumps:
    """A job of groups whose ranks make the same calls, until somebody changes that. Devices ended the first `ended` calls of
    each rank, of all that it made in all groups."""

    def __init__(self, groups, calls=40, seed=1):
        self.groups, draw = groups, random.Random(seed)
        self.size = 1 + max(max(ranks) for ranks in groups.values())
        order = [(draw.choice(list(groups)), draw.choice(list(OPERATIONS))) for _ in range(calls)]
        self.calls = [[call for call in order if rank in groups[call[0]]] for rank in range(self.size)]
        self.ended = [len(calls) for calls in self.calls]
        self.messages = [[] for _ in range(self.size)]  # (group, "send" or "recv", peer)
        self.scale = {}  # (rank, call) -> how much larger it is there
        self.begun = set()  # ranks whose device has begun the first call that it has not ended
        self.status = {}  # (rank, group) -> how many messages it made and ended, in a group without entries
        self.batches = []  # (group, ranks): each of these has sent to its next in a batch with what it receives

    def dump(self, rank, only_active=False):
        mine = [g for g, ranks in self.groups.items() if rank in ranks]
        numbers = {g: str(10 * i) for i, g in enumerate(self.groups)}
        seq, done, entries = dict.fromkeys(mine, 0), dict.fromkeys(mine, 0), []
        sent = 0

        def add(group, name, ended, into, out, message=0, state=None):
            entries.append({
                "record_id": len(entries), "pg_id": mine.index(group), "process_group": (numbers[group], group),
                "collective_seq_id": seq[group], "p2p_seq_id": message, "op_id": seq[group],
                "profiling_name": f"nccl:{name}", "time_created_ns": 10**18 + len(entries) * 10**6,
                "input_sizes": [[into // 4, 4]], "input_dtypes": ["BFloat16"],
                "output_sizes": [[out]], "output_dtypes": ["BFloat16"], "state": state or ("completed" if ended else "scheduled"),
                "time_discovered_started_ns": None, "time_discovered_completed_ns": 10**18 + 10**9 if ended else None,
                "retired": ended, "timeout_ms": 600000, "is_p2p": message != 0, "frames": [], "duration_ms": 0.5,
            })  # fmt: skip

        for i, (group, name) in enumerate(self.calls[rank]):
            seq[group] += 1
            done[group] += i < self.ended[rank]
            into, out = OPERATIONS[name][1](len(self.groups[group]))
            scale = self.scale.get((rank, i), 1)
            add(group, name, i < self.ended[rank], into * scale, out * scale,
                state="started" if i == self.ended[rank] and rank in self.begun else None)  # fmt: skip
        for group, ranks in self.batches:  # PyTorch tells of their end in the last entry alone
            if rank in ranks:
                sent += 1
                me, n = self.groups[group].index(rank), len(ranks)
                add(group, f"send {me}->{(me + 1) % n}", False, 16, 16, sent)
                add(group, f"recv {me}<-{(me - 1) % n}", False, 16, 16, sent)
                add(group, "coalesced", True, 16, 16, sent)
        for group, way, peer in self.messages[rank]:
            me, other = self.groups[group].index(rank), self.groups[group].index(peer)
            sent += 1
            add(group, f"send {me}->{other}" if way == "send" else f"recv {me}<-{other}", False, 16, 16, sent)
        for group in mine:
            if (rank, group) in self.status:
                seq[group] = done[group] = self.status[rank, group]
        return {
            "version": "2.10",
            "pg_config": {numbers[g]: {"name": numbers[g], "desc": g, "ranks": str(self.groups[g])} for g in mine},
            "comm_lib_version": "2.28.9",
            "pg_status": {
                str(i): {"last_enqueued_collective": seq[g], "last_started_collective": -1, "last_completed_collective": done[g]}
                for i, g in enumerate(mine)
            },
            "entries": [e for e in entries if not (only_active and e["state"] == "completed")],
        }  # fmt: skip

    def write(self, folder, form="pickle", only_active=False):
        folder.mkdir()
        for rank in range(self.size):
            dump = self.dump(rank, only_active)
            made = pickle.dumps(dump, protocol=2) if form == "pickle" else json.dumps(dump).encode()
            (folder / f"nccl_trace_rank_{rank}").write_bytes(made)
        return folder


GROUPS = {"default_pg": [0, 1, 2, 3], "tp": [0, 1], "tp2": [2, 3], "dp": [0, 2], "dp2": [1, 3]}


WORLD = {"default_pg": [0, 1, 2, 3]}


def run(job):
    """Lets the devices end their calls in order: one ends where all ranks of its group have come to it."""
    at = [0] * job.size

    def next_of(rank):
        calls = job.calls[rank]
        if at[rank] == len(calls):
            return None
        group = calls[at[rank]][0]
        return group, sum(g == group for g, _ in calls[: at[rank]])

    while True:
        ready = {n for rank in range(job.size) if (n := next_of(rank)) and all(next_of(r) == n for r in job.groups[n[0]])}
        if not ready:
            break
        for group, _ in ready:
            for rank in job.groups[group]:
                at[rank] += 1
    job.ended = at
    return job


def host_stops(job, rank, calls):
    """The hosts read what each call on default_pg gives before they go on; one makes so many calls only."""
    whole = [list(of_rank) for of_rank in job.calls]
    job.calls = [[] for _ in whole]
    while True:
        made = [len(of_rank) for of_rank in job.calls]
        for r, of_rank in enumerate(whole):
            reads = made[r] and of_rank[made[r] - 1][0] == "default_pg" and job.ended[r] < made[r]
            if made[r] < len(of_rank) and not reads and (r != rank or made[r] < calls):
                job.calls[r] = of_rank[: made[r] + 1]
        run(job)
        if made == [len(of_rank) for of_rank in job.calls]:
            return job


def first_on_world(calls):
    return next(i for i, (group, _) in enumerate(calls) if group == "default_pg")


def all_in_one(job):
    """Every rank came, so it is no rank that holds them up. It may also be a dump of a job that ran."""
    job.ended = [max(i for i, (group, _) in enumerate(calls) if group == "default_pg") for calls in job.calls]


def stopped(rank):
    def change(job):
        job.calls[rank] = job.calls[rank][:-3]
        run(job)

    return change


def lost(further):
    def change(job):
        job.calls = [[("default_pg", "all_reduce")] * (30 + further * (rank == 2)) for rank in range(4)]
        job.ended = [21, 21, 20, 21]

    return change


def later_dump(job):
    """Rank 1's device has ended what others had not called."""
    job.calls = [[("default_pg", "all_reduce")] * (30 if rank == 1 else 20) for rank in range(4)]
    job.ended = [18, 25, 19, 18]


def older_dumps(made, ended):
    def change(job):
        job.calls = [[("default_pg", "all_reduce")] * n for n in made]
        job.ended = list(ended)

    return change


def lost_in_a_broadcast(job):
    job.calls = [[("default_pg", name) for name in ["all_reduce"] * 20 + ["broadcast"] * 5 + ["all_reduce"] * 5]] * 4
    job.ended = [28, 28, 20, 28]


def pipeline_that_ended(job):
    job.status = {(0, "pp"): 64, (1, "pp"): 128, (2, "pp"): 128, (3, "pp"): 64}


def one_way_further(job):
    """Rank 3's device has ended what rank 2 sent, and rank 2's device has not."""
    job.messages[2] = [("tp2", way, 3) for way in ("recv", "send", "recv", "send")]
    job.messages[3] = [("tp2", "send", 2)] * 2


def lost_among_messages(job):
    lost(1)(job)
    one_way_further(job)


def skipped(job):
    job.calls = [[("default_pg", "all_reduce")] * 11 for _ in range(4)]
    job.calls[0][10] = ("dp", "all_reduce")
    job.ended = [10] * 4


def not_begun(job):
    job.ended, job.begun = [20] * 4, {0, 1, 3}


def batches(job):
    job.batches = [("default_pg", [0, 1, 2, 3])] * 3


def message(job):
    job.messages[0], job.messages[1] = [("tp", "send", 1)], [("tp", "recv", 0)]


def message_without_its_other_end(job):
    job.messages[0] = [("default_pg", "send", 1), ("default_pg", "recv", 3)]
    job.messages[1] = [("default_pg", "recv", 0)]


def one_call_more(job):
    job.calls[3].insert(20, ("default_pg", "broadcast" if job.calls[3][20][1] == "all_reduce" else "all_reduce"))
    job.ended = [20] * 4


def another_size(job):
    job.scale[2, first_on_world(job.calls[2])] = 2
    whole = [list(calls) for calls in job.calls]
    job.calls = [calls[: first_on_world(calls)] for calls in job.calls]
    run(job)
    job.calls = whole


def other_way_round(job):
    rest = [("default_pg", "all_reduce"), ("also", "all_reduce")] * 4
    job.calls = [[("default_pg", "all_reduce")] * 3 + rest for _ in range(4)]
    job.calls[3][3:5] = reversed(job.calls[3][3:5])
    job.ended = [3] * 4


# groups, seed, what happens to their job, and what is found that is worse than a note: kind and ranks
JOBS = {
    "nobody waits": (GROUPS, 1, lambda job: None, []),
    "all devices stand in one collective": (GROUPS, 1, all_in_one, [("hang", 0, 1, 2, 3)]),
    **{f"host {rank} stops": (GROUPS, rank, stopped(rank), [("hang", rank)]) for rank in range(4)},
    **{f"a device is lost, its host made {n} calls more": (WORLD, 3, lost(n), [("lost_device", 2)]) for n in (1, 4)},
    # A rank that waits for its own device is not blamed.
    **{f"host {rank} stops after {n} calls, and all wait for devices": (
        GROUPS, n, lambda job, rank=rank, n=n: host_stops(job, rank, n), [("hang", rank)])
       for n in range(4, 16) for rank in range(4)},
    "one device has not begun what others have": (WORLD, 1, not_begun, [("hang", 2)]),
    "batches have ended": (GROUPS, 1, batches, []),
    "both have called a message": (GROUPS, 1, message, [("hang", 0, 1)]),
    "a message has no other end": (GROUPS, 1, message_without_its_other_end, [("hang", 3)]),
    "dumps are of other times": (WORLD, 1, later_dump, []),
    "a dump is older, and a host stops": (WORLD, 1, older_dumps([20, 15, 20, 10], [15, 15, 15, 9]), [("hang", 1)]),
    "a dump is older, and its host has the same calls left": (WORLD, 1, older_dumps([20, 20, 20, 15], [18, 18, 18, 9]), []),
    "a dump is older, and a device is lost": (WORLD, 1, older_dumps([30, 15, 30, 30], [21, 9, 20, 21]), [("lost_device", 2)]),
    "most dumps are older": (WORLD, 1, older_dumps([20, 12, 10, 14], [18, 11, 9, 13]), []),
    "a lost device's first call is a broadcast": (WORLD, 1, lost_in_a_broadcast, [("lost_device", 2)]),
    "a pipeline has ended": (GROUPS | {"pp": [0, 1, 2, 3]}, 1, pipeline_that_ended, []),
    "one device ended a message more": (GROUPS, 1, one_way_further, [("unended",)]),
    "a device is lost, and others ended its messages": (GROUPS, 1, lost_among_messages, [("lost_device", 2)]),
    "one skips a call of all": (GROUPS, 1, skipped, [("hang", 0)]),
    "one makes one call more than most": (WORLD, 1, one_call_more, [("mismatch", 3)]),
    "a call has another size": (GROUPS, 1, another_size, [("mismatch", 2)]),
    "two calls are the other way round": (WORLD | {"also": [0, 1, 2, 3]}, 1, other_way_round, [("group_order", 3)]),
}  # fmt: skip


@pytest.mark.one_of(4)
@pytest.mark.parametrize(("form", "only_active"), [("pickle", False), ("pickle", True), ("json", True)])
@pytest.mark.parametrize("name", JOBS)
def test_who_holds_up_the_others(name, form, only_active, tmp_path):
    groups, seed, change, expected = JOBS[name]
    job = Dumps(groups, seed=seed)
    change(job)
    folder = job.write(tmp_path / "d", form, only_active)
    worse = worse_than_notes(folder)
    assert [(f["kind"], *f["ranks"]) for f in worse] == expected
    if name.startswith("all devices"):
        seq = sum(group == "default_pg" for group, _ in job.calls[0]) - 1
        assert (worse[0]["severity"], worse[0]["seq"]) == ("warning", seq)
    if name.startswith("dumps are"):
        assert [f["kind"] for f in told("check", folder)[1]["findings"]] == ["running"]


def test_other_commands_and_names_without_a_rank(tmp_path):
    folder = Dumps(GROUPS).write(tmp_path / "d")
    done = tprof("summary", folder)
    assert done.returncode == 2 and "tprof check reads it" in done.stderr
    (folder / "nccl_trace_rank_0").rename(folder / "dump.json")
    done = tprof("check", folder / "dump.json")
    assert done.returncode == 2 and "its rank" in done.stderr


def refused(path, made):
    """Returns what is said of these bytes, in one line and soon."""
    path.write_bytes(made)
    done = tprof("check", path, timeout=20)
    assert done.returncode == 2, done.stdout
    assert done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_dump_cut_at_any_byte(tmp_path):
    whole = pickle.dumps(Dumps({"default_pg": [0, 1]}, calls=1).dump(0), protocol=2)
    for size in range(0, len(whole), 1 if len(whole) < 700 else 3):
        refused(tmp_path / "nccl_trace_rank_0", whole[:size])


class Runs:
    def __reduce__(self):
        return (print, ("it ran",))


HOSTILE = {
    "opcode 0x63": pickle.dumps({"version": Runs()}, protocol=2),
    "ends within": b"\x80\x02X\xff\xff\xff\x7fabc",
    "deeper than in any dump": b"\x80\x02" + b"(" * 10**6,
    "more values than any dump has": b"\x80\x02" + b"]" * 10**7,
    "a memo with more entries": b"\x80\x02}r\xff\xff\xff\x7f.",
    "an empty memo entry": b"\x80\x02h\x05.",
    "a value is missing": b"\x80\x02.",
    "a mark is missing": b"\x80\x02u.",
    "a value that can't hold them": b"\x80\x02K\x01K\x02K\x03s.",
    "more than 64 bits": b"\x80\x02\x8a\x09" + bytes(9) + b".",
    "expected JSON": b'{"pg_config": ' + b"[" * 10**6,
    "formats 2.4 to 2.10": b"\x80\x02}.",
    "impossible rank": pickle.dumps({"version": "2.9", "pg_config": {"0": {"ranks": "[99999999999]"}}}, protocol=2),
}


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_bytes(said, tmp_path):
    assert said in refused(tmp_path / "nccl_trace_rank_0", HOSTILE[said])


def test_numbers_that_can_not_be(tmp_path):
    good = Dumps({"default_pg": [0, 1]}, calls=4).dump(0)
    for key in ("collective_seq_id", "time_created_ns"):
        for value in (-1, 2**62 + 1):
            bad = copy.deepcopy(good)
            bad["entries"][1][key] = value
            assert key in refused(tmp_path / "nccl_trace_rank_0", pickle.dumps(bad, protocol=2))
    bad = copy.deepcopy(good)
    bad["entries"][1]["input_sizes"] = bad["entries"][1]["output_sizes"] = [[2**40, 2**40]]
    assert "impossible size" in refused(tmp_path / "nccl_trace_rank_0", pickle.dumps(bad, protocol=2))


def test_a_list_within_itself_and_lists_shared_a_million_times(tmp_path):
    itself = []
    itself.append(itself)
    shared = [1]
    for _ in range(40):
        shared = [shared] * 2
    for more in (itself, shared):
        made = pickle.dumps(Dumps({"default_pg": [0]}, calls=3).dump(0) | {"more": more}, protocol=2)
        assert "more values than any dump has" in refused(tmp_path / "nccl_trace_rank_0", made)


def test_later_protocols_of_plain_values(tmp_path):
    dump = Dumps({"default_pg": [0]}, calls=3).dump(0)
    for protocol in (2, 4, 5):
        (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps(dump, protocol=protocol))
        assert tprof("check", tmp_path).returncode == 0
    refused(tmp_path / "nccl_trace_rank_0", pickle.dumps(dump, protocol=0)[:1] + struct.pack("<Q", 0))

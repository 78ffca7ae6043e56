"""tprof summary --by layer: every call is in the unit that made it, or is said not to be known."""

import collections
import dataclasses
import json
import random
import re

import pytest
from lib import jobs, loops
from lib.layers import OPS, layers_of, left_of, rows_of
from lib.tool import told, tprof

SYNCS = ((1, False), (3, False), (3, True))  # micro-batches, and whether only the last one reduces
LANE = 1 << 22


def forward(units):
    return " ".join(f"g{size}" for size in units) + " "


def backward(units, again=(), frozen=(), scatter=True):
    """Numbers units from 0, as they are gathered. `again`: those that the backward pass gathers, too."""
    words = ["|"]
    for n in reversed(range(len(units))):
        words += [f"g{units[n]}"] * (n in again) + [f"s{units[n]}"] * (scatter and n not in frozen)
    return " ".join([*words, ". "])


@pytest.mark.parametrize("seed", range(8))
def test_each_call_is_in_the_unit_that_made_it(tmp_path, seed):
    """Models have equal or different units, are resharded after the forward pass or kept, and accumulate."""
    rng = random.Random(seed)
    few = rng.sample(range(1000, 9000), 3)
    sizes = [20000, *(rng.choice(few) for _ in range(rng.randrange(1, 9)))]
    ranks = rng.choice([2, 4])
    again = rng.choice([(), range(1, len(sizes))])  # the root is kept
    accumulate, no_sync = SYNCS[seed % len(SYNCS)]
    evaluate = rng.choice([0, 1, 2])
    made, program, kept = collections.Counter(), "", False
    for step in range(6):
        program += "S "
        for i in range(accumulate):
            reduces = not no_sync or i + 1 == accumulate
            program += "b " + forward(sizes[kept:]) + backward(sizes, again, scatter=reduces)
            for n in range(len(sizes)):
                made[n, "forward"] += not (kept and n == 0)
                made[n, "backward"] += n in again
                made[n, "scattered"] += reduces
            kept = False
        program += "r1 "
        if evaluate and step % evaluate == 0:
            program += f"c{loops.BATCH // 2} " + forward(sizes)
            kept = True  # the root is still gathered
    layers = layers_of(loops.Loop([list(range(ranks))]).run(program).job.write(tmp_path / "job"))
    if no_sync and not again:  # nothing stands between the forward passes: they look like one of a larger model
        assert layers["groups"] == []
        return
    (group,) = layers["groups"]
    assert group["ranks"] == list(range(ranks))
    assert not any(row["kind"] == "bucket" or row["name"] for row in group["rows"])
    assert rows_of(layers) == [(size, {op: ranks * made[n, op] for op in OPS}) for n, size in enumerate(sizes)]
    assert {why for why, bucket in left_of(layers)} <= {"behind", "data", "outside"}


def unit(size, *made):
    """`made`: how often a rank gathers it in the passes, and scatters and reduces it."""
    return ("unit", size, *made, *(0,) * (4 - len(made)))


FOUR, LIKE = [9000, 500, 500, 700], [9000, 500, 500, 500]
PLAIN = "S b " + forward(LIKE) + backward(LIKE, (1, 2, 3)) + "r1 "
BRANCHES = [300, 400, 300, 400]
DDP = "S b {0} | {1} r110000 . " + 5 * "S b {0} | {1} r40000 r40000 r30000 . "
BUCKETS = [("bucket", size, 0, 0, 0, 5) for size in (40_000, 40_000, 30_000)]
STAGES = "S b g500 g500 g700@1 | s500 s500 s700@1 . "
REPLICAS = "S b " + "".join(f"g{n} g{n}@1 " for n in (9000, 500, 500)) + "| " + "".join(
    f"s{n} s{n}@1 r{n}@2 r{n}@3 " for n in (500, 500, 9000))  # fmt: skip
# communicators, what is called, the groups of ranks with their rows, and what is left, of all ranks
JOBS = {
    "a unit is frozen": (
        [[0, 1]], 7 * ("S b " + forward(FOUR) + backward(FOUR, (1, 2, 3), frozen=(3,))),
        [([0, 1], [unit(9000, 7, 0, 7), unit(500, 7, 7, 7), unit(500, 7, 7, 7), unit(700, 7, 7, 0)])], {},
    ),
    "one of several units of a size is frozen": (
        [[0, 1]], 7 * ("S b " + forward(LIKE) + backward(LIKE, frozen=(2,))),
        [([0, 1], [unit(9000, 7, 0, 7)])], {("order", "RESHARDING"): 28},
    ),
    "sizes show that the last of two branches to be gathered is not the first to come back": (
        [[0, 1]], 7 * ("S b " + forward(BRANCHES) + backward(BRANCHES[::-1])),
        [], {("order", "RESHARDING"): 56},
    ),
    "passes gather units another number of times": (
        [[0, 1]], "".join("S b " + forward([9000, *[500] * (4 + n % 5)]) + backward(LIKE) for n in range(8)),
        [([0, 1], [unit(9000, 8, 0, 8)])], {("order", "RESHARDING"): 48},
    ),
    "a teacher has the shape of the student, so that nothing tells to which of them the gradients belong": (
        [[0, 1]], 7 * ("S b " + 2 * forward(LIKE[:3]) + backward(LIKE[:3], (1, 2))),
        [], {("order", "RESHARDING"): 42},
    ),
    "one step gathers twice as much": (
        [[0, 1]], 4 * PLAIN + "b " + 2 * forward(LIKE) + backward(LIKE) + 2 * PLAIN,
        [([0, 1], [unit(9000, 6, 0, 7), *[unit(500, 6, 6, 7)] * 3])],
        {("order", "ALLGATHER"): 16, ("behind", "ALLREDUCE"): 12},
    ),
    "DDP": ([[0, 1]], DDP.format("", ""), [([0, 1], BUCKETS)], {("order", "ALLREDUCE"): 2}),
    "DDP has a loss that gathers, whose gradients come back in its size": (
        [[0, 1]], DDP.format("g2048", "s2048"), [([0, 1], BUCKETS)],
        {("order", "ALLREDUCE"): 2, ("data", "ALLGATHER"): 12, ("data", "RESHARDING"): 12},
    ),
    "sequence parallelism gathers and scatters activations": (
        [[0, 1], [0, 1]], 7 * ("S b " + 4 * "g4096 s4096 " + "| " + 4 * "g4096 s4096 " + "r50000@1 . "),
        [([0, 1], [("bucket", 50_000, 0, 0, 0, 7)])], {("data", "ALLGATHER"): 112, ("data", "RESHARDING"): 112},
    ),
    "nothing answers the gathers": (
        [[0, 1]], 7 * "S b g5000 | g7000 . r1 r64 ", [], {("data", "ALLGATHER"): 28, ("behind", "ALLREDUCE"): 28},
    ),
    "stages of a pipeline": (
        [[0, 1], [2, 3]], 7 * STAGES,
        [([0, 1], [unit(500, 7, 0, 7)] * 2), ([2, 3], [unit(700, 7, 0, 7)])], {},
    ),
    "replicas reduce shards of units, and something else once": (
        [[0, 1], [2, 3], [0, 2], [1, 3]], 3 * (REPLICAS + ". ") + REPLICAS + "r700@2 . " + 3 * (REPLICAS + ". "),
        [([0, 1, 2, 3], [unit(size, 7, 0, 7, 7) for size in (9000, 500, 500)])], {("order", "ALLREDUCE"): 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_each_job_has_its_units_and_what_is_none_is_left(tmp_path, name):
    comms, program, groups, left = JOBS[name]
    folder = loops.Loop(comms).run(program).job.write(tmp_path / "job")
    layers = layers_of(folder)
    found = [
        (g["ranks"], [(row["kind"], row["count"], *(row[op]["calls"] if row[op] else 0 for op in OPS)) for row in g["rows"]])
        for g in layers["groups"]
    ]
    assert found == [(ranks, [(*row[:2], *(len(ranks) * n for n in row[2:])) for row in rows]) for ranks, rows in groups]
    assert left.items() <= left_of(layers).items()  # the others: see layers_of
    assert all(group["rank_steps"] == len(group["ranks"]) * program.count("b ") for group in layers["groups"])
    if not groups:
        text = tprof("summary", folder, "--by", "layer").stdout
        assert "\nLayers\n  None: " in text and layers["why"] in text


@pytest.mark.parametrize("job", ["without an autograd thread", "without steps"])
def test_why_there_are_no_layers_is_said(tmp_path, job):
    if job == "without steps":
        folder, word = jobs.healthy(4, 300, seed=1).write(tmp_path / "job"), "no steps are known"
    else:
        folder, word = loops.fsdp(loops.Shape()).job.write(tmp_path / "job"), "no thread is known to be autograd's"
    report = told("summary", folder, "--by", "layer")[1]["layers"]
    assert report["groups"] == [] and word in report["why"]
    assert word in tprof("summary", folder, "--by", "layer").stdout


def test_steps_that_are_asked_for(tmp_path):
    layers = layers_of(loops.Loop([[0, 1]]).run(6 * PLAIN).job.write(tmp_path / "job"), "--steps", "3-4")
    calls = [(size, {"forward": 4, "backward": 4 * (size == 500), "scattered": 4, "reduced": 0}) for size in LIKE]
    assert (rows_of(layers), left_of(layers)) == (calls, {("behind", "ALLREDUCE"): 4})


@pytest.mark.parametrize("seen", ["31", "unit"])
def test_lines_that_are_missing_move_no_call_to_another_unit(tmp_path, seen):
    """A rank that lacks the lines of one unit has not the model's order, and so no units."""
    job = loops.Loop([[0, 1]]).run(8 * PLAIN).job
    for rank in job.ranks[seen == "unit" :]:
        of_a_step = len(rank.ops) // 8
        per_unit = [n for n in range(of_a_step) if rank.ops[n].count == 500][::3]  # a third of each pass and kind
        rank.no_line = {n for n in range(len(rank.ops)) if (n % 31 == 7 if seen == "31" else n % of_a_step in per_unit)}
        rank.dropped = {"ring": len(rank.no_line)}
    layers = layers_of(job.write(tmp_path / "job"))
    assert layers["groups"][0]["ranks"] == ([0, 1] if seen == "31" else [0])
    for size, calls in rows_of(layers):
        made = {"forward": 16, "backward": 16 * (size == 500), "scattered": 16, "reduced": 0}
        if seen == "31":
            assert all(0 < calls[op] <= made[op] for op in OPS if made[op])
        else:
            assert calls == {op: n // 2 for op, n in made.items()}
    assert [size for size, _ in rows_of(layers)] == LIKE


def with_ranges(folder, name_of):
    """Puts a range around each gather and scatter: name_of(tid, function, which of its kind)."""
    for file in folder.iterdir():
        lines, seen = [], collections.Counter()
        for line in file.read_text().splitlines():
            lines.append(line)
            if '"cat":"ALLGATHER"' not in line and '"cat":"RESHARDING"' not in line:
                continue
            call = json.loads(line.rstrip(","))
            kind = (call["tid"], call["name"])
            if name := name_of(*kind, seen[kind]):
                around = {"cat": "NVTX", "ph": "X", "name": name, "pid": call["pid"], "tid": LANE + call["tid"]}
                around |= {"ts": call["ts"] - 1, "dur": call["dur"] + 2, "args": {}}
                lines.append(json.dumps(around, separators=(",", ":")) + ",")
            seen[kind] += 1
        file.write_text("\n".join(lines) + "\n")
    return folder


def test_the_devices_times_are_those_of_the_units_calls(tmp_path):
    """Only calls with a time of their own count: the calls of a group share one."""
    job = loops.Loop([[0, 1]]).run(7 * ("S b g9000 " + forward(LIKE) + backward(LIKE, (1, 2, 3)) + "r1 ")).job
    for rank in job.ranks:
        for n, op in enumerate(rank.ops):
            again = op.function == "ncclAllGather" and (op.count, rank.ops[n - 1].count) != (9000, loops.BATCH)
            calls = 2 if op.count == 9000 else 1
            rank.ops[n] = dataclasses.replace(op, device=(1000, op.count) if again else None, timed_calls=calls)
    folder = job.write(tmp_path / "job")
    (group,) = layers_of(folder)["groups"]
    for row in group["rows"]:
        for op in ("forward", "backward"):
            if row[op]:
                timed = 0 if row["count"] == 9000 else row[op]["calls"]
                assert (row[op]["device_timed"], row[op]["device_ns"]) == (timed, timed * 500 or None)
        assert row["scattered"]["device_ns"] is None
    assert "device time" in tprof("summary", folder, "--by", "layer").stdout


def names_of(layers):
    (group,) = layers["groups"]
    return [(row["name"], row["named_by"]) for row in group["rows"]]


def three_units(folder):
    return loops.Loop([[0, 1]]).run(7 * "S b g500 g500 g500 | s500 s500 s500 . r1 ").job.write(folder)


def test_processes_of_which_nobody_knows_the_rank_are_said_to_be_none(tmp_path):
    folder = three_units(tmp_path / "job")
    for file in folder.iterdir():
        file.write_text(re.sub(r'"rank":\d+,"world_size"', '"rank":null,"world_size"', file.read_text()))
    (group,) = layers_of(folder)["groups"]
    assert (group["ranks"], len(group["rows"])) == ([], 3)
    text = tprof("summary", folder, "--by", "layer").stdout
    assert "processes without a rank, on communicators of 2 ranks: 3 units" in text and "rank -1" not in text


@pytest.mark.parametrize(("names", "threads"), [
    (["embed", "block", None], (7,)),  # one has no range
    (["forward", "forward", "head"], (7, 8)),  # a range around several units names none
])  # fmt: skip
def test_units_have_the_names_of_ranges_around_their_gathers_alone(tmp_path, names, threads):
    folder = with_ranges(three_units(tmp_path / "job"), lambda tid, function, n: names[n % 3] if tid in threads else None)
    named = [(None, None) if names.count(name) > 1 or not name else (name, "range") for name in names]
    assert names_of(layers_of(folder)) == named


def test_units_have_the_lines_of_the_program_that_no_other_unit_comes_from(tmp_path):
    """Lines of packages name none: all units come through the same ones."""
    folder = three_units(tmp_path / "job")
    forward = {"function": "forward", "file": "/home/me/model.py", "line": 7}
    blocks = {"function": "blocks", "file": "/home/me/model.py", "line": 12}
    package = {"function": "gather", "file": "site-packages/torch/fsdp.py"}
    sites = {
        1: [package | {"line": 1}, {**forward, "line": 5}, forward],
        2: [package | {"line": 2}, blocks, forward],
    }
    for file in folder.iterdir():
        lines, gathers = [], 0
        for line in file.read_text().splitlines():
            if '"cat":"ALLGATHER"' in line:
                line = line.replace('"args":{', f'"args":{{"site":{1 if gathers % 3 == 0 else 2},')
                gathers += 1
            lines.append(line)
            if line.startswith('{"name":"tprof_comm"') and not gathers:
                for site, frames in sites.items():
                    args = json.dumps({"site": site, "frames": frames}, separators=(",", ":"))
                    lines.append(f'{{"name":"tprof_site","ph":"M","pid":0,"tid":0,"args":{args}}},')
        file.write_text("\n".join(lines) + "\n")
    assert names_of(layers_of(folder)) == [("model.py:5 forward", "site"), (None, None), (None, None)]


@pytest.mark.parametrize("true", [True, False])
def test_modules_of_fsdps_ranges_name_units_or_show_that_the_order_is_not_theirs(tmp_path, true):
    def name_of(tid, function, n):
        if function == "ncclAllGather":
            return f"FSDP::all_gather (layers.{n % 3}), op_id = {n}"
        return f"FSDP::post_backward_reduce (layers.{2 - n % 3 if true else n % 3})"

    layers = layers_of(with_ranges(three_units(tmp_path / "job"), name_of))
    if true:
        assert names_of(layers) == [(f"layers.{n}", "module") for n in range(3)]
    else:
        assert layers["groups"] == []

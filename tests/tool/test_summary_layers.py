"""tprof summary --by layer: every call is in the unit that made it, or is said not to be known."""

import collections
import itertools
import json
import random
import re

import pytest
from lib import jobs, loops
from lib.layers import OPS, layers_of, left_of, rows_of
from lib.tool import told, tprof

SYNCS = ((1, False), (3, False), (3, True))  # micro-batches, and whether only the last one reduces
LANE = 1 << 22


class Trained:
    """A model whose units a loop gathers and reduces. It counts the calls of each unit."""

    def __init__(self, sizes, ranks=2, frozen=()):
        self.loop = loops.Loop([list(range(ranks))])
        self.sizes = dict(enumerate(sizes, 1))
        self.frozen = frozen
        self.made = collections.Counter()  # (unit, op) -> calls of a rank

    def forward(self, units=None, counted=True):
        for unit in units or self.sizes:
            self.loop.gather(self.sizes[unit])
            self.made[unit, "forward"] += counted

    def backward(self, again, scatter=True):
        with self.loop.backward():
            for unit in reversed(self.sizes):
                if unit in again:
                    self.loop.gather(self.sizes[unit])
                    self.made[unit, "backward"] += 1
                if scatter and unit not in self.frozen:
                    self.loop.scatter(self.sizes[unit])
                    self.made[unit, "scattered"] += 1

    def step(self, again, accumulate=1, no_sync=False, units=None):
        self.loop.step()
        for i in range(accumulate):
            self.loop.micro_batch()
            self.forward(units if i == 0 else None)
            self.backward(again, not no_sync or i + 1 == accumulate)
        self.loop.reduce(1)

    def rows(self):
        """Returns (size, calls by op) of each unit, for all ranks together."""
        ranks = self.loop.job.size
        return [(size, {op: ranks * self.made[unit, op] for op in OPS}) for unit, size in self.sizes.items()]


@pytest.mark.parametrize("seed", range(8))
def test_each_call_is_in_the_unit_that_made_it(tmp_path, seed):
    """Models have equal or different units, are resharded after the forward pass or kept, and accumulate."""
    rng = random.Random(seed)
    few = rng.sample(range(1000, 9000), 3)
    sizes = [rng.choice(few) for _ in range(rng.randrange(1, 9))]
    trained = Trained([20000, *sizes], ranks=rng.choice([2, 4]))
    again = rng.choice([(), range(2, len(sizes) + 2)])  # the root is kept
    accumulate, no_sync = SYNCS[seed % len(SYNCS)]
    evaluate = rng.choice([0, 1, 2])
    units = None
    for step in range(6):
        trained.step(again, accumulate, no_sync, units)
        units = None
        if evaluate and step % evaluate == 0:
            trained.loop.copy("cudaMemcpyAsync", loops.BATCH // 2)
            trained.forward(counted=False)
            units = list(trained.sizes)[1:]  # the root is still gathered
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    if no_sync and not again:  # nothing stands between the forward passes: they look like one of a larger model
        assert layers["groups"] == []
        return
    (group,) = layers["groups"]
    assert group["ranks"] == list(range(trained.loop.job.size))
    assert not any(row["kind"] == "bucket" or row["name"] for row in group["rows"])
    assert rows_of(layers) == trained.rows()
    assert {why for why, bucket in left_of(layers)} <= {"behind", "data", "outside"}


def test_frozen_units_are_gathered_and_not_reduced(tmp_path):
    trained = Trained([9000, 500, 500, 700], frozen=(4,))
    for _ in range(7):
        trained.step(again=(2, 3, 4))
    assert rows_of(layers_of(trained.loop.job.write(tmp_path / "job"))) == trained.rows()


def test_of_units_of_one_size_that_are_not_all_reduced_nothing_is_claimed(tmp_path):
    trained = Trained([9000, 500, 500, 500], frozen=(3,))
    for _ in range(7):
        trained.step(again=())
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    assert rows_of(layers) == trained.rows()[:1]
    assert left_of(layers)["order", "RESHARDING"] == 2 * 7 * 2


def test_a_backward_pass_in_another_order_is_not_taken_for_the_reverse(tmp_path):
    """Two branches: sizes show that the last to be gathered is not the first to come back."""
    trained = Trained([300, 400, 300, 400])
    for _ in range(7):
        trained.loop.step()
        trained.loop.micro_batch()
        trained.forward()
        with trained.loop.backward():
            for size in (300, 400, 300, 400):
                trained.loop.scatter(size)
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    assert layers["groups"] == [] and layers["why"]
    assert left_of(layers)["order", "RESHARDING"] == 2 * 7 * 4


def test_of_units_that_each_pass_gathers_another_number_of_times_nothing_is_claimed(tmp_path):
    trained = Trained([9000, 500, 500, 500])
    for n in range(8):
        trained.loop.step()
        trained.loop.micro_batch()
        trained.forward([1, *[2] * (4 + n % 5)])
        trained.backward(again=())
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    assert rows_of(layers) == trained.rows()[:1]
    assert left_of(layers)["order", "RESHARDING"] == 2 * 8 * 3


def test_a_teacher_of_the_same_shape_is_not_taken_for_the_student(tmp_path):
    """There are twice as many gathers as reductions: nothing tells to which of them the gradients belong."""
    trained = Trained([9000, 500, 500])
    for _ in range(7):
        trained.loop.step()
        trained.loop.micro_batch()
        trained.forward()
        trained.forward()
        trained.backward(again=(2, 3))
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    assert layers["groups"] == []
    assert left_of(layers)["order", "RESHARDING"] == 2 * 7 * 3


def test_odd_passes_are_left_out_and_the_others_stay(tmp_path):
    trained = Trained([9000, 500, 500, 500])
    for step in range(6):
        trained.step(again=(2, 3, 4))
        if step == 3:  # a step that gathers twice as much
            trained.loop.micro_batch()
            trained.forward(counted=False)
            trained.forward(counted=False)
            trained.backward(again=())
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    assert rows_of(layers) == trained.rows()
    assert left_of(layers)["order", "ALLGATHER"] == 2 * 8


@pytest.mark.parametrize("gathers", [False, True])
def test_buckets_of_gradients_without_units(tmp_path, gathers):
    """Tries DDP, alone and with a loss that gathers beside it, whose gradients come back in its size."""
    loop = loops.Loop([[0, 1]])
    for step in range(6):
        loop.step()
        loop.micro_batch()
        if gathers:
            loop.gather(2048)
        with loop.backward():
            if gathers:
                loop.scatter(2048)
            for size in [110_000] if step == 0 else [40_000, 40_000, 30_000]:
                loop.reduce(size)
    layers = layers_of(loop.job.write(tmp_path / "job"))
    calls = [(size, dict.fromkeys(OPS, 0) | {"reduced": 2 * 5}) for size in (40_000, 40_000, 30_000)]
    assert (rows_of(layers), rows_of(layers, "bucket")) == ([], calls)
    left = {("order", "ALLREDUCE"): 2}
    if gathers:
        left |= {("data", "ALLGATHER"): 12, ("data", "RESHARDING"): 12}
    assert left_of(layers) == left


def test_activations_are_no_layers(tmp_path):
    """Sequence parallelism gathers and scatters in both passes; gradients are reduced elsewhere."""
    loop = loops.Loop([[0, 1], [0, 1]])
    for _ in range(7):
        loop.step()
        loop.micro_batch()
        for _ in range(4):
            loop.gather(4096)
            loop.scatter(4096)
        with loop.backward():
            for _ in range(4):
                loop.gather(4096)
                loop.scatter(4096)
            loop.reduce(50_000, 1)
    layers = layers_of(loop.job.write(tmp_path / "job"))
    assert (rows_of(layers), len(rows_of(layers, "bucket"))) == ([], 1)
    assert left_of(layers) == {("data", "ALLGATHER"): 2 * 7 * 8, ("data", "RESHARDING"): 2 * 7 * 8}


def test_gathers_that_nothing_answers_are_no_layers(tmp_path):
    loop = loops.Loop([[0, 1]])
    for _ in range(7):
        loop.step()
        loop.micro_batch()
        loop.gather(5000)
        with loop.backward():
            loop.gather(7000)
        loop.reduce(1)
        loop.reduce(64)  # after a norm: no gradient
    folder = loop.job.write(tmp_path / "job")
    layers = layers_of(folder)
    assert layers["groups"] == []
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
    trained = Trained([9000, 500, 500])
    for _ in range(6):
        trained.step(again=(2, 3))
    layers = layers_of(trained.loop.job.write(tmp_path / "job"), "--steps", "3-4")
    calls = [(size, {op: n // 3 for op, n in ops.items()}) for size, ops in trained.rows()]
    assert rows_of(layers) == calls
    assert left_of(layers) == {("behind", "ALLREDUCE"): 4}


def test_lines_that_are_missing_move_no_call_to_another_unit(tmp_path):
    trained = Trained([9000, 500, 500, 700, 500])
    for _ in range(8):
        trained.step(again=(2, 3, 4, 5))
    for rank in trained.loop.job.ranks:
        rank.no_line = {n for n in range(len(rank.ops)) if n % 31 == 7}
        rank.dropped = {"ring": len(rank.no_line)}
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    for (size, calls), (of, made) in zip(rows_of(layers), trained.rows(), strict=True):
        assert size == of and all(0 < calls[op] <= made[op] for op in OPS if made[op])


def test_a_rank_that_seems_to_have_other_units_than_its_communicator_has_none(tmp_path):
    """Lines of one unit are missing on it: what is left of its order is not the model's."""
    trained = Trained([9000, 500, 500, 500])
    for _ in range(6):
        trained.step(again=(2, 3, 4))
    ops = trained.loop.job.ranks[1].ops
    of_a_step = len(ops) // 6
    per_unit = [n for n in range(of_a_step) if ops[n].count == 500][::3]  # a third of each pass and kind
    trained.loop.job.ranks[1].no_line = {n + step * of_a_step for step in range(6) for n in per_unit}
    trained.loop.job.ranks[1].dropped = {"ring": 6 * len(per_unit)}
    layers = layers_of(trained.loop.job.write(tmp_path / "job"))
    (group,) = layers["groups"]
    assert group["ranks"] == [0]
    assert rows_of(layers) == [(size, {op: n // 2 for op, n in calls.items()}) for size, calls in trained.rows()]


def test_stages_of_a_pipeline_have_units_of_their_own(tmp_path):
    loop = loops.Loop([[0, 1], [2, 3]])
    for _ in range(7):
        loop.step()
        loop.micro_batch()
        for comm, sizes in enumerate(((500, 500), (700,))):
            for size in sizes:
                loop.gather(size, comm)
        with loop.backward():
            for comm, sizes in enumerate(((500, 500), (700,))):
                for size in sizes:
                    loop.scatter(size, comm)
    groups = layers_of(loop.job.write(tmp_path / "job"))["groups"]
    found = [(group["ranks"], [row["count"] for row in group["rows"]]) for group in groups]
    assert found == [([0, 1], [500, 500]), ([2, 3], [700])]
    assert all(g["rank_steps"] == 14 for g in groups)


def test_replicas_reduce_the_shards_of_units_whatever_else_they_reduce_once(tmp_path):
    loop = loops.Loop([[0, 1], [2, 3], [0, 2], [1, 3]])
    sizes = (9000, 500, 500)
    for step in range(7):
        loop.step()
        loop.micro_batch()
        for size, comm in itertools.product(sizes, (0, 1)):
            loop.gather(size, comm)
        with loop.backward():
            for size in reversed(sizes):
                for comm in (0, 1):
                    loop.scatter(size, comm)
                for comm in (2, 3):
                    loop.reduce(size, comm)
            if step == 3:
                loop.reduce(700, 2)
    layers = layers_of(loop.job.write(tmp_path / "job"))
    made = dict.fromkeys(OPS, 4 * 7) | {"backward": 0}
    assert rows_of(layers) == [(size, made) for size in sizes]
    assert left_of(layers)["order", "ALLREDUCE"] == 2


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
            name = name_of(*kind, seen[kind])
            seen[kind] += 1
            if name:
                around = {"ph": "X", "cat": "NVTX", "name": name, "pid": call["pid"], "tid": LANE + call["tid"]}
                around |= {"ts": call["ts"] - 1, "dur": call["dur"] + 2, "args": {}}
                order = ("cat", "ph", "name", "pid", "tid", "ts", "dur", "args")
                lines.append(json.dumps({key: around[key] for key in order}, separators=(",", ":")) + ",")
        file.write_text("\n".join(lines) + "\n")
    return folder


def test_the_devices_times_are_those_of_the_units_calls(tmp_path):
    """Only calls with a time of their own count: the calls of a group share one."""
    trained = Trained([9000, 500, 500])
    for _ in range(7):
        trained.step(again=(2, 3))
    folder = trained.loop.job.write(tmp_path / "job")
    for file in folder.iterdir():
        lines = []
        for line in file.read_text().splitlines():
            lines.append(line)
            if '"cat":"ALLGATHER"' not in line:
                continue
            call = json.loads(line.rstrip(","))
            size, seq = call["args"]["count"], call["args"]["seq"]
            args = {"comm": 1, "seq": seq, "call_tid": call["tid"], "queued": 1.0}
            if size == 9000:
                args["calls"] = 2
            lane = {"pid": call["pid"], "tid": (1 << 23) + 1, "ts": call["ts"] + 1, "dur": size / 1000}
            timed = {"cat": "DEVICE", "name": call["name"], "ph": "X", **lane, "args": args}
            lines.append(json.dumps(timed, separators=(",", ":")) + ",")
        file.write_text("\n".join(lines) + "\n")
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
    trained = Trained([500, 500, 500])
    for _ in range(7):
        trained.step(again=())
    return trained.loop.job.write(folder)


def test_processes_of_which_nobody_knows_the_rank_are_said_to_be_none(tmp_path):
    folder = three_units(tmp_path / "job")
    for file in folder.iterdir():
        file.write_text(re.sub(r'"rank":\d+,"world_size"', '"rank":null,"world_size"', file.read_text()))
    (group,) = layers_of(folder)["groups"]
    assert (group["ranks"], len(group["rows"])) == ([], 3)
    text = tprof("summary", folder, "--by", "layer").stdout
    assert "processes without a rank, on communicators of 2 ranks: 3 units" in text and "rank -1" not in text


def test_units_have_the_names_of_ranges_around_their_gathers(tmp_path):
    names = ["embed", "block", None]  # the last range is not there
    folder = with_ranges(three_units(tmp_path / "job"), lambda tid, function, n: names[n % 3] if tid == 7 else None)
    assert names_of(layers_of(folder)) == [("embed", "range"), ("block", "range"), (None, None)]


def test_ranges_around_several_units_name_none(tmp_path):
    names = ["forward", "forward", "head"]
    folder = with_ranges(three_units(tmp_path / "job"), lambda tid, function, n: names[n % 3])
    assert names_of(layers_of(folder)) == [(None, None), (None, None), ("head", "range")]


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

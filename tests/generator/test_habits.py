"""`tprof report` tells the truth about jobs as people write them, healthy and with one thing wrong."""

import json
import re

import pytest
from generator.habit_jobs import JOBS, LONG, PIPELINE, B, wrong_with
from generator.habits import gain, measured, run, seconds
from generator.judgement import HAS_TO_BE_SAID, judge
from generator.loop import MS, Loop
from generator.rank_files import Settings, write
from lib.thorough import some
from lib.tool import told

MIB = 1024 * 1024
EACH_6TH = dict.fromkeys(range(8), 100 * MS)


# A host that wakes its device at each launch is held against one that never had to. So the time for
# that counts as the slow host's own.
WAKES_ITS_DEVICE = [name for name in JOBS if name.endswith("launches wake the device")]


@pytest.mark.parametrize("name", some([name for name in JOBS if name not in WAKES_ITS_DEVICE], 6))
def test_the_report_says_what_is_so(name, tmp_path):
    assert wrong_with(name, tmp_path / "job") == []


@pytest.mark.parametrize("name", WAKES_ITS_DEVICE)
def test_who_wakes_its_device_is_found_and_costs_no_more_than_a_third_too_much(name, tmp_path):
    job = JOBS[name]
    write(run(job.loop), tmp_path / "job", job.loop.seed, job.settings)
    # All hosts launch too slowly for these kernels, without that one, too.
    [found, hosts] = [f for f in told("report", tmp_path / "job")[1]["findings"] if "cost" in f]
    assert found["kind"] in job.expected and found["ranks"] == "1" and hosts["kind"] == "idle_devices"
    true = gain(job.loop, **job.planted)
    assert true < found["cost"]["ns_per_step"] < 4 / 3 * true


@pytest.mark.parametrize("name", [name for name in JOBS if re.match("gpu x1.3, stage", name)])
def test_what_a_device_of_a_pipeline_costs_is_told_as_the_simulation_without_it_has_it(name, tmp_path):
    job = JOBS[name]
    case = run(job.loop)
    write(case, tmp_path / "job", job.loop.seed, job.settings)
    [found] = [f for f in told("report", tmp_path / "job")[1]["findings"] if f["kind"] == "slow_gpu"]
    assert found["ranks"] == ",".join(map(str, job.ranks))
    share = gain(job.loop, gpu={}) * job.loop.steps / seconds(case.traces)
    assert found["cost"]["share"] == pytest.approx(share, abs=0.005)


def test_what_ranks_that_stagger_lose_is_a_share_of_the_jobs_step(tmp_path):
    """Stages wait for rank 0 at different times, so their own steps take longer than the job's."""
    job = JOBS["logs of rank 0 in a pipeline"]
    (found,) = of_kind("slow_cpu", findings_of(job.loop, tmp_path / "job"))
    share = gain(job.loop, **job.planted) * job.loop.steps / measured(job.loop)
    assert found["cost"]["share"] == pytest.approx(share, abs=0.03)


def test_a_stage_and_a_rank_of_another_are_told_one_after_the_other(tmp_path):
    loop = PIPELINE.but(ranks=16, micro_batches=8, head=0.3, gpu={6: 1.1})
    found = of_kind("slow_gpu", findings_of(loop, tmp_path / "job"))
    assert [f["ranks"] for f in found] == ["12-15", "6"]
    truth = [gain(loop, head=0), gain(loop.but(head=0), gpu={})]
    assert [f["cost"]["ns_per_step"] for f in found] == pytest.approx(truth, rel=0.03)


def test_a_rank_is_told_alone_if_its_host_saves_no_more(tmp_path):
    slower = dict.fromkeys((3, 5, 7), 1.2)
    loop = Loop(ranks=8, per_host=2, gpu={2: 1.6} | slower)
    found = of_kind("slow_gpu", findings_of(loop, tmp_path / "job"))
    assert [f["ranks"] for f in found] == ["2", "3,5,7"]
    truth = [gain(loop, gpu=slower), gain(loop.but(gpu=slower), gpu={})]
    assert [f["cost"]["ns_per_step"] for f in found] == pytest.approx(truth, rel=0.05)


def test_of_what_a_change_may_save_more_no_bound_is_told(tmp_path):
    loop = Loop(ranks=4, overlap=False)
    (found,) = of_kind("late_reductions", findings_of(loop, tmp_path / "job"))
    assert 0 < found["cost"]["ns_per_step"] < gain(loop, overlap=True)
    assert "up to" not in found["text"] and " of a step" in found["text"]


def test_a_host_is_no_further_ahead_of_its_device_than_the_launches_that_a_stream_holds():
    loop = Loop(ranks=2, steps=40, layers=4, kernels=20, item_every=0)
    trace = run(loop).traces[0]
    per_step = (2 * loop.layers + 1) * loop.kernels  # and four other operations
    length = seconds({0: trace}) / loop.steps
    ends = [end for _, end in trace.busy][per_step - 1 :: per_step]
    ahead = [end - step.begin for step, end in zip(trace.steps[1:], ends)]
    assert max(ahead) == pytest.approx(1024 / (per_step + 4) * length, rel=0.1)


def test_the_truth_is_what_a_formula_says_where_there_is_one():
    """All wait for the slow GPU's kernels."""
    loop = Loop(dtype="bfloat16", gpu={5: 1.5}, jitter=0.0)
    computing = loop.layer_ns * (3 * loop.layers + 0.25)
    assert gain(loop, gpu={}) == pytest.approx(0.5 * computing, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "ranks", "cost_ns", "share"),
    [
        ("slow_gpu", "4", 15_000_000, 0.17),  # another rank
        ("slow_cpu", "5", 15_000_000, 0.17),  # another kind
        ("slow_gpu", "5", 45_000_000, 0.5),  # another cost
        ("slow_gpu", "5", 15_000_000, 0.5),  # a share of something else
    ],
)
def test_the_judgement_sees_what_is_not_so(kind, ranks, cost_ns, share):
    job = JOBS["gpu x1.2, ddp"]
    case = run(job.loop)
    step = seconds(case.traces) / job.loop.steps
    assert gain(job.loop, gpu={}) > HAS_TO_BE_SAID * step
    true = {"kind": "slow_gpu", "ranks": "5", "cost": {"ns_per_step": gain(job.loop, gpu={})}}
    true["cost"]["share"] = true["cost"]["ns_per_step"] / step
    assert judge(job, case, [true]) == []
    said = {"kind": kind, "ranks": ranks, "cost": {"ns_per_step": cost_ns, "share": share}}
    assert judge(job, case, [said]) != []
    assert judge(job, case, []) != []


# The evidence names the part of a step that has most of the time.
LOADING, FORWARD = "before copies to the device:", "between the copies to the device and the first ncclAllReduce"
MICRO_BATCHES = {"micro_batches": 4, "load_each": True, "layer_ns": MS // 2}
BY_EACH = "host-bound, loader of each micro-batch"
ITEMS = "item every 6th, slow loading on all"
# a job, what is other in it, and words of each sentence of evidence for its first costly finding
EVIDENCE = [
    ("checkpoint of rank 0, every 2nd", {}, ["rank 0 copies 45.78 MiB more from the device", "idle after the last kernel of a step"]),
    ("checkpoint of all", {}, ["ranks 0-7 copy 45.78 MiB more from the device, as for a checkpoint"]),
    ("evaluation", {}, ["ranks 0-7 copy 19.07 MiB more to the device, as in an evaluation"]),
    ("gpu x1.2, ddp", {"batch": {5: 1.5}}, ["it copies 1.5 times as many bytes to the device in a step as the others"]),
    ("stall in the forward pass", {}, [FORWARD]),
    ("stall in the forward pass", MICRO_BATCHES, [FORWARD]),  # in each of them
    ("loader", MICRO_BATCHES, [LOADING]),
    *((BY_EACH, fields, [LOADING]) for fields in ({}, {"wake_ns": 100_000}, {"layer_ns": 10 * MS, "loader": {1: 200 * MS}})),
    (BY_EACH, {"loader": {}, "stalls": {1: 60 * MS}}, []),  # in two places
    # Behind the fifth of its layers, before which six are gathered.
    ("stall in the forward pass of fsdp", {}, ["between the 6th ncclAllGather and the 7th ncclAllGather"]),
    ("stall before the update, every 4th", {}, ["between the last ncclReduceScatter and the end of the step"]),
    # The hosts run ahead of their devices but behind an .item(), where loading delays the next step.
    (ITEMS, {}, ["follow one in which most ranks make 1 more copy from the device than usual"]),
    *((ITEMS, {"item_every": every, "load_ns": 0, "loader": EACH_6TH}, []) for every in (1, 4, 2)),
    # It loads the next step's batch behind the last call.
    ("loader", {"mark_within": True, "kernels": 20, "python_ns": 100_000}, [LOADING]),
    # The forward pass has no calls, nor has the backward pass until the first bucket is full.
    ("cpu x10", {}, [FORWARD]),
    ("gpu x1.2, ddp", {}, []),
    ("loader, every 6th", {}, []),
    ("loader", {"batch": {2: 1.5}}, []),  # its device computes no longer
]


@pytest.mark.parametrize(("name", "fields", "expected"), EVIDENCE)
def test_what_ranks_copy_more_is_said_of_the_steps_and_ranks_that_take_longer(name, fields, expected, tmp_path):
    job = JOBS[name]
    loop = job.loop.but(**fields)
    write(run(loop), tmp_path / "job", loop.seed, job.settings)
    first = next(f for f in told("report", tmp_path / "job")[1]["findings"] if "cost" in f)
    assert len(first["evidence"]) == len(expected)
    assert all(words in said for words, said in zip(expected, first["evidence"])), first["evidence"]


@pytest.mark.parametrize("name", ["stall in the forward pass", "stall before the update, every 4th"])
def test_who_stalls_within_a_step_is_not_told_to_look_at_the_loading_of_data(name, tmp_path):
    job = JOBS[name]
    write(run(job.loop), tmp_path / "job", job.loop.seed, job.settings)
    first = next(f for f in told("report", tmp_path / "job")[1]["findings"] if "cost" in f)
    assert (first["kind"], first["ranks"]) == ("slow_cpu", "2")
    assert "loading" not in first["next"]


@pytest.mark.parametrize("cpu", [1.0, 1.3])
def test_a_quicker_device_of_two_stands_idle_and_its_host_is_told_only_where_it_is_slower(cpu, tmp_path):
    loop = JOBS["gpu x2 of one of 2 ranks whose hosts are late"].loop.but(cpu={0: cpu})
    write(run(loop), tmp_path / "job", loop.seed, Settings())
    told_of = {(f["kind"], f["ranks"]) for f in told("report", tmp_path / "job")[1]["findings"] if "cost" in f}
    assert told_of == {("slow_gpu", "1")} | ({("slow_cpu", "0")} if cpu > 1 else set())


@pytest.mark.parametrize("shape", ["ddp", "fsdp"])
@pytest.mark.parametrize("marks", [True, False])
def test_one_pause_of_one_rank_is_one_long_step_and_names_the_rank(shape, marks, tmp_path):
    """The rank pauses before the 25th batch. Without marks a step ends where the device has done all of it."""
    loop = LONG.but(shape=shape, ranks=2, loader={1: 600 * MS}, loader_every=25)
    write(run(loop), tmp_path / "job", loop.seed, Settings(marks=marks, unsure=True))
    report = told("report", tmp_path / "job")[1]
    usual = measured(loop.but(loader={})) / loop.steps
    assert report["step"]["most_ns"] == pytest.approx(usual + 600 * MS, rel=0.02)
    (long,) = of_kind("long_steps", report["findings"])
    assert long["text"].startswith(f"step {24 if marks else 25} takes far longer than the other 24, 6")
    assert " ms, held up by rank 1, where the usual step takes " in long["text"]


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("shape", ["ddp", "fsdp"])
def test_one_pause_before_an_update_is_one_long_step_however_many_ranks_wait(shape, ranks, marks, tmp_path):
    """They wait in the next step, in the first collective of which the rank that paused is missing."""
    loop = LONG.but(shape=shape, ranks=ranks, stalls={1: 6000 * MS}, stalls_at_update=True, stalls_every=25)
    write(run(loop), tmp_path / "job", loop.seed, Settings(marks=marks, unsure=True))
    report = told("report", tmp_path / "job")[1]
    usual = measured(loop.but(stalls={})) / loop.steps
    assert report["step"]["most_ns"] == pytest.approx(usual + 6000 * MS, rel=0.01)
    (long,) = of_kind("long_steps", report["findings"])
    assert re.match(r"step \d+ takes far longer than the other \d+, 6\.\d+ s, held up by rank 1, where", long["text"])


def test_ranks_that_take_turns_are_not_told_what_one_pause_costs(tmp_path):
    loop = JOBS["lengths 40 %"].loop
    costs = []
    for name, pause in (("even", {}), ("pause", {1: 3000 * MS})):
        found = findings_of(loop.but(loader=pause, loader_every=25), tmp_path / name)
        costs.append(of_kind("uneven_ranks", found)[0]["cost"]["ns_per_step"])
        assert [f["kind"] for f in found if "cost" in f][0] == ("long_steps" if pause else "uneven_ranks")
    assert costs[1] == pytest.approx(costs[0], rel=0.15)


@pytest.mark.parametrize(("ranks", "steps", "uneven", "head", "tied", "seed"), some([
    (16, 12, 0.4, 0.2, False, 6), (64, 8, 0.5, 0.3, True, 1), (16, 8, 0.0, 0.3, True, 3), (32, 20, 0.4, 0.2, False, 6),
    (8, 16, 0.0, 0.0, True, 1), (16, 16, 0.0, 0.0, True, 2), (8, 24, 0.5, 0.0, True, 3), (128, 6, 0.5, 0.5, False, 5),
], 4))
def test_micro_batches_of_unlike_length_and_a_stage_with_more_to_do_each_have_their_cost(
    ranks, steps, uneven, head, tied, seed, tmp_path
):
    """As in pipelines of language models, whose sequences differ and whose last stage has the loss."""
    shape = {"micro_batches": 8, "uneven": uneven, "uneven_each": True, "head": head, "tied": tied}
    loop = Loop("pipeline", ranks, **B, steps=steps, seed=seed, **shape)
    step = measured(loop) / steps
    wanted = {"uneven_ranks": gain(loop, even=True) / step, "slow_gpu": gain(loop, head=0.0) / step}
    found = {f["kind"]: f for f in findings_of(loop, tmp_path / "job") if "cost" in f}
    assert set(found) == {kind for kind, share in wanted.items() if share > HAS_TO_BE_SAID}
    for kind, finding in found.items():
        assert finding["cost"]["share"] == pytest.approx(wanted[kind], abs=0.05)
    if head:
        assert found["slow_gpu"]["ranks"] == f"{ranks - ranks // 4}-{ranks - 1}"


@pytest.mark.parametrize(("fault", "without", "ranks"), [
    ({"head": 0.3}, {"head": 0.0}, "12-15"), ({"gpu": {9: 1.4}}, {"gpu": {}}, "9"), ({}, {}, ""),
])
def test_who_holds_up_a_pipeline_is_known_where_no_host_waits_for_its_device(fault, without, ranks, tmp_path):
    """Hosts have called all steps before the device is through the first."""
    loop = Loop("pipeline", 16, **B, steps=6, micro_batches=8, item_every=0, seed=4, **fault)
    costly = [f for f in findings_of(loop, tmp_path / "job") if "cost" in f]
    assert [(f["kind"], f["ranks"]) for f in costly] == ([("slow_gpu", ranks)] if ranks else [])
    for f in costly:
        assert f["cost"]["ns_per_step"] == pytest.approx(gain(loop, **without), rel=0.1)


@pytest.mark.parametrize("shape", ["ddp", "fsdp"])
def test_steps_that_nobody_marks_are_known_where_devices_hardly_work(shape, tmp_path):
    """Kernels of 5 us, one in 0.4 ms, and small gradients: the host is what takes the time."""
    loop = LONG.but(
        shape=shape, ranks=2, kernels=20, layer_ns=100_000, python_ns=400_000, params=10_000, jitter=0.05, steps=12
    )
    write(run(loop), tmp_path / "job", loop.seed, Settings(marks=False))
    step = told("report", tmp_path / "job")[1]["step"]
    assert step["counted"] >= 10
    assert step["mean_ns"] == pytest.approx(measured(loop) / loop.steps, rel=0.03)
    assert step["least_ns"] > 0.9 * step["mean_ns"]


def test_a_pause_of_all_ranks_is_held_up_by_none(tmp_path):
    findings = findings_of(LONG.but(eval_every=25, ranks=2), tmp_path / "job")
    assert ["held up" in f["text"] for f in of_kind("long_steps", findings)] == [False]


def findings_of(loop, folder):
    write(run(loop), folder, loop.seed, Settings(unsure=True))
    return told("report", folder)[1]["findings"]


def of_kind(kind, findings):
    return [f for f in findings if f["kind"] == kind]


def test_who_reads_values_before_long_steps_is_told_to_do_so_rarely(tmp_path):
    findings = findings_of(JOBS["item every 6th, slow loading on all"].loop, tmp_path / "job")
    [found] = of_kind("periodic_steps", findings)
    assert found["next"].startswith("a host that reads a value")


def test_who_copies_weights_in_long_steps_is_told_how_to_write_checkpoints(tmp_path):
    [found] = of_kind("periodic_steps", findings_of(JOBS["checkpoint of all"].loop, tmp_path / "job"))
    assert found["next"].startswith("if they write a checkpoint there")


def test_what_a_framework_gathers_when_it_sets_up_is_no_all_gather_of_a_step(tmp_path):
    loop = Loop(dtype="bfloat16", layer_ns=MS, setup=True, metric=640 * MIB // 4 // 8)
    [found] = of_kind("exposed_gathers", findings_of(loop, tmp_path / "job"))
    assert found["text"].startswith("all-gathers of 640.00 MiB on average"), found


def test_activations_that_are_gathered_in_the_backward_pass_are_not_gathered_again(tmp_path):
    """Sequence parallelism gathers them, and sharding of weights that are kept would save nothing."""
    loop = Loop("tensor", 8, 4, dtype="bfloat16", steps=6, layer_ns=500_000, params=100_000, sequence=True)
    assert of_kind("gathered_again", findings_of(loop, tmp_path / "sequence")) == []
    sharded = Loop("fsdp", dtype="bfloat16", steps=6, layer_ns=500_000, params=100_000_000)
    assert len(of_kind("gathered_again", findings_of(sharded, tmp_path / "sharded"))) == 1


def test_slow_links_are_told_as_one_and_compared_with_those_that_are_not_slow(tmp_path):
    """Two of four communicators are slow. Each alone would save nothing."""
    loop = JOBS["nic x0.3"].loop.but(links={5: 0.3, 6: 0.3})
    [found] = of_kind("slow_link", findings_of(loop, tmp_path / "job"))
    assert found["ranks"] == "1,2,5,6,9,10,13,14" and "on the 2 others" in found["text"]
    assert found["cost"]["ns_per_step"] == pytest.approx(gain(loop, links={}), rel=0.1)


def lengthen_transfers(text, comm, times, of_ten):
    """Gives so many of ten of a communicator's all-reduces so many times the device time."""
    lines = []
    for line in text.splitlines():
        if line.startswith('{"cat":"DEVICE","name":"ncclAllReduce"'):
            one = json.loads(line.rstrip(","))
            if one["args"]["comm"] == comm and one["args"]["seq"] % 10 < of_ten:
                one["dur"] *= times
                line = json.dumps(one, separators=(",", ":")) + ","
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("of_ten, slow", [(0, 1), (4, 0)])
def test_a_link_is_slow_if_all_that_passes_it_is(of_ten, slow, tmp_path):
    """Ranks of which some transfers are as quick as elsewhere have something else that is slow, such as cores."""
    loop = JOBS["nic x0.3"].loop
    write(run(loop), tmp_path / "job", loop.seed)
    for rank in (1, 5, 9, 13):
        file = tmp_path / "job" / f"rank-{rank:05}.json"
        file.write_text(lengthen_transfers(file.read_text(), 3, 0.3, of_ten))
    assert len(of_kind("slow_link", told("report", tmp_path / "job")[1]["findings"])) == slow


def time_norms_together(text, stream, each=4):
    """Gives so many all-gathers of a stream one line of device time."""
    lines, first, place, calls = [], {}, 0, each
    for line in text.splitlines():
        if not line.startswith('{"cat":"DEVICE","name":"ncclAllGather"') or f'"stream":{stream},' not in line:
            lines.append(line)
            continue
        one = json.loads(line.rstrip(","))
        if calls == each:
            first, place, calls = one, len(lines), 0
            lines.append("")
        calls += 1
        first["dur"] = one["ts"] + one["dur"] - first["ts"]
        first["args"]["calls"] = calls
        lines[place] = json.dumps(first, separators=(",", ":")) + ","
    return "\n".join(lines) + "\n"


def test_calls_of_a_group_that_were_timed_together_are_all_counted_with_their_bytes(tmp_path):
    job = JOBS["norm of the weights"]
    write(run(job.loop), tmp_path / "job", job.loop.seed, job.settings)
    for file in (tmp_path / "job").glob("*.json"):
        file.write_text(time_norms_together(file.read_text(), 1))
    [found] = of_kind("gathers_behind", told("report", tmp_path / "job")[1]["findings"])
    size = -(-job.loop.params // job.loop.ranks // 4) * 2 * job.loop.ranks / MIB
    assert found["text"].startswith(f"most steps make 32 all-gathers of {size:.2f} MiB on average"), found


def test_every_nth_step_is_said_only_where_none_of_them_is_missing(tmp_path):
    loop = JOBS["loader, every 6th"].loop
    texts = []
    for steps in ((5, 11, 17, 23), (5, 11, 17), (11, 17, 23)):
        loop = loop.but(loader={}, gpu={2: 3.0}, gpu_steps=steps)
        folder = tmp_path / str(steps)
        write(run(loop), folder, loop.seed)
        texts.append(next(f["text"] for f in told("report", folder)[1]["findings"] if f["kind"] == "slow_gpu"))
    assert ["every 6th" in text for text in texts] == [True, False, False], texts

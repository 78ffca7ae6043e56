"""`tprof report` names the rank of an unmodified PyTorch job that holds up the others, and why."""

import statistics

import pytest
from lib import launch
from lib.build import LIBTPROF
from lib.thorough import some
from lib.tool import summary_of, told

pytestmark = pytest.mark.timed

CLOCKS = {"STANDIN_BLOCK_US": "0", "STANDIN_KERNEL_US": "300", "STANDIN_LATENCY_US": "200", "STANDIN_GBPS": "10"}
QUICK = {"STANDIN_KERNEL_US": "100", "STANDIN_LATENCY_US": "20"}
MARKED = {"NVTX_INJECTION64_PATH": str(LIBTPROF)}


def trained(folder, script, *arguments, ranks=2, **env):
    """Runs a script under the preload, timed, on devices that take as long as CLOCKS says."""
    command = launch.without_agent(script, ranks, tuple(map(str, arguments)))
    run = launch.start(command, folder, **{"TPROF_TIMING": "events"} | CLOCKS | env)
    assert run.code == 0, run.stderr
    return run


def reported(*how, **env):
    return told("report", trained(*how, **env).traces)[1]


@pytest.mark.parametrize(
    ("kind", "args", "env"),
    [
        ("slow_gpu", (), {"STANDIN_SLOW_RANK": "1:10"}),
        ("slow_input", ("--rank", "1", "--ms", "80"), {}),
        ("slow_cpu", ("--rank", "1", "--ms", "80", "--where", "middle"), {}),
    ],
)
def test_the_rank_that_holds_up_the_others(kind, args, env, torch, tmp_path):
    found = reported(tmp_path, "late.py", *args, **MARKED, **env)
    blaming = [(f["kind"], f["ranks"]) for f in found["findings"] if f["kind"].startswith("slow_")]
    assert blaming[0] == (kind, "1")  # on a busy machine another may be late at times, too
    assert found["verdict"]["finding"] == found["findings"].index(
        next(f for f in found["findings"] if f["kind"] == kind)
    )
    if args:  # each step is as much longer as the rank sleeps
        [cost] = [f["cost"]["ns_per_step"] for f in found["findings"] if f["kind"] == kind]
        assert cost == pytest.approx(80e6, rel=0.35)


PARAMETERS = 20  # of loops.py's model: weights and biases of ten linear layers
LATENCY_NS = 200_000  # of a collective, as CLOCKS says


def behind(folder, *arguments, **env):
    """Returns what is said of all-gathers behind the backward pass, and the names of the other findings."""
    report = reported(folder, "loops.py", *arguments, **env)
    assert report["step"]["parts"] is not None, report["step"]  # there is something to find it in
    found = [f for f in report["findings"] if f["kind"] == "gathers_behind"]
    others = {f["kind"]: f.get("cost") for f in report["findings"]}
    return found, others, report["step"]


@pytest.mark.parametrize("marked", [False, True])
def test_all_gathers_that_no_layer_needs(marked, torch, tmp_path):
    """full_tensor() of each parameter behind the update: its time on the device is known by a formula."""
    env, marks = (MARKED, ("--ranges", "step ")) if marked else ({}, ())
    [found], others, step = behind(tmp_path, "fsdp2", "--steps", "24", "--norm", *marks, **env)
    assert found["text"].startswith(f"most steps make {PARAMETERS} all-gathers of "), found
    assert found["ranks"] == "0,1"
    assert PARAMETERS * LATENCY_NS * 0.95 <= found["cost"]["ns_per_step"] <= step["mean_ns"] * 0.9
    # Hardly anything is left behind which they could be hidden.
    assert others.get("late_prefetch", {"share": 0})["share"] < 0.04


@pytest.mark.parametrize(
    "arguments",
    some(
        [
            ("fsdp2", "--eval-every", "3", "--checkpoint-every", "4", "--ranges", "step "),
            ("fsdp2", "--accumulate", "2"),
            ("zero3",),
            ("fsdp1", "--clip"),
            ("hsdp", "--clip"),
            ("zero1",),
        ],
        2,
    ),
    ids=" ".join,
)
def test_all_gathers_that_training_needs(arguments, torch, tmp_path):
    """Each takes so long that it would be told if it were none of these."""
    found, others, _ = behind(tmp_path, *arguments, "--steps", "12", **MARKED, STANDIN_LATENCY_US="3000")
    assert found == [] and "exposed_gathers" not in others


@pytest.mark.parametrize("late", [0, 1])
def test_the_side_of_a_message_that_comes_late(late, torch, tmp_path):
    """By both ends' times: the other one waits as long as it sleeps, and the transfer is not longer for it."""
    run = trained(tmp_path, "late_message.py", "--rank", late, "--ms", 80, "--messages", 5)
    [row] = [r for r in summary_of(run.traces, "--by", "wait")["waits"]["rows"] if r["bucket"] == "P2P"]
    assert (row["calls"], row["known"], row["meetings"]) == (10, 10, 5)
    ranks = {r["rank"]: r for r in row["ranks"]}
    assert ranks[late]["last"] >= 4 and ranks[late]["late_ns"] > 4 * 60e6
    assert ranks[1 - late]["wait_ns"] > 4 * 60e6
    assert ranks[late]["wait_ns"] < 0.2 * ranks[1 - late]["wait_ns"]
    assert row["usual_transfer_ns"] < 0.2 * 80e6  # the first message also makes its communicator


def test_steps_of_a_schedules_windows_have_parts_and_those_between_have_not(torch, tmp_path):
    """The job has 30 steps, of which 6 to 9, 16 to 19 and 26 to 29 are followed: in the others devices seem idle."""
    step = reported(
        tmp_path, "loops.py", "fsdp2", "--steps", 30, "--ranges", "step ", TPROF_SCHEDULE="wait=5,warmup=1,active=4",
        **MARKED,
    )["step"]  # fmt: skip
    parts = step["parts"]
    assert 6 <= step["counted"] <= 12, step
    # loops.py does nothing but train, on a device that takes longer than its host.
    assert parts["idle_ns"] < 0.5 * parts["length_ns"], step


@pytest.mark.parametrize("skip_first", [14, 15])
def test_a_window_begins_while_a_rank_still_waits_for_another(skip_first, torch, tmp_path):
    """Rank 1 sleeps in each 4th step, also in those just before a window. Rank 0's host is ahead then, and its
    device does until some time in the window's first step what was called before the window."""
    report = reported(
        tmp_path, "trained.py", "fsdp2", "item", "--item-every", 10, "--steps", 80, "--sleep-ms", 60, "--sleep-rank", 1,
        "--sleep-every", 4, TPROF_SCHEDULE=f"skip_first={skip_first},wait=12,warmup=2,active=6", **QUICK,
    )  # fmt: skip
    # On a busy machine another is late at times, too, and costs less, and the transfers of both take longer.
    blaming = [(f["kind"], f["ranks"]) for f in report["findings"] if f["kind"].startswith(("slow_", "uneven"))]
    blaming = [of for of in blaming if of[0] != "slow_link"]
    assert blaming[:1] in ([], [("slow_cpu", "1")]), report["findings"]
    assert "held up by rank 0" not in "".join(f["text"] for f in report["findings"])


def experts(folder, ranks, *arguments, **env):
    """Returns the report of experts.py, whose tokens go by groups of sends and receives of several sizes."""
    return reported(folder, "experts.py", *arguments, ranks=ranks, **MARKED | env)


@pytest.mark.parametrize(("ranks", "hot"), [(2, 1), (4, 2)])
def test_an_expert_that_gets_most_tokens(ranks, hot, torch, tmp_path):
    """It computes ten times as long as the others, which stand in the group of receives meanwhile."""
    layers, kernels, times = 2, 4, 10
    # The hosts of four ranks may share two cores: the devices need to take longer still.
    kernel_us = 300 * (ranks // 2) ** 2
    report = experts(
        tmp_path, ranks, "--hot", hot, "--layers", layers, "--kernels", kernels, "--times", times,
        STANDIN_KERNEL_US=str(kernel_us),
    )  # fmt: skip
    blaming = [(f["kind"], f["ranks"]) for f in report["findings"] if f.get("cost")]
    assert blaming[0] == ("slow_gpu", str(hot)), report["findings"]
    [slow] = [f for f in report["findings"] if f["kind"] == "slow_gpu"]
    more = layers * kernels * (times - 1) * kernel_us * 1000
    # The others' hosts may take longer than their devices, which is not to be gained.
    assert 0.4 * more < slow["cost"]["ns_per_step"] < 1.2 * more
    # Each rank sends half of its tokens and what is left to the hot one, and as many come back.
    tokens, cold = 256, 256 // (2 * ranks)
    of_hot = tokens + ranks * (tokens - cold * (ranks - 1))
    [evidence] = slow["evidence"]
    assert f" {of_hot / (tokens + ranks * cold):.1f} times as many bytes " in evidence
    # The others' waiting for it is no idle time, which would be their hosts' fault.
    step = report["step"]
    assert step["parts"]["waiting_ns"] > 0.8 * more * (ranks - 1) / ranks
    assert step["parts"]["unmet_ns"] < 0.02 * step["mean_ns"]
    assert not {"idle_devices", "uneven_ranks"} & {kind for kind, _ in blaming}


def test_experts_with_as_many_tokens_each(torch, tmp_path):
    report = experts(tmp_path, 2, "--layers", "2", "--kernels", "20")
    assert not [f for f in report["findings"] if f["kind"] in ("slow_gpu", "uneven_ranks")]


def test_where_not_all_calls_are_timed_nothing_is_idle(torch, tmp_path):
    """Calls that were not timed would be time in which the devices do nothing, and the fault of their hosts."""
    report = experts(tmp_path, 2, "--kernels", "20", TPROF_TIMING="events:4")
    assert report["step"]["parts"] is None and "for all calls" in report["step"]["parts_why"]
    assert not [f for f in report["findings"] if f["kind"] in ("idle_devices", "slow_cpu", "uneven_ranks")]


@pytest.mark.parametrize(
    ("how", "late"),
    [("one-bucket", True), ("by-hand", True), ("buckets", False), ("activations", False)],
)
def test_gradients_that_are_reduced_when_the_backward_pass_is_over(how, late, torch, tmp_path):
    report = reported(tmp_path, "gradients.py", how, STANDIN_GBPS="2")
    assert report["step"]["parts"] is not None, report["step"]
    found = [f for f in report["findings"] if f["kind"] == "late_reductions"]
    assert len(found) == late, report["findings"]
    # Six gradients of 1 MiB each are exposed, and those of the last layers could not be. On a busy machine the hosts
    # need more of a step, which is not to be gained.
    if late:
        exposed = 6 * 2**20 / 2e9 * 1e9
        assert 0.25 * exposed < found[0]["cost"]["ns_per_step"] < 1.2 * exposed


def test_steps_of_a_rank_whose_batches_always_come_late(torch, tmp_path):
    """By its own clock, from batch to batch, they are all about as long, also where it reads a value."""
    run = trained(tmp_path, "slow_batches.py", **QUICK)
    [took] = [line.split("took ")[1] for line in run.lines() if line.startswith("[rank 1]")]
    report = told("report", run.traces)[1]
    # The last step has no batch behind it, and the first ones make what the others use.
    steps = list(zip(report["step"]["longest_ns"], [float(s) * 1e9 for s in took.split()]))[2:-1]
    # On a busy machine a host may be away in some of them, between its clock and the call behind it.
    assert statistics.median(ns - own for ns, own in steps) == pytest.approx(0, abs=40e6)
    own = [ns for _, ns in steps]
    if max(own) < 1.3 * statistics.median(own):
        assert "long_steps" not in {f["kind"] for f in report["findings"]}


def test_statistics_of_layers_are_no_weights_that_could_be_gathered_early(torch, tmp_path):
    """Four layers gather what they have just computed, as SyncBatchNorm does."""
    report = reported(tmp_path, "layer_statistics.py")
    [gathers] = [b for b in report["buckets"] if b["bucket"] == "ALLGATHER"]
    assert gathers["calls"] >= 2 * 20 * 4
    assert report["step"]["parts"] is not None
    assert {f["kind"] for f in report["findings"]} & {"late_prefetch", "gathers_behind"} == set()

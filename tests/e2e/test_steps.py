"""The tool finds as many steps as a real training loop made, each where the loop's own range says it is."""

import bisect
import collections
import math

import pytest
from lib import formulas
from lib.layers import OPS, layers_of, rows_of
from lib.real_loops import ACCUMULATED, LAST_ONLY, LOOPS, STEPS, loop
from lib.tool import told


def ranges_of(file, name):
    """Returns when each began and ended, in nanoseconds of CLOCK_REALTIME, by number."""
    base = file.header["base_time_ns"]
    return {
        int(x["name"].removeprefix(name)): (
            base + round(x["ts"] * 1000),
            base + round((x["ts"] + x["dur"]) * 1000),
        )
        for x in file.lines
        if x.get("cat") == "NVTX" and x["ph"] == "X" and x["name"].startswith(name)
    }


def first_batch(file, within):
    """Returns when the first batch came in, in nanoseconds of CLOCK_REALTIME."""
    base = file.header["base_time_ns"]
    copies = [base + round(e["ts"] * 1000) for e in file.events if e["cat"] == "H2D"]
    return min(at for at in copies if within[0] <= at < within[1])


@pytest.mark.parametrize("name", LOOPS)
def test_steps_are_those_that_the_loop_made(name, loop_of):
    of_each, whole = LOOPS[name][1:]
    run = loop_of(name)
    check_steps(run, of_each, whole)
    check_phases(name, run)
    check_layers(name, run)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fsdp2", *LAST_ONLY, "--clip", "--eval-every", "2", "--gather-every", "3"),
        ("fsdp2", "--clip", "--eval-every", "4", "--gather-every", "2", "--targets"),
        ("ddp", *LAST_ONLY, "--eval-every", "5", "--gather-every", "3"),
    ],
)
def test_what_some_steps_have_more_is_in_no_other(arguments, torch, tmp_path):
    check_steps(loop(tmp_path, *arguments), of_each=1)


def check_steps(run, of_each, whole=None):
    report = told("summary", run.traces, "--by", "step")[1]
    assert report["steps_found"] == "period", report["steps_unknown"]
    assert whole is None or report["steps_whole"] is whole
    assert report["steps_unknown"] == []
    assert [step["step"] for step in report["steps"]] == list(range(1, of_each * STEPS + 1))
    passes = [ranges_of(file, "pass ") for file in run.ranks()]
    begun = [min(ranges[n][0] for ranges in passes) for n in range(STEPS)]
    ended = [max(ranges[n][1] for ranges in passes) for n in range(STEPS)]
    batches = [min(first_batch(file, ranges[n]) for file, ranges in zip(run.ranks(), passes)) for n in range(STEPS)]
    for i, step in enumerate(report["steps"]):
        n = bisect.bisect(begun, step["ts"]) - 1
        assert n == i // of_each, "a step begins in another"
        # The first operation of a loop's pass begins its step, so no part of it is in the step before.
        assert i % of_each or step["ts"] < ended[n]
        assert i == 0 or i % of_each or step["ts"] <= batches[n], "it begins behind its first batch"


def check_phases(name, run):
    """The gathers of the forward pass follow from the model: the root's parameters and each block's, but
    not the root's again where an evaluation has left them gathered."""
    report = told("summary", run.traces, "--by", "phase")[1]
    assert_adds_up(report)
    rest = calls_of(report)
    if name.startswith("zero"):  # DeepSpeed's own ranges
        assert not rest.get(("other", "RESHARDING"))
        if name.startswith("zero3"):
            assert rest["backward", "RESHARDING"] == report["buckets"]["RESHARDING"]["calls"]
        return
    arguments = LOOPS[name][0]
    if name.startswith("ddp"):
        assert ("forward", "ALLREDUCE") not in rest
        return
    every = int(arguments[arguments.index("--eval-every") + 1]) if "--eval-every" in arguments else STEPS + 1
    passes = STEPS * (4 if "--accumulate" in arguments else 1)
    evaluations = STEPS // every
    before_a_step = (STEPS - 1) // every
    units = formulas.DEPTH + 1
    assert rest["forward", "ALLGATHER"] == 2 * (passes * units - before_a_step)
    # An evaluation has two batches, and gathers the root's parameters once.
    assert rest.get(("other", "ALLGATHER"), 0) == 2 * evaluations * (2 * units - 1)
    assert rest["load", "H2D"] <= 2 * passes
    if "--clip" in arguments and LOOPS[name][1] == 1:
        assert rest["optimizer", "ALLREDUCE"] == 2 * STEPS


def check_layers(name, run):
    """Units, or buckets, and their calls follow from the model and the loop too."""
    layers = layers_of(run.traces)
    arguments = LOOPS[name][0]
    passes = 2 * STEPS * (4 if "--accumulate" in arguments else 1)
    made = dict.fromkeys(OPS, 0)
    if name.startswith("zero"):  # all gradients at once: ZeRO-1 reduces them once a step, ZeRO-3 after each micro-batch
        parameters = sum(math.prod(shape) for shape in formulas.Model().root() + formulas.DEPTH * formulas.Model().block())
        whole = (parameters, made | {"reduced": 2 * STEPS})
        scattered = (parameters // 2, made | {"scattered": passes})
        assert rows_of(layers) == []
        assert rows_of(layers, "bucket") == [whole if name == "zero1" else scattered]
    elif name.startswith("ddp"):
        # The first backward pass of each rank reduces all at once.
        assert rows_of(layers) == []
        reduced = (2 * STEPS if "--no-sync" in arguments else passes) - 2
        assert {tuple(calls.items()) for _, calls in rows_of(layers, "bucket")} == {
            tuple((made | {"reduced": reduced}).items())
        }
    else:
        model, shard = formulas.Model(), formulas.shard_flat if name.startswith("fsdp1") else formulas.shard_by_rows
        scattered = 2 * STEPS if "--no-sync" in arguments else passes
        kept = 2 * ((STEPS - 1) // 2) if "--eval-every" in arguments else 0  # roots that an evaluation left gathered
        root = made | {"forward": passes - kept, "scattered": scattered}
        block = made | {"forward": passes, "backward": passes, "scattered": scattered}
        units = [(shard(model.root(), 2), root), *[(shard(model.block(), 2), block)] * formulas.DEPTH]
        assert (rows_of(layers), rows_of(layers, "bucket")) == (units, [])


def calls_of(report):
    calls = collections.Counter()
    for row in report["rest"]:
        calls[row["phase"], row["bucket"]] += row["calls"]
    return calls


def assert_adds_up(report):
    """Asserts that the rows of the calls outside autograd's threads make up exactly all of these calls."""
    for figure in ("calls", "count", "elements", "bytes", "host_ns"):
        expected, found = collections.Counter(), collections.Counter()
        for phase in ("rest", "unknown"):
            for bucket, figures in report["phases"][phase].items():
                expected[bucket] += figures[figure]
        for row in report["rest"]:
            found[row["bucket"]] += row[figure]
        assert found == expected, figure


def test_marks_of_the_program_go_before_what_repeats(torch, tmp_path):
    run = loop(tmp_path, "fsdp2", *ACCUMULATED, ranges="step ")
    report = told("summary", run.traces, "--by", "step")[1]
    assert (report["steps_found"], report["steps_whole"]) == ("mark", True)
    assert [step["step"] for step in report["steps"]] == list(range(STEPS))
    for step in report["steps"]:
        assert step["buckets"]["RESHARDING"]["calls"] == 2 * 4 * 5
    # A late or slow call is in the step in whose range it was made.
    late = told("summary", run.traces, "--by", "rank")[1]["lateness"]["worst"]
    slow = told("summary", run.traces, "--top", "40")[1]["slowest"]["calls"]
    said = [(call["rank"], call["seq"], call["step"]) for call in [*late, *slow] if call["seq"] is not None]
    files = {file.header["rank"]: file for file in run.ranks()}
    for rank, seq, step in said:
        base = files[rank].header["base_time_ns"]
        (call,) = [e for e in files[rank].events if e["args"].get("seq") == seq]
        at = base + round(call["ts"] * 1000)
        ranges = ranges_of(files[rank], "step ")
        assert step == next((n for n, (begin, end) in ranges.items() if begin <= at < end), None)
    assert len({step for _, _, step in said}) > 1

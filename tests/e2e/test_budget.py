"""Frameworks move in a step what the formulas of `tprof budget` say; a mistake is over it, and named."""

import json
import math

import jsonschema_rs
import pytest
from lib import formulas, launch
from lib.build import LIBTPROF, REPO
from lib.cases import CASES, STEPS
from lib.real_loops import STEPS as LOOP_STEPS
from lib.tool import told, tprof
from test_fsdp_formulas import FSDP, PLAIN, REPLICATED, expected


def numbers(model, root=True):
    parameters = sum(map(math.prod, model.root() + formulas.DEPTH * model.block()))
    own = sum(map(math.prod, model.root()))
    return ("--params", parameters, *(("--layers", formulas.DEPTH, "--root-params", own) if root else ()))


ALL = numbers(PLAIN, root=False)
FP32 = ("--dtype", "fp32")
BATCHES = ("--micro-batches", 4)
ACTIVATIONS = ("--layers", formulas.DEPTH, "--tokens", 16, "--hidden", 64, "--tp-reductions", 1)
KEPT = "--no-reshard-after-forward"


def of_fsdp(name, reduced="float32"):
    """Returns the options that the case's program has."""
    _, model, _, reshard, dtype = FSDP[name]
    kind = "hsdp" if name in REPLICATED else "fsdp"
    options = ["--model", kind, *numbers(model), "--dtype", dtype, "--reduce-dtype", reduced]
    if not reshard:
        options.append(KEPT)
    if name.endswith("offload"):
        options.append("--offload")
    if name == "fsdp2-4-padded":  # by rows
        options += ["--tolerance", 3]
    return options


OTHERS = {
    "ddp-2": ("--model", "ddp", *ALL, *FP32),
    "zero3-2": ("--model", "zero3", *ALL, *FP32),
}
if "zero3-4" in CASES:
    OTHERS["zero3-4"] = OTHERS["zero3-2"]
LOOPS = {
    ("fsdp2-every-micro-batch",): ("--model", "fsdp", *numbers(PLAIN), *FP32, *BATCHES, "--accumulate", "every"),
    ("fsdp2", "--accumulate", "4", "--no-sync", "--clip"): ("--model", "fsdp", *numbers(PLAIN), *FP32, *BATCHES),
    ("ddp-every-micro-batch",): ("--model", "ddp", *ALL, *FP32, *BATCHES, "--accumulate", "every"),
    ("zero1",): ("--model", "zero1", *ALL, *FP32, *BATCHES),
    ("zero2", "--accumulate", "4"): ("--model", "zero2", *ALL, *FP32, *BATCHES),
    ("zero3-every-micro-batch",): ("--model", "zero3", *ALL, *FP32, *BATCHES),
    ("tp",): ("--model", "tp", *ACTIVATIONS, *FP32),
}


def budget(traces, *options):
    return told("budget", traces, *options)


@pytest.mark.parametrize("name", FSDP)
def test_fsdp_moves_what_the_papers_formula_says(name, pair_of):
    gathers, scatters, dtype, ranks = expected(name)
    code, report = budget(pair_of(name).traced.traces, *of_fsdp(name))
    assert (code, report["within"], report["explained_by"], report["steps"]) == (0, True, [], STEPS), report
    moved = {row["bucket"]: (row["calls"], row["bytes"]) for row in report["rows"]}
    for bucket, sizes, size in (
        ("ALLGATHER", gathers, 2 if dtype == "bfloat16" else 4),
        ("RESHARDING", scatters, 4),
    ):
        elements = ranks * sum(count * calls for count, calls in sizes.items())
        assert moved[bucket] == (sum(sizes.values()) / STEPS, size * elements / STEPS)


@pytest.mark.parametrize("name", OTHERS)
def test_other_frameworks_move_what_their_formulas_say(name, pair_of):
    code, report = budget(pair_of(name).traced.traces, *OTHERS[name])
    assert (code, report["explained_by"]) == (0, []), report
    assert any("setup" in note for note in report["notes"])


@pytest.mark.parametrize("name", LOOPS, ids=" ".join)
def test_loops_with_micro_batches_move_what_the_formulas_say(name, loop_of):
    code, report = budget(loop_of(*name).traces, *LOOPS[name])
    assert (code, report["explained_by"]) == (0, []), report


def test_steps_come_from_step_lines_where_there_are_no_event_lines(torch, tmp_path):
    arguments = ("fsdp2", "--accumulate", "2", "--eval-every", "2", "--ranges", "step ")
    env = {"NVTX_INJECTION64_PATH": str(LIBTPROF), "TPROF_EVENTS": "off"}
    run = launch.start(launch.without_agent("loops.py", 2, arguments), tmp_path, **env)
    options = ("--model", "fsdp", *numbers(PLAIN), *FP32, "--micro-batches", 2, "--accumulate", "every")
    code, report = budget(run.traces, *options)
    assert (code, report["from"]) == (0, "step lines"), report
    # Behind an evaluation the root is still gathered.
    assert report["steps"] == 4 and any("leave out 2 steps" in note for note in report["notes"])


# what the program does -> (what was expected of it, sentences)
MISTAKES = {
    "fsdp1-2": (of_fsdp("fsdp1-2-grad-op"), ["each parameter is gathered twice in a step"]),
    "fsdp2-2": (
        of_fsdp("fsdp2-2-kept", "bf16"),
        ["gathered twice", "ALLGATHER moves float32, but bfloat16", "RESHARDING moves float32, but bfloat16"],
    ),
    "fsdp1-2-grad-op": (of_fsdp("fsdp1-2"), ["each parameter is gathered once in a step"]),
    "fsdp2-4-hsdp": (
        of_fsdp("fsdp2-4-hsdp", "bf16"),
        ["RESHARDING moves float32", "ALLREDUCE moves float32"],
    ),
    "ddp-2": (of_fsdp("fsdp2-2"), ["every rank reduces whole gradients (ALLREDUCE)"]),
    "fsdp2-4-padded": (of_fsdp("fsdp2-4-padded")[:-2], ["shards are padded by rows (--tolerance)"]),
}


def assert_said(report, parts):
    """Each sentence has its part, and there is none beside these."""
    said = report["explained_by"]
    assert not report["within"] and len(said) == len(parts), said
    for part in parts:
        assert any(part in sentence for sentence in said), said


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_over_the_budget_and_named(name, pair_of):
    options, parts = MISTAKES[name]
    code, report = budget(pair_of(name).traced.traces, *options)
    assert code == 1
    assert_said(report, parts)


@pytest.mark.parametrize("name", ["fsdp2", "ddp"])
def test_reductions_in_each_micro_batch_are_named(name, loop_of):
    traces = loop_of(f"{name}-every-micro-batch").traces
    options = ["--model", name.rstrip("2"), *numbers(PLAIN, name != "ddp"), *FP32, *BATCHES]
    if name == "ddp":  # whose step moves as much with one micro-batch
        done = tprof("budget", traces, *options)
        assert done.returncode == 2 and "--steps N says how many steps the job made" in done.stderr
        options += ["--steps", LOOP_STEPS]
    code, report = budget(traces, *options)
    assert code == 1
    assert_said(report, ["reduced 4 times in a step, in each micro-batch, instead of once"])
    # A norm behind the last of four, also of the last four.
    assert [small["calls"] for small in report["small"]] == ([1] if name == "fsdp2" else [])


def test_a_budget_of_a_good_run_holds_others_against_it(pair_of, tmp_path):
    good, bad = (pair_of(name).traced.traces for name in ("fsdp1-2-grad-op", "fsdp1-2"))
    file = tmp_path / "budget.json"
    assert tprof("budget", good, "--write", file).returncode == 0
    schema = json.loads((REPO / "analysis/budget/budget.schema.json").read_text())
    jsonschema_rs.Draft202012Validator(schema).validate(json.loads(file.read_text()))
    assert budget(good, "--budget", file)[0] == 0
    code, report = budget(bad, "--budget", file)
    assert code == 1
    assert_said(report, ["each unit but one (the root) is gathered twice as often as in the budget"])
    # Twice the ranks, in two copies: the shards are the same, the replicas' all-reduces are new.
    code, report = budget(pair_of("fsdp1-4-hybrid").traced.traces, "--budget", file)
    assert code == 1
    assert any("for 2 ranks and this job has 4" in note for note in report["notes"])


def test_people_see_a_table_and_what_is_over(pair_of):
    done = tprof("budget", pair_of("fsdp1-2").traced.traces, *of_fsdp("fsdp1-2-grad-op"))
    assert done.returncode == 1
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["ALLGATHER", "float32", "9", "5", "1.04", "MiB"] in [row[:6] for row in rows]
    assert [row[-1] for row in rows if row[:1] == ["ALLGATHER"]] == ["over"]
    assert done.stdout.endswith("reshard_after_forward is on.\nNot within the budget.\n")

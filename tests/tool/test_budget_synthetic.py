"""`tprof budget` on synthetic jobs with and without a mistake, on files without lines, and on bad usage."""

import json

import pytest
from generator import causes, habits, rank_files
from lib import handmade
from lib.tool import told, tprof

RANKS = 8


def job(folder, layout, cause=None, seed=1, steps=4, ranks=RANKS):
    """Writes a job, and returns what its program does when it makes no mistake."""
    made = causes.case(layout, ranks, cause, seed, steps)
    rank_files.write(made, folder, seed)
    return causes.healthy(layout, ranks, seed, steps).but(**causes.WITHOUT.get(cause, {}))


def options_of(model, kind, params=None):
    """Here no unit is the root of the others: it is as large as a layer."""
    more = [] if model.reshard else ["--no-reshard-after-forward"]
    accumulate = "every" if model.reduce_each else "no_sync"
    return ["--model", kind, "--params", model.layers * model.params, "--layers", model.layers - 1, "--micro-batches",
            model.micro_batches, "--accumulate", accumulate, *more]  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("layout", "kind"), [("fsdp", "fsdp"), ("hsdp", "hsdp"), ("zero3_offload", "zero3")])
def test_a_healthy_job_is_within(layout, kind, seed, tmp_path):
    ranks = 16 if layout == "hsdp" else RANKS
    model = job(tmp_path / "job", layout, None, seed, ranks=ranks)
    more = ["--offload"] if layout.endswith("offload") else []
    code, report = told("budget", tmp_path / "job", *options_of(model, kind), *more)
    assert code == 0, report
    assert report["from"] in ("event lines", "step lines") and report["steps"] == 4
    gathers = next(row for row in report["rows"] if row["bucket"] == "ALLGATHER")
    passes = (2 if model.reshard else 1) * model.micro_batches
    assert gathers["calls"] == passes * model.layers


def test_tensor_parallelism_and_fsdp_together(tmp_path):
    model = job(tmp_path / "job", "fsdp_tp")
    options = [*options_of(model, "fsdp+tp"), "--tokens", 4_000_000, "--hidden", 1]
    # The formula has all-reduces of as many layers as there are units beside the root.
    options[options.index("--layers") + 1] = model.layers
    code, report = told("budget", tmp_path / "job", *options)
    reduced = next(row for row in report["rows"] if row["bucket"] == "ALLREDUCE")
    assert reduced["within"] and reduced["calls"] == 4 * model.layers * model.micro_batches
    assert code == 0  # the calls of a root without weights of its own are not made
    assert told("budget", tmp_path / "job", *options, "--root-params", model.params)[0] == 1
    assert told("budget", tmp_path / "job", *options, "--root-params", 0)[0] == 0


@pytest.mark.parametrize(
    ("cause", "part"),
    [
        ("gather_twice", "each parameter is gathered twice in a step"),
        ("reduce_each_micro_batch", "gradients are reduced 4 times in a step, in each micro-batch, instead of once"),
        ("fp32", "ALLGATHER moves float32, but bfloat16 was expected: 2 times the bytes"),
    ],
)
def test_what_is_planted_is_named_and_nothing_else(cause, part, tmp_path):
    model = job(tmp_path / "job", "fsdp", cause)
    code, report = told("budget", tmp_path / "job", *options_of(model, "fsdp"))
    assert code == 1
    (said,) = report["explained_by"]
    assert said.startswith(part)


def test_gathers_that_a_run_leaves_out_are_told_by_a_budget_of_another(tmp_path, monkeypatch):
    monkeypatch.setitem(causes.CAUSES, "nothing", lambda loop, rng: (loop, causes.Truth(None)))
    monkeypatch.setitem(causes.WITHOUT, "nothing", causes.WITHOUT["gather_twice"])
    job(tmp_path / "twice", "fsdp", "gather_twice")
    job(tmp_path / "once", "fsdp", "nothing")
    said = {}
    for good, now in (("twice", "once"), ("once", "twice")):
        assert tprof("budget", tmp_path / good, "--write", tmp_path / f"{good}.json").returncode == 0
        code, report = told("budget", tmp_path / now, "--budget", tmp_path / f"{good}.json")
        assert code == 1
        (said[now],) = report["explained_by"]
    how = "each unit is gathered {} as often as in the budget: reshard_after_forward?"
    assert said == {"once": how.format("half"), "twice": how.format("twice")}


def test_calls_and_bytes_of_gathers_are_held_against_the_budget_together(tmp_path):
    """All units are gathered twice, so no smaller number of bytes will do, though it would with fewer calls."""
    folder = tmp_path / "job"
    model = job(folder, "fsdp")
    root = model.params  # units are alike: one is taken for the root
    for params, within in ((model.layers * root, True), (model.layers * root + root // 4, False)):
        options = ["--model", "fsdp", "--params", params, "--layers", model.layers - 1, "--root-params", root,
                   "--micro-batches", model.micro_batches]  # fmt: skip
        _, report = told("budget", folder, *options)
        gathers = next(row for row in report["rows"] if row["bucket"] == "ALLGATHER")
        assert gathers["calls"] == gathers["calls_per_step"]["max"]
        assert gathers["bytes"] >= model.micro_batches * (2 * params - root) * 2  # of bfloat16, with the fewest calls
        assert gathers["within"] is within
        least, most = gathers["bytes_per_step"]["min"], gathers["bytes_per_step"]["max"]
        assert (least <= gathers["bytes"] <= most) is within


def without_lines(folder):
    """Leaves what is there if nobody wants event lines, nor steps."""
    for file in folder.iterdir():
        lines = [json.loads(line.rstrip(",")) for line in file.read_text().splitlines()[1:-1]]
        kept = [line for line in lines if line["ph"] == "M" and line["name"] != "tprof_step"]
        for line in kept:
            if line["name"] == "tprof_header":
                line["args"]["config"] = {"TPROF_EVENTS": "off"}
        file.write_text("[\n" + ",\n".join(json.dumps(line, separators=(",", ":")) for line in kept) + "\n]\n")


def test_steps_by_hand_where_the_ledger_is_all_there_is(tmp_path):
    folder = tmp_path / "job"
    model = job(folder, "fsdp")
    without_lines(folder)
    options = options_of(model, "fsdp")
    done = tprof("budget", folder, *options)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("tprof: no steps are known: ") and line.endswith("--steps N says how many the job made")
    code, report = told("budget", folder, *options, "--steps", 4)
    assert (code, report["from"], report["steps"]) == (0, "ledgers", 4)
    assert any("whole run divided by 4 steps" in note for note in report["notes"])
    assert told("budget", folder, *options, "--steps", 2)[0] == 1


def test_the_sizes_of_other_numbers_of_steps_compare(tmp_path):
    job(tmp_path / "short", "fsdp", steps=3)
    job(tmp_path / "long", "fsdp", steps=6)
    file = tmp_path / "budget.json"
    assert tprof("budget", tmp_path / "short", "--write", file).returncode == 0
    done = tprof("budget", tmp_path / "long", "--budget", file)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ((), "expected one of --model NAME, --budget FILE and --write FILE"),
        (("--model", "fsdp", "--budget", "x"), "expected one of"),
        (("--model", "fsdp3", "--params", "1e9"), "--model: expected ddp, zero1"),
        (("--model", "fsdp"), "--params: --model fsdp needs it"),
        (("--model", "tp", "--layers", "4", "--hidden", "8"), "--tokens: --model tp needs it"),
        (("--model", "ddp", "--params", "1e9", "--dtype", "bf17"), "--dtype: expected a type"),
        (("--model", "ddp", "--params", "1e9", "--accumulate", "once"), "--accumulate: expected one of no_sync|every; found once"),
        (("--model", "fsdp", "--params", "5", "--root-params", "6"), "--root-params: more than --params"),
        (("--budget", "/nowhere/budget.json"), "/nowhere/budget.json: No such file"),
    ],
)
def test_bad_usage_is_one_line(options, part, tmp_path):
    done = tprof("budget", tmp_path, *options)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert part in line


@pytest.mark.parametrize("divisor", [2, 3, 7.5, 16, 31])
def test_too_small_a_number_of_parameters_is_no_missing_no_sync(divisor, tmp_path):
    """The gradients are some multiple of any small number, which does not tell how often they are reduced."""
    model = job(tmp_path / "job", "fsdp")
    params = model.layers * model.params
    reduced = params * (model.micro_batches if model.reduce_each else 1)
    code, report = told("budget", tmp_path / "job", "--model", "fsdp", "--params", int(params / divisor))
    said = " ".join(report["explained_by"])
    assert code == 1 and "instead of once" not in said
    assert "either --params is too small, or" in said or f"gradients of {reduced:,} elements are reduced" in said


@pytest.mark.parametrize(("layout", "is_", "asked"), [("fsdp", "fsdp", "ddp"), ("fsdp", "fsdp", "zero1"), ("ddp", "ddp", "zero2")])
def test_a_job_of_another_kind_than_asked_is_known_as_one(layout, is_, asked, tmp_path):
    model = job(tmp_path / "job", layout)
    assert told("budget", tmp_path / "job", *options_of(model, is_))[0] == 0
    code, report = told("budget", tmp_path / "job", *options_of(model, asked))
    (said,) = report["explained_by"]
    assert code == 1 and said.startswith("this looks like ") and said.endswith(f", not {asked}")
    assert is_ in said.split(",")[0].split()


def accumulating(folder, **more):
    """Writes a DDP job of 12 steps of four micro-batches that nobody marked. Returns the options of its budget."""
    loop = habits.Loop(ranks=2, steps=12, layers=4, micro_batches=4, **more)
    rank_files.write(habits.run(loop), folder, settings=rank_files.Settings(marks=False))
    return ["--model", "ddp", "--params", loop.layers * loop.params, "--dtype", "fp32", "--micro-batches", 4]


def test_what_may_be_steps_or_micro_batches_is_asked_for_and_nobody_is_blamed(tmp_path):
    options = accumulating(tmp_path / "once")
    done = tprof("budget", tmp_path / "once", *options)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "whether the 12 repeats are steps or micro-batches" in done.stderr
    assert "if each is a step, everything is within the budget; if 4 make a step, not everything is" in done.stderr
    assert "--steps N says how many steps the job made" in done.stderr
    code, report = told("budget", tmp_path / "once", *options, "--steps", 12)
    assert (code, report["explained_by"], report["steps"]) == (0, [], 12)
    # Three steps of four that each reduced: the same calls.
    code, report = told("budget", tmp_path / "once", *options, "--steps", 3)
    assert code == 1 and "reduced 4 times in a step, in each micro-batch" in report["explained_by"][0]


def test_gradients_that_what_repeats_reduces_more_than_once_need_no_number_of_steps(tmp_path):
    options = accumulating(tmp_path / "each", reduce_each=True)
    code, report = told("budget", tmp_path / "each", *options)
    (said,) = report["explained_by"]
    assert (code, report["steps"]) == (1, 12)
    assert said.startswith("gradients are reduced 4 times in a step, in each micro-batch, instead of once")


def without_communicator(folder, *lines, pid=17, **fields):
    """Writes a process that copies a batch of 1 MiB in each of four steps, and never calls NCCL."""
    copies = {"bucket": "H2D", "name": "cudaMemcpyAsync", "dtype": "byte", "comm": None, "device": 0, "bytes_class": 20}
    ledger = handmade.ledger(handmade.row(**copies, calls=4, count=4 << 20, elements=4 << 20, bytes=4 << 20))
    batch = handmade.row(**copies, count=1 << 20, elements=1 << 20, bytes=1 << 20)
    steps = [handmade.metadata("tprof_step", step=n, ts=1000.0 * n, dur=900.0, rows=[batch]) for n in range(4)]
    header = handmade.header(**{"world_size": 1, "pid": pid} | fields)
    folder.mkdir(exist_ok=True)
    file = folder / f"{header['args']['host']}-{pid}.json"
    file.write_text(handmade.array(header, *(steps if "marks" in lines else []), ledger, handmade.footer()))
    return folder


BY_HAND = {"schema": "tprof-budget/1", "rows": [{"bucket": "ALLGATHER", "bytes_per_step": {"max": 1000}}]}


@pytest.mark.parametrize("model", [("--model", "ddp", "--params", "1e6"), ("--model", "fsdp", "--params", "1e6")])
def test_a_job_without_a_collective_is_within_no_budget(model, tmp_path):
    folder = without_communicator(tmp_path / "job")
    file = tmp_path / "budget.json"
    file.write_text(json.dumps(BY_HAND))
    for options in (model, ("--budget", file), ("--write", tmp_path / "new.json")):
        done = tprof("budget", folder, *options, "--steps", 4)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("tprof: no rank has a communicator") and "tprof doctor" in line


def test_processes_that_have_no_rank_are_named_by_what_they_are(tmp_path):
    folder = without_communicator(tmp_path / "job", "marks", rank=None)
    file = tmp_path / "budget.json"
    file.write_text(json.dumps({**BY_HAND, "rows": [{"bucket": "H2D", "bytes_per_step": {"max": 1 << 20}}]}))
    done = tprof("budget", folder, "--budget", file)
    assert done.returncode == 0 and done.stdout.startswith("Pid 17 on h in a step, ")
    report = told("budget", folder, "--budget", file)[1]
    assert [(row["ranks"], row["bytes"]) for row in report["rows"]] == [(["pid 17 on h"], 1 << 20)]
    without_communicator(folder, "marks", rank=0, pid=18)
    assert tprof("budget", folder, "--budget", file).stdout.startswith("Each of rank 0, pid 17 on h in a step, ")

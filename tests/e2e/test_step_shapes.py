"""Jobs as people write them, close to those whose steps are easily found. The tool finds as many steps as the
loop made, or says that it does not know them."""

import collections
import os
import signal

import pytest
from lib import launch, rankfile
from lib.build import BUILD, LIBTPROF, REPO
from lib.contract import not_as_the_contract_says
from lib.layers import layers_of
from lib.rankfile import named
from lib.runs import until
from lib.tool import merged, told, tprof

BY_RANGE = {"NVTX_INJECTION64_PATH": str(LIBTPROF)}
SCATTERS = 5  # per step on one rank: four blocks and the root


def run(folder, kind, *arguments, ranks=2, **env):
    done = launch.start(launch.without_agent("loops.py", ranks, (kind, *map(str, arguments))), folder, **env)
    assert done.code == 0, done.stderr
    return done


def steps_of(run, *more):
    return told("summary", run.traces, "--by", "step", *more)[1]


@pytest.mark.parametrize("mark", ["auto", "off"])
def test_numbers_that_begin_again_with_each_epoch_are_steps_of_their_own(torch, tmp_path, mark):
    """Covers the lines that the writer has for marked steps, and the ranges alone."""
    done = run(tmp_path, "fsdp2", "--steps", 30, "--epoch", 5, "--ranges", "step ", TPROF_STEP=mark, **BY_RANGE)
    report = steps_of(done)
    assert (report["steps_found"], report["steps_counted_on"], report["steps_unknown"]) == ("mark", True, [])
    assert [step["step"] for step in report["steps"]] == list(range(30))
    assert [step["buckets"]["RESHARDING"]["calls"] for step in report["steps"]] == [2 * SCATTERS] * 30
    some = steps_of(done, "--steps", "12-16")
    assert [step["step"] for step in some["steps"]] == list(range(12, 17))
    events_of = by_rank(merged(done.traces, tmp_path / "merged.json", "--positions"))
    assert not_as_the_contract_says(rankfile.lines_of(tmp_path / "merged.json")) == []
    for rank, events in events_of.items():
        loop = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("step "))
        assert len(loop) == 30, rank
        for event in events:
            within = [n for n, (start, end) in enumerate(loop) if start <= event["ts"] < end]
            expected = (within[0], within[0] // 5) if within else (None, None)
            assert (event["args"].get("step"), event["args"].get("epoch")) == expected, event


def by_rank(lines):
    found = collections.defaultdict(list)
    for line in lines:
        if line["ph"] == "X" and line["name"] != "tprof_step":
            found[line["pid"]].append(line)
    return found


def test_a_schedule_counts_steps_through_all_epochs(torch, tmp_path):
    settings = {"TPROF_SCHEDULE": "skip_first=4,wait=2,warmup=1,active=2,repeat=4"} | BY_RANGE
    done = run(tmp_path, "fsdp2", "--steps", 26, "--epoch", 5, "--ranges", "step ", **settings)
    for file in done.ranks():
        begun = [step["ts"] for step in named(file.lines, "tprof_step")]
        windows = named(file.lines, "tprof_window")
        inside = [[n for n, ts in enumerate(begun) if w["ts"] <= ts < w["ts"] + w["dur"]] for w in windows]
        assert inside == [[7, 8], [12, 13], [17, 18], [22, 23]]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("turns", ["1,2,3,4", "1,2"])
@pytest.mark.parametrize("kind", ["fsdp2", "ddp"])
def test_steps_of_different_numbers_of_micro_batches(torch, tmp_path, kind, turns):
    report = steps_of(run(tmp_path, kind, "--steps", 20, "--accumulate", turns, "--no-sync"))
    assert report["steps_found"] == "period" and len(report["steps"]) == 20
    bucket = {"fsdp2": "RESHARDING", "ddp": "ALLREDUCE"}[kind]
    calls = [step["buckets"][bucket]["calls"] for step in report["steps"]]
    assert calls[1:19] == [calls[1]] * 18  # DDP's first step reduces all at once, the last has the barrier too
    ambiguous = "which may be micro-batches of the step or belong to an evaluation"
    assert any(ambiguous in note for note in report["steps_unknown"]) == (kind == "ddp")


@pytest.mark.parametrize("kind, ranks", [("tp", 2), ("mesh", 4)])
def test_a_few_steps_of_tensor_parallelism_are_not_known(torch, tmp_path, kind, ranks):
    done = run(tmp_path, kind, "--steps", 2, "--accumulate", 2, ranks=ranks)
    report = steps_of(done)
    assert (report["steps_found"], report["steps"]) == (None, None)
    assert layers_of(done.traces)["groups"] == []


def test_what_a_schedule_let_go_by_is_said(torch, tmp_path):
    settings = {"TPROF_SCHEDULE": "wait=2,active=1"}
    done = run(tmp_path, "fsdp2", "--steps", 40, "--eval-every", 3, "--checkpoint-every", 10, **settings)
    report = steps_of(done)
    if report["steps_found"] is None:
        assert report["steps_unknown"]
        return
    first, last = (report["steps"][n]["step"] for n in (0, -1))
    assert first > 6 and last == 40
    assert any(note.startswith(f"steps before step {first} have no figures") for note in report["steps_unknown"])


def test_gradients_of_zero3_are_gradients_where_every_rank_keeps_the_parameters(torch, tmp_path):
    """Autograd's threads gather in the first step only, and gradients are reduced after the backward pass."""
    layers = layers_of(run(tmp_path, "zero3", "--steps", 14).traces)
    (group,) = layers["groups"]
    scattered = sum(row["scattered"]["calls"] for row in group["rows"] if row["scattered"])
    assert scattered == 2 * 14
    assert not any(row["bucket"] == "RESHARDING" for row in layers["left"])


def test_a_job_without_collectives_has_the_steps_that_it_says(torch, tmp_path):
    steps, batches = 4, 3
    command = [launch.sys.executable, launch.CLIENTS / "single_steps.py", steps, batches]
    done = launch.start(command, tmp_path, PYTHONPATH=str(REPO / "interpose/user"))
    assert done.code == 0, done.stderr
    report = steps_of(done)
    assert report["steps_found"] == "mark" and len(report["steps"]) == steps
    assert [step["buckets"]["H2D"]["calls"] for step in report["steps"]] == [batches] * steps
    first = report["steps"][0]["step"]
    only = steps_of(done, "--steps", f"{first + 1}-{first + 2}")
    assert only["buckets"]["H2D"]["calls"] == 2 * batches


def test_a_window_by_hand_is_of_the_same_steps_on_all_ranks(tmp_path):
    traces = tmp_path / "traces"

    def lines(what, least):
        files = list(traces.glob("rank-*.json"))
        return len(files) == 2 and all(path.read_text().count(what) >= least for path in files)

    command = [BUILD / "native_trainer", "--ranks", 2, "--steps", 100_000]
    settings = {"TPROF_STEP": "call:ncclReduceScatter", "STANDIN_LATENCY_US": "2000"}
    with launch.running(command, tmp_path, **settings) as process:
        until(lambda: lines('"tprof_step"', 10))
        asked = tprof("ctl", traces, "window", "3")
        assert asked.returncode == 0, asked.stdout + asked.stderr
        until(lambda: lines('"first_step"', 1))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: tprof("recover", traces).returncode == 0)
    found = []
    for file in rankfile.read_folder(traces):
        (window,) = [w for w in named(file.lines, "tprof_window") if "first_step" in w]
        inside = [e for e in file.events if window["ts"] <= e["ts"] < window["ts"] + window["dur"]]
        reduced = [e["args"]["seq"] for e in inside if e["name"] == "ncclReduceScatter"]
        found.append((window["first_step"], window["last_step"], reduced))
    assert found[0] == found[1]
    first, last, reduced = found[0]
    assert last == first + 2 and len(reduced) == 3
    said = [line for line in asked.stdout.splitlines() if line.startswith("rank")]
    assert len(said) == 2 and all(f"its step number {first} on" in line for line in said)

"""Exact counts per step from the process itself: no event line is needed, and none is trusted."""

import collections
import os
import signal

import pytest
from lib import launch, rankfile
from lib.build import BUILD, LIBTPROF
from lib.contract import not_as_the_contract_says
from lib.rankfile import calls_of, lines_of, named
from lib.runs import until
from lib.tally import returned
from lib.tool import told, tprof

STEPS = 6
RANKS = 2
# Calls of one FSDP2 step on one rank: four blocks and the root.
GATHERS, SCATTERS = 9, 5
MARKED_BY_NORM = {"TPROF_STEP": "call:ncclAllReduce@20", "TPROF_EVENTS": "off"}


def run(folder, *arguments, **env):
    done = launch.start(launch.without_agent("loops.py", RANKS, arguments), folder, **env)
    assert done.code == 0, done.stderr
    return done


def steps_of(file):
    return named(file.lines, "tprof_step")


def by_key(rows):
    total = collections.Counter()
    for row in rows:
        place = (row["comm"], row.get("device"), row.get("thread"))
        for figure in ("calls", "count", "elements", "bytes", "host_ns"):
            total[(row["name"], row["dtype"], *place, row["bytes_class"], figure)] += row[figure]
    return total


def outside(file):
    """Returns the calls that the ledger has and no step has; no figure may be negative."""
    rest = by_key(file.ledger_rows())
    rest.subtract(by_key(row for step in steps_of(file) for row in step["rows"]))
    assert min(rest.values()) >= 0
    total = collections.Counter()
    for key, n in rest.items():
        total[key[0]] += n if key[-1] == "calls" else 0
    return total


@pytest.mark.parametrize("events", ["off", "on"])
def test_numbered_ranges_give_each_step_its_exact_counts(torch, tmp_path, events):
    done = run(
        tmp_path, "fsdp2", "--accumulate", "2", "--eval-every", "2", "--ranges", "step ",
        NVTX_INJECTION64_PATH=str(LIBTPROF), TPROF_EVENTS=events,
    )  # fmt: skip
    for file in done.ranks():
        assert not_as_the_contract_says(line for line in lines_of(file.path)) == []
        assert bool(file.events) == (events == "on")
        steps = steps_of(file)
        assert [step["step"] for step in steps] == list(range(STEPS))
        for step in steps:
            found = calls_of(step["rows"])
            assert "lost" not in step and found["ncclReduceScatter"] == 2 * SCATTERS
            # After an evaluation the root is still gathered.
            assert 2 * GATHERS - found["ncclAllGather"] == (step["step"] in (2, 4))
        tally = returned(done.tallies()[file.header["pid"]])
        in_steps = calls_of(row for step in steps for row in step["rows"])
        rest = outside(file)
        assert in_steps["ncclReduceScatter"] == tally["ncclReduceScatter"]
        for function in ("ncclAllGather", "ncclAllReduce", "cudaMemcpyAsync"):
            counted = in_steps[function] + rest[function]
            assert counted == calls_of(file.ledger_rows())[function]
            assert function.startswith("cuda") or counted == tally[function]
        assert rest["ncclAllGather"] >= 3 * 2 * 4  # evaluations are in no range
    report = told("summary", done.traces, "--by", "step")[1]
    assert (report["steps_found"], report["steps_exact"], report["steps_unknown"]) == ("mark", True, [])
    scatters = [step["buckets"]["RESHARDING"]["calls"] for step in report["steps"]]
    assert scatters == [RANKS * 2 * SCATTERS] * STEPS


def test_a_call_ends_each_step(torch, tmp_path):
    done = run(tmp_path, "fsdp2", "--clip", **MARKED_BY_NORM)
    for file in done.ranks():
        steps = steps_of(file)
        assert [step["step"] for step in steps] == list(range(1, STEPS + 1))
        for step in steps:
            found = calls_of(step["rows"])
            assert (found["ncclAllGather"], found["ncclReduceScatter"]) == (GATHERS, SCATTERS)
            assert found["ncclAllReduce"] == 1
        for before, after in zip(steps, steps[1:]):
            assert before["ts"] + before["dur"] == pytest.approx(after["ts"], abs=0.002)
        assert outside(file)["ncclReduceScatter"] == 0
    text = tprof("summary", done.traces, "--steps", "2-").stdout
    assert "Totals of steps 2- over 2 processes\n" in text


# A step of each loop makes these reductions and gathers; an evaluation adds gathers.
REPEATING = {
    "fsdp2": (("--accumulate", "4", "--no-sync", "--eval-every", "3"), {"ncclReduceScatter": SCATTERS}, 36),
    "ddp": (("--eval-every", "2"), {"ncclAllReduce": 5}, 0),
    "zero3": (("--accumulate", "4"), {"ncclReduceScatter": 4, "ncclAllReduce": 1}, 20),
}


@pytest.mark.parametrize("kind", REPEATING)
def test_steps_that_nobody_marks_are_found_while_the_program_runs(torch, tmp_path, kind):
    arguments, reduced, gathered = REPEATING[kind]
    made = 24
    settings = {"TPROF_STEP": "period", "TPROF_EVENTS": "off", "NVTX_INJECTION64_PATH": str(LIBTPROF)}
    done = run(tmp_path, kind, "--steps", str(made), *arguments, **settings)
    numbers = set()
    for file in done.ranks():
        assert not_as_the_contract_says(line for line in lines_of(file.path)) == []
        steps = steps_of(file)
        # Some steps go by until it is clear what repeats.
        assert made - 12 <= len(steps) < made and all(step["found"] == "period" for step in steps)
        # Steps that went by are counted, except for a first one that is not like the others.
        last = steps[-1]["step"]
        assert last in ((made,) if kind == "fsdp2" else (made - 1, made))
        assert [step["step"] for step in steps] == list(range(last - len(steps) + 1, last + 1))
        for step in steps:
            found = calls_of(step["rows"])
            assert {name: found[name] for name in reduced} == reduced
            assert found["ncclAllGather"] >= gathered
        plain = sum(calls_of(step["rows"])["ncclAllGather"] == gathered for step in steps)
        assert plain >= len(steps) // 2
        outside(file)
        numbers.add(len(steps))
    assert len(numbers) == 1, "ranks that do the same find the same steps"
    report = told("summary", done.traces, "--by", "step")[1]
    assert (report["steps_found"], report["steps_exact"], report["steps_whole"]) == ("period", True, False)
    where, note = report["steps_unknown"]
    assert where.startswith("each begins after the previous step's last gradient reduction")
    assert note.startswith(f"steps before step {report['steps'][0]['step']} have no figures")


@pytest.mark.parametrize("mark", ["auto", "off", "call:ncclBroadcast"])
def test_without_a_mark_there_is_no_step(tmp_path, mark):
    done = launch.start([BUILD / "native_trainer", "--ranks", "2"], tmp_path, TPROF_STEP=mark)
    assert done.code == 0 and len(done.ranks()) == RANKS
    assert not any(steps_of(file) for file in done.ranks())


def test_steps_that_the_quota_leaves_without_a_line_are_counted_and_said(tmp_path):
    steps = {"TPROF_STEP": "call:ncclReduceScatter", "TPROF_QUOTA": "16K"}
    done = launch.start([BUILD / "native_trainer", "--ranks", 2, "--steps", 20], tmp_path, **steps)
    assert done.code == 0, done.stderr
    without = 0
    for file in done.ranks():
        dropped = file.footer["steps_dropped"]
        ended = returned(done.tallies()[file.header["pid"]])["ncclReduceScatter"]
        assert len(steps_of(file)) + dropped == ended
        without += dropped
    report = told("summary", done.traces, "--by", "step")[1]
    assert f"ranks 0,1: {without} steps ended without a line" in report["steps_unknown"]


def test_killed_processes_have_the_steps_that_they_wrote(torch, tmp_path):
    command = launch.without_agent("loops.py", RANKS, ("fsdp2", "--steps", "100000"))

    def written():
        files = list((tmp_path / "traces").glob("rank-*.json"))
        return files and all(path.read_text().count('"tprof_step"') > 10 for path in files)

    # The root's gradients are the last of a step.
    mark = {"TPROF_STEP": "call:ncclReduceScatter@4160", "TPROF_EVENTS": "off"}
    with launch.running(command, tmp_path, **mark) as process:
        until(written)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    until(lambda: tprof("recover", tmp_path / "traces").returncode == 0)  # the last of them may linger
    for file in rankfile.read_folder(tmp_path / "traces"):
        steps = steps_of(file)
        assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
        found = [calls_of(step["rows"])["ncclReduceScatter"] for step in steps]
        assert len(steps) > 10 and found == [SCATTERS] * len(steps)
        outside(file)

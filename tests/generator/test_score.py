"""`tprof report` says of synthetic jobs what was planted in them, at about the cost that it has, and
nothing else: of 70, in `make test` of every second one.
`make bench` does so with more than 500 (tests/bench/causes.py)."""

import statistics

import pytest
from generator import causes, rank_files, score
from lib.build import TPROF
from lib.thorough import ALL
from lib.tool import told


@pytest.mark.parametrize(("number", "layout"), enumerate(causes.LAYOUTS))
def test_it_finds_what_was_planted_and_nothing_else(number, layout, tmp_path):
    jobs = [job for job in score.jobs(1) if job[0] == layout]
    # Every second layout has the causes that the others leave out.
    judged = score.score(TPROF, tmp_path, jobs if ALL else jobs[number % 2 :: 4 if layout == "fsdp_tp" else 2])
    assert [(j.name, j.false) for j in judged if j.false] == []
    counting = [j for j in judged if j.counts]
    missed = [j.name for j in counting if not j.found]
    # Reading a value in each layer of a pipeline costs its launches one after the other: not seen.
    assert missed in ([], ["pipeline item_each_layer 0"])
    assert len(counting) >= (4 if ALL else 2)
    # How wrong a cost is beyond the doubt that it states.
    errors = [(abs(j.claimed_ns - j.true_ns) - j.doubt_ns) / j.true_ns for j in counting if j.found]
    assert statistics.median(errors) < 0.1 and max(errors) < 0.6, errors


def test_a_score_sees_what_is_missed_and_what_is_false():
    job = ("fsdp", "slow_gpu", 0, 16, 6)
    made = causes.case("fsdp", 16, "slow_gpu", 0)
    [rank] = made.truth.ranks
    right = {"kind": "slow_gpu", "ranks": [rank], "cost": {"ns_per_step": made.truth.cost_ns_per_step}}
    assert score.judge(job, made, []).counts and not score.judge(job, made, []).found
    assert score.judge(job, made, [right]).found and not score.judge(job, made, [right]).false
    for wrong in (
        right | {"ranks": [rank + 1]},
        right | {"kind": "slow_input"},
        right | {"cost": {"ns_per_step": 4 * made.truth.cost_ns_per_step}},
        right | {"kind": "late_prefetch", "ranks": []},
    ):
        assert score.judge(job, made, [wrong]).false, wrong


@pytest.mark.parametrize("cause, seed", [("slow_loader", 0), ("slow_loader", 2), ("slow_loader", 3), ("slow_sometimes", 0), ("slow_sometimes", 3)])
def test_what_a_late_host_of_a_pipeline_costs_is_what_the_simulation_without_it_saves(cause, seed, tmp_path):
    made = causes.case("pipeline", 16, cause, seed)
    rank_files.write(made, tmp_path / "job", seed)
    costly = [f for f in told("report", tmp_path / "job")[1]["findings"] if "cost" in f]
    assert [(f["kind"], f["ranks"]) for f in costly] == [("slow_input", ",".join(map(str, made.truth.ranks)))]
    share = made.truth.cost_ns_per_step / causes.steps_ns(made.traces)
    assert costly[0]["cost"]["share"] == pytest.approx(share, abs=0.003)


@pytest.mark.parametrize(
    ("layout", "cause"),
    [
        ("fsdp", "reduce_each_micro_batch"), ("fsdp_tp", "reduce_each_micro_batch"),
        ("zero3_offload", "reduce_each_micro_batch"), ("hsdp", "gathers_behind"),
    ],
)  # fmt: skip
def test_calls_that_are_left_out_hold_up_nothing(tmp_path, layout, cause):
    """Neither the calls behind them in their queues wait for them, nor the end of the step."""
    seen = 0
    for seed in (2, 3):
        if seen and not ALL:
            break
        [judged] = score.score(TPROF, tmp_path, [(layout, cause, seed, 16, 6)])
        if judged.counts:
            assert judged.found and judged.claimed_ns == pytest.approx(judged.true_ns, rel=0.05)
            seen += 1
    assert seen

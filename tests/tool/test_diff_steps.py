"""`tprof diff` compares the steps of two runs: usual ones with usual ones, and never steps with micro-batches."""

import json
import re

import pytest
from generator import habits, loop, rank_files
from generator.loop import MS
from lib.days import AGAIN, changed, days, diff, made
from lib.loops import Loop
from lib.thorough import some
from lib.tool import told, tprof


def test_steps_that_are_long_now_and_then_are_told_from_usual_ones(tmp_path):
    a, b, case = days(tmp_path, "fsdp", "slow_sometimes", seed=3, ranks=2, steps=48)
    found = diff(a, b, "--fail-on", "time,long_steps")
    assert found["failed"] == ["time", "long_steps"]
    (more,) = changed(found, "long_steps")
    assert more["low"] <= case.truth.cost_ns_per_step <= more["high"]
    assert "Steps that stand out from the usual ones add " in found["verdict"]
    assert any(f"{len(case.truth.steps)} of 47 steps of B" in note for note in found["notes"])


@pytest.mark.parametrize("options", [[], ["--no-lines"]])
def test_other_numbers_of_steps_are_compared_per_step(options, tmp_path):
    a, _ = made(tmp_path / "a", "hsdp", seed=1, steps=4)
    b, _ = made(tmp_path / "b", "hsdp", seed=1, steps=9, again=AGAIN)
    found = diff(a, b, *options)
    assert (found["counts"], found["same"]) == ([], True)
    assert found["longer"] == pytest.approx(9 / 4 if options else 1)
    assert ({"what": "steps", "a": "4", "b": "9"} in found["settings"]) == (not options)


def test_of_few_steps_no_verdict_on_time_is_given(tmp_path):
    a, b, _ = days(tmp_path, "fsdp", "slow_gpu", seed=3, steps=3)
    found = diff(a, b, "--fail-on", "calls")
    assert found["times"] is None and "3 usual steps" in found["no_times"]
    assert found["verdict"].startswith("Nothing changed: counts are the same, and times are not compared")
    done = tprof("diff", a, b, "--fail-on", "time:5%")
    assert done.returncode == 2 and "nothing is known about time" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_killed_run_is_compared_by_its_whole_steps(tmp_path):
    a, _ = made(tmp_path / "a", "fsdp", seed=5, steps=9)
    b, _ = made(tmp_path / "b", "fsdp", "killed", seed=5, steps=9, again=AGAIN)
    found = diff(a, b)
    assert found["b"]["ended"] is False and any("B did not end" in n for n in found["notes"])
    assert found["counts"] == [] and [t for t in found["times"] if t["changed"]] == []
    assert found["b"]["steps"] < 9


@pytest.mark.parametrize("cause", ["gather_twice", None])
def test_counts_of_a_killed_run_without_steps_are_not_compared(cause, tmp_path):
    """Nothing tells how much of a whole run B made, so neither that it did the same nor that it did not."""
    a, _ = made(tmp_path / "a", "fsdp", seed=5, steps=9, like="gather_twice")
    b, _ = made(tmp_path / "b", "fsdp", cause, seed=5, steps=9, again=AGAIN, like=None if cause else "gather_twice")
    for file in b.glob("rank-*.json"):  # SIGKILL: the file ends behind a ledger
        lines = file.read_text().splitlines()
        assert "tprof_footer" in lines[-2] and "tprof_ledger" in lines[-3]
        file.write_text("\n".join(lines[:-2]) + "\n")
    code, found = told("diff", a, b, "--no-lines")
    assert (code, found["b"]["ended"], found["counts"], found["same"]) == (0, False, [], False)
    why = "B did not end, or is incomplete, and no usual steps are known for both"
    assert found["no_counts"] == why and found["verdict"].endswith(f" Counts are not compared: {why}.")
    done = tprof("diff", a, b, "--no-lines", "--fail-on", "calls,bytes")
    assert done.returncode == 2 and "the same" not in done.stdout
    assert "Unknown, of the figures that --fail-on names: calls, bytes\n" in done.stdout
    assert done.stderr == f"tprof: --fail-on: nothing is known about calls, bytes: {why}\n"
    # With its steps they are compared, and a run is the same as itself.
    assert told("diff", a, b, "--fail-on", "calls")[1]["failed"] == (["calls"] if cause else [])
    assert tprof("diff", b, b, "--no-lines", "--fail-on", "calls").returncode == 0


def habit(folder, marks=True, timing=True, **fields):
    """Writes a job of habits.py. Returns its folder and how long the steps of each rank took."""
    job = loop.Loop(**{"ranks": 2, "layers": 2, "jitter": 0.005, **fields})
    rank_files.write(habits.run(job), folder, settings=rank_files.Settings(marks=marks, timing=timing))
    return folder, json.loads(folder.with_suffix(".truth.json").read_text())["steps_ns"]


def unmarked_loop(folder, micro_batches, steps=6, again=1):
    """Writes DDP of `steps` steps of four batches. It reduces once for `micro_batches` of them."""
    loop = Loop([[0, 1]])
    for batch in range(4 * steps):
        loop.micro_batch()
        if (batch + 1) % micro_batches == 0:
            with loop.backward():
                for bucket in (400_000, 600_000):
                    loop.reduce(bucket)
    loop.job.write(folder)
    return folder


@pytest.mark.parametrize("steps", [6, 12])
def test_steps_are_not_compared_with_what_may_be_micro_batches(steps, tmp_path):
    a = unmarked_loop(tmp_path / "a", 4, steps=6)
    b = unmarked_loop(tmp_path / "b", 1, steps=steps)
    found = told("diff", a, b)[1]
    assert (found["a"]["steps"], found["b"]["steps"]) == (6, 4 * steps)
    assert found["times"] is None and "shorter" not in found["verdict"]
    assert "one of A has the work of 4 of B" in found["verdict"]
    assert found["longer"] == steps / 6
    # The copies of 24 batches are in both, and each was reduced once in B.
    assert {(c["per"], c["a"]["calls"], c["b"]["calls"]) for c in found["counts"]} == {("run", steps, 4 * steps)}
    assert {c["kind"]["name"] for c in found["counts"]} == {"ncclAllReduce"}
    assert "one of B has the work of 4 of A" in told("diff", b, a)[1]["verdict"]
    done = tprof("diff", a, b, "--fail-on", "time:5%")
    assert done.returncode == 2 and "time: the steps of A and B are not comparable" in done.stderr
    done = tprof("diff", a, b, "--fail-on", "calls,time:5%")
    assert done.returncode == 1 and "Unknown, of the figures that --fail-on names: time\n" in done.stdout


def test_steps_of_one_kind_are_compared_however_many_there_are(tmp_path):
    a, b = unmarked_loop(tmp_path / "a", 4, steps=6), unmarked_loop(tmp_path / "b", 4, steps=24)
    found = diff(a, b)
    assert (found["same"], found["counts"], found["longer"]) == (True, [], 1)
    assert found["times"] is not None


def gathering_loop(folder, every, micro_batches=2, steps=40):
    """Writes DDP that reduces in each micro-batch, and gathers behind those whose number `every` divides."""
    loop = Loop([[0, 1]])
    for batch in range(micro_batches * steps):
        loop.micro_batch()
        with loop.backward():
            loop.reduce(400_000)
        if every and batch % every == every - 1:
            loop.gather(20_000)
    loop.job.write(folder)
    return folder


@pytest.mark.parametrize("every", [2, 3, 4])
def test_calls_of_some_micro_batches_are_those_of_the_whole_run(every, tmp_path):
    """No usual step makes them, or not: times the number of steps, a count of a step would be that of the run."""
    a, b = gathering_loop(tmp_path / "a", 0), gathering_loop(tmp_path / "b", every)
    found = diff(a, b)
    assert (found["a"]["steps"], found["b"]["steps"]) == (80, 80)
    [gather] = found["counts"]
    assert (gather["per"], gather["only_in"], gather["b"]["calls"]) == ("run", "B", 80 // every)
    # Another run of it is the same, though other steps are left out of it.
    assert diff(b, gathering_loop(tmp_path / "again", every))["same"]


@pytest.mark.parametrize("timing", [True, False])
def test_three_long_pauses_are_a_change_of_the_time_of_a_step(timing, tmp_path):
    a, _ = habit(tmp_path / "a", timing=timing, steps=20, compile_ns=3000 * MS)
    b, took = habit(
        tmp_path / "b", timing=timing, steps=20, compile_ns=2000 * MS,
        checkpoint_every=6, checkpoint_ns=1000 * MS,
    )  # fmt: skip
    found = diff(a, b, "--fail-on", "time:5%")
    assert found["failed"] == ["time"]
    (more,) = changed(found, "long_steps")
    paused = [ns for ns in took["0"] if ns > 900 * MS][1:]  # without the first step
    assert len(paused) == 3
    usual = sum(ns for ns in took["0"][1:] if ns < 900 * MS) / 16
    assert more["b"] == pytest.approx((sum(paused) - 3 * usual) / 19, rel=0.02)
    words = r"3 of 19 steps of B, 5,11,17, take up to (\S+) s, but none of A more than [\d.]+ ms: that adds (\S+) s,"
    ((longest, longer),) = re.findall(words, found["verdict"])
    assert float(longest) * 1000 * MS == pytest.approx(max(paused), rel=0.02)
    assert float(longer) * 1000 * MS == pytest.approx(sum(paused) - 3 * usual, rel=0.02)
    assert diff(b, a, "--fail-on", "time:5%")["failed"] == []


def test_pauses_of_hosts_that_may_run_ahead_are_in_the_mean_of_all_steps(tmp_path):
    fields = {"timing": False, "steps": 20, "item_every": 0}
    a, _ = habit(tmp_path / "a", **fields)
    b, took = habit(tmp_path / "b", checkpoint_every=6, checkpoint_ns=1000 * MS, **fields)
    found = diff(a, b, "--fail-on", "time:5%")
    (step,) = changed(found, "time")
    assert found["failed"] == ["time"] and changed(found, "long_steps") == []
    assert step["b"] == pytest.approx(sum(took["0"][1:]) / 19, rel=0.02)
    assert any("hosts run ahead of their devices" in note for note in found["notes"])


def test_one_pause_of_each_run_is_none(tmp_path):
    a, _ = habit(tmp_path / "a", steps=20, compile_ns=1000 * MS)
    pause = {"checkpoint_every": 13, "checkpoint_ns": 40 * MS}
    b, _ = habit(tmp_path / "b", steps=20, compile_ns=2000 * MS, **pause)
    found = diff(a, b, "--fail-on", "time:5%")
    assert found["failed"] == [] and changed(found, "long_steps") == []


def test_hosts_are_compared_where_the_devices_of_one_run_were_not_followed(tmp_path):
    """The host of rank 1 loads slowly, and those of the others run ahead of their devices."""
    fields = {"ranks": 4, "steps": 30, "loader": {1: 60 * MS}, "item_every": 0}
    a, took = habit(tmp_path / "a", timing=False, **fields)
    b, _ = habit(tmp_path / "b", **fields)
    found = diff(a, b, "--fail-on", "time:5%")
    step = found["times"][0]
    assert (found["failed"], step["changed"]) == ([], False)
    truth = sum(took["1"][1:]) / len(took["1"][1:])
    assert step["a"] == pytest.approx(truth, rel=0.02) and step["b"] == pytest.approx(truth, rel=0.02)
    assert any("only B has device times" in note for note in found["notes"])


def test_a_run_that_has_none_of_the_chosen_calls_in_its_steps_is_said_to_have_none(tmp_path):
    """A gathers at the beginning, B in each step, too."""
    for name in ("a", "b"):
        loop = Loop([[0, 1]])
        loop.gather(1 << 12)
        for _ in range(12):
            loop.step()
            loop.micro_batch()
            with loop.backward():
                loop.reduce(400_000)
            if name == "b":
                loop.gather(1 << 12)
        loop.job.write(tmp_path / name)
    a, b = tmp_path / "a", tmp_path / "b"
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        found = diff(one, other, "--ops", "ALLGATHER")
        assert (found["times"], found["no_times"]) == (None, f"{name} has no lines of these calls in its steps")
        assert found["verdict"].startswith(f"Times are not compared: {name} has no lines of these calls in its steps. ")
    assert diff(a, b, "--ops", "ALLREDUCE")["no_times"] is None


def test_pauses_in_every_second_step_are_counted_though_chance_may_be_much(tmp_path):
    a, _ = habit(tmp_path / "a", steps=9, checkpoint_every=5, checkpoint_ns=40 * MS)
    b, took = habit(tmp_path / "b", steps=9, checkpoint_every=2, checkpoint_ns=200 * MS)
    paused = sum(ns > 200 * MS for ns in took["0"])
    paused_steps = ",".join(str(step) for step, ns in enumerate(took["0"]) if ns > 200 * MS)
    assert (paused, len(took["0"])) == (4, 8)
    verdict = diff(a, b)["verdict"]
    assert re.match(r"Step: A [\d.]+ ms, B [\d.]+ ms\. Runs like these differ by up to [\d.]+ ms by chance, so this may be noise: ", verdict)
    assert f", and 4 of 8 steps of B, {paused_steps}, take longer than any of A's, up to 22" in verdict
    assert f", and 4 of 8 steps of A, {paused_steps}, take longer than any of B's, up to 22" in diff(b, a)["verdict"]
    # The two in the middle are a step with a pause and one without.
    in_order = sorted(sum(ns) / 2 for ns in zip(*took.values(), strict=True))
    (median_ms,) = re.findall(r"the median [\d.]+ ms and ([\d.]+) ms", verdict)
    assert float(median_ms) * MS == pytest.approx(sum(in_order[3:5]) / 2, rel=0.02)
    mean = sum(map(sum, took.values())) / len(took) / 8
    (mean_ms,) = re.findall(r"all steps take [\d.]+ ms and ([\d.]+) ms on average", verdict)
    assert float(mean_ms) * MS == pytest.approx(mean, rel=0.02)
    assert f"\nNext: tprof report {b} " in tprof("diff", a, b).stdout
    assert "\nNext: " not in tprof("diff", b, a).stdout


@pytest.mark.parametrize("fields", [{}, {"timing": False}, {"timing": False, "item_every": 0}])
def test_one_step_far_longer_than_any_of_the_other_run_is_a_change(fields, tmp_path):
    a, _ = habit(tmp_path / "a", steps=20, compile_ns=1000 * MS, **fields)
    pause = {"checkpoint_every": 13, "checkpoint_ns": 3000 * MS}
    b, took = habit(tmp_path / "b", steps=20, **pause, **fields)
    (paused,) = (ns for ns in took["0"][1:] if ns > 1000 * MS)
    found = diff(a, b, "--fail-on", "time:5%,long_steps")
    assert (found["failed"], found["same"]) == (["time", "long_steps"], False)
    assert (found["far_longer"]["b"]["steps"], found["far_longer"]["a"]["steps"]) == ([12], [])
    usual = (sum(took["0"][1:]) - paused) / 18
    assert found["far_longer"]["b"]["more_ns"] == pytest.approx(paused - usual, rel=0.02)
    assert re.match(r"1 of 19 steps of B, 12, takes [\d.]+ s, but none of A more than [\d.]+ m?s: ", found["verdict"])
    other = diff(b, a, "--fail-on", "time:5%,long_steps")
    assert (other["failed"], other["same"]) == ([], False)
    assert other["verdict"].startswith("1 of 19 steps of A, ")


def test_long_steps_that_are_alike_in_both_runs_are_no_change(tmp_path):
    pause = {"steps": 20, "checkpoint_every": 13}
    a, _ = habit(tmp_path / "a", checkpoint_ns=1000 * MS, **pause)
    b, _ = habit(tmp_path / "b", checkpoint_ns=2500 * MS, **pause)
    found = diff(a, b, "--fail-on", "time:5%,long_steps")
    assert (found["failed"], found["same"], found["far_longer"]["b"]["steps"]) == ([], True, [])
    assert found["not_known"] == ["time", "long_steps"]  # once in a run may be chance


def test_the_part_of_the_step_that_grew_is_told_with_its_rank(tmp_path):
    """One rank of four computes longer, and three wait for it."""
    fields = {"ranks": 4, "steps": 20}
    a, _ = habit(tmp_path / "a", **fields)
    b, _ = habit(tmp_path / "b", gpu={2: 1.5}, **fields)
    found = diff(a, b)
    (step,), (compute,), (waiting,) = (changed(found, of) for of in ("time", "compute", "waiting"))
    longer = step["b"] - step["a"]
    assert compute["b"] - compute["a"] == pytest.approx(longer / 4, rel=0.1)
    assert waiting["b"] - waiting["a"] == pytest.approx(longer * 3 / 4, rel=0.1)
    assert ": waiting for other ranks grew by " in found["verdict"]
    (slow,) = found["slow_ranks"]
    assert (slow["only_in"], slow["kind"], slow["ranks"]) == ("B", "slow_gpu", [2])
    assert diff(a, a)["slow_ranks"] == []


@pytest.mark.parametrize("seed", some(range(5), 3))
def test_a_gate_never_lets_a_slowdown_pass_without_a_word(seed, tmp_path):
    """Both runs pause at random, and in B one rank sleeps in every 5th step."""
    noisy = {"steps": 40, "pauses_ns": 60 * MS, "pauses": 0.15, "layers": 6}
    a, took_a = habit(tmp_path / "a", seed=seed, **noisy)
    b, took_b = habit(tmp_path / "b", seed=seed + 100, stalls={1: 90 * MS}, stalls_every=5, **noisy)
    mean_a, mean_b = (sum(took["0"][1:]) / 39 for took in (took_a, took_b))
    assert mean_b > 1.1 * mean_a
    found = diff(a, b, "--fail-on", "time:5%")
    assert "time" in found["failed"] + found["not_known"]


def test_a_gate_on_slow_ranks_fails_on_those_of_b_alone(tmp_path):
    a, _ = habit(tmp_path / "a", steps=40)
    b, _ = habit(tmp_path / "b", steps=40, stalls={1: 30 * MS}, stalls_every=5)
    for one, other, share, failed in ((a, b, "", True), (a, b, ":90%", False), (b, a, "", False), (b, b, "", False)):
        assert diff(one, other, "--fail-on", "slow_ranks" + share)["failed"] == ["slow_ranks"] * failed

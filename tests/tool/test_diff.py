"""`tprof diff` names what was changed between two runs, and nothing where they are one job on two days."""

import json
import re

import pytest
from generator import causes
from lib.days import AGAIN, RANKS, changed, counts, days, diff, made, loop_of
from lib.thorough import ALL, some
from lib.tool import tprof

EVERYTHING = (
    "calls,elements,bytes,time,long_steps,exposed,host,device,busbw,slow_ranks,settings,versions,hosts,size"
)


@pytest.mark.parametrize("layout", causes.LAYOUTS)
def test_the_same_job_on_another_day_has_not_changed(layout, tmp_path):
    for seed in range(5 if ALL else 2):
        a, _ = made(tmp_path / f"{seed}a", layout, seed=seed)
        b, _ = made(tmp_path / f"{seed}b", layout, seed=seed, again=AGAIN + seed)
        found = diff(a, b, "--fail-on", EVERYTHING)
        assert found["times"][0]["of"] == "time"  # there was a verdict on times
        wrong = [t for t in found["times"] if t["changed"]]
        assert (found["counts"], wrong, found["failed"], found["same"]) == ([], [], [], True)
        assert "ounts are the same" in found["verdict"] and "longer than A" not in found["verdict"]


def test_a_run_and_itself_is_nothing(tmp_path):
    folder, _ = made(tmp_path / "job", "moe", seed=4)
    done = tprof("diff", folder, folder, "--fail-on", EVERYTHING)
    first, blank, *sides = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first == "A and B are the same traces: nothing can differ."
    assert blank == "" and [side[0] for side in sides[:2]] == ["A", "B"]
    assert all(line.startswith("note: ") for line in sides[2:])


# Causes that make every step longer, and what a table of their changes has to have.
STEADY = ["slow_gpu", "slow_loader", "late_prefetch", "pageable_copies", "item_each_layer", "fp32"]


@pytest.mark.parametrize("cause", some(STEADY, 2))
def test_the_interval_of_a_longer_step_has_the_truth_and_the_change_is_named(cause, tmp_path):
    layouts = ["fsdp", "zero3_offload" if cause in causes.ONLY_IN else "moe"]
    covered = []
    for layout in layouts:
        for seed in range(2):
            a, b, case = days(tmp_path / f"{layout}{seed}", layout, cause, seed)
            found = diff(a, b)
            step, truth = found["times"][0], case.truth.cost_ns_per_step
            covered.append(step["low"] <= truth <= step["high"])
            if truth > 1.2 * step["noise"]:
                assert step["changed"] and "longer than A's" in found["verdict"], (layout, seed)
            assert not found["same"]
    assert sum(covered) >= len(covered) - 1, covered


def test_a_slow_gpu_is_time_that_the_others_are_exposed(tmp_path):
    a, b, case = days(tmp_path, "fsdp", "slow_gpu", seed=3)
    found = diff(a, b, "--fail-on", "calls,time:5%")
    assert (found["counts"], found["failed"]) == ([], ["time"])
    (step,) = changed(found, "time")
    assert step["b"] - step["a"] == pytest.approx(case.truth.cost_ns_per_step, rel=0.02)
    # The others wait for it in the backward pass's reduce-scatters.
    assert [t["kind"]["bucket"] for t in changed(found, "exposed")] == ["RESHARDING"]
    assert ": waiting for other ranks grew by " in found["verdict"]
    assert [(f["only_in"], f["ranks"]) for f in found["slow_ranks"]] == [("B", [case.truth.ranks[0]])]
    assert diff(b, a, "--fail-on", "time,exposed,busbw")["failed"] == []  # it got faster
    assert "shorter than A's" in diff(b, a)["verdict"]


def start_up(folder, times):
    """Has the first step wait: the ledgers' reduce-scatters have so many times the time on the device, all exposed."""

    def longer(row):
        row = json.loads(row[0])
        more = times * row["device_ns"]
        return json.dumps(row | {key: row[key] + more for key in ("device_ns", "exposure_known_ns", "exposed_ns")})

    for file in folder.glob("rank-*.json"):
        file.write_text(re.sub(r'\{"bucket":"RESHARDING","name":"ncclReduceScatter"[^}]*\}', longer, file.read_text()))


def test_exposed_time_is_a_part_of_the_device_time_of_the_same_steps(tmp_path):
    """Exposed time is known of whole runs only, and the first step, with what it waits for, is in no usual one."""
    a, b, case = days(tmp_path, "fsdp", "slow_gpu", seed=3)
    plain = diff(a, b)
    for folder in (a, b):
        start_up(folder, times=2)
    found = diff(a, b)
    of = {(t["of"], t["kind"]["bucket"]): t for t in found["times"] if t["kind"]}
    exposed = [bucket for kind, bucket in of if kind == "exposed"]
    assert "RESHARDING" in exposed
    for bucket in exposed:
        part, whole = of["exposed", bucket], of["device", bucket]
        assert part["a"] <= whole["a"] * 1.000001 and part["b"] <= whole["b"] * 1.000001, bucket
    assert of["device", "RESHARDING"]["a"] == pytest.approx(
        next(t["a"] for t in plain["times"] if t["of"] == "device" and t["kind"]["bucket"] == "RESHARDING")
    )
    # Without the start-up: what the slow device costs is what the others are exposed for.
    (grown,) = changed(plain, "exposed")
    waits = case.truth.cost_ns_per_step * (RANKS - 1) / RANKS  # all but the slow one
    assert grown["b"] - grown["a"] == pytest.approx(waits, rel=0.1)


def test_gathering_twice_is_twice_the_calls(tmp_path):
    a, b, _ = days(tmp_path, "fsdp", "gather_twice", seed=3)
    (change,) = diff(a, b)["counts"]
    model = loop_of("fsdp", 3, "gather_twice")
    once = model.layers * model.micro_batches
    assert (change["a"]["calls"], change["b"]["calls"]) == (once, 2 * once)
    assert (change["a"]["bytes"], change["b"]["bytes"]) == (
        once * model.params * 2,
        2 * once * model.params * 2,
    )
    assert (change["kind"]["name"], change["per"], change["only_in"]) == (
        "ncclAllGather", "step", None,
    )  # fmt: skip
    assert diff(a, b, "--fail-on", "calls:99%")["failed"] == ["calls"]
    assert diff(a, b, "--fail-on", "calls:100%,elements:100%")["failed"] == []


def test_a_wider_type_is_the_same_elements_and_twice_the_bytes(tmp_path):
    a, b, _ = days(tmp_path, "fsdp", "fp32", seed=3)
    (change,) = diff(a, b, "--fail-on", "calls,elements,bytes")["counts"]
    assert (change["was"]["dtype"], change["kind"]["dtype"]) == ("bfloat16", "float32")
    assert change["a"]["elements"] == change["b"]["elements"]
    assert change["b"]["bytes"] == 2 * change["a"]["bytes"]
    found = diff(a, b, "--fail-on", "calls,elements,bytes")
    assert found["failed"] == ["bytes"] and " 1 kind of calls differs in bytes: " in found["verdict"]


def test_copies_that_only_one_run_makes_are_named(tmp_path):
    a, b, _ = days(tmp_path, "fsdp", "pageable_copies", seed=2)
    found = diff(a, b)
    (change,) = found["counts"]
    model = loop_of("fsdp", 2)
    calls = 2 * model.layers * model.micro_batches  # in each layer, forward and backward
    kind = change["kind"]
    assert (kind["bucket"], kind["role"], change["only_in"]) == ("H2D", "pageable", "B")
    assert change["a"] == {"calls": 0, "elements": 0, "bytes": 0, "ranks": None}
    moved = calls * 1_000_000
    assert change["b"] == {"calls": calls, "elements": moved, "bytes": moved, "ranks": None}
    (host,) = changed(found, "host")  # whose thread waits
    assert host["kind"]["bucket"] == "H2D"
    assert counts(diff(b, a), "cudaMemcpyAsync")[0]["only_in"] == "A"


def test_other_numbers_of_ranks_are_compared_per_rank(tmp_path):
    a, _ = made(tmp_path / "a", "fsdp", seed=3, ranks=8)
    # The same model on twice as many ranks: sizes are drawn by the number of ranks, too.
    with pytest.MonkeyPatch.context() as patch:
        loop = causes.healthy("fsdp", 8, 3).but(ranks=16)
        patch.setattr(causes, "healthy", lambda *_: loop)
        b, _ = made(tmp_path / "b", "fsdp", seed=3, ranks=16, again=AGAIN)
    found = diff(a, b, "--fail-on", "calls,elements,bytes,size")
    assert found["counts"] == [] and found["failed"] == ["size"]
    assert {"what": "ranks", "a": "8", "b": "16"} in found["settings"]
    assert (found["a"]["ranks"], found["b"]["ranks"]) == (8, 16)


def test_a_mistake_is_found_from_the_ledgers_alone(tmp_path):
    a, b, _ = days(tmp_path, "hsdp", "reduce_each_micro_batch", seed=1, ranks=16)
    found = diff(a, b, "--no-lines")
    assert {c["kind"]["name"] for c in found["counts"]} == {"ncclReduceScatter", "ncclAllReduce"}
    assert found["times"] is None and "lines were not read" in found["no_times"]


def test_settings_versions_and_hosts_that_differ_are_listed(tmp_path):
    a, _ = made(tmp_path / "a", "fsdp", seed=1, steps=4)
    b, _ = made(tmp_path / "b", "fsdp", seed=1, steps=4)
    for file in b.iterdir():
        text = file.read_text().replace('"nccl_version":22809', '"nccl_version":22903', 1)
        text = text.replace('"config":{', '"config":{"TPROF_OUTPUT_DIR":"/b","TPROF_CALLSITE":"native",', 1)
        text = text.replace('"env":{}', '"env":{"NCCL_ALGO":"Ring"}', 1)
        text = text.replace('"host":"node000"', '"host":"node7"', 1)
        text = text.replace("python train.py", "python x.py", 1)
        file.write_text(text)
    found = diff(a, b, "--fail-on", EVERYTHING)
    assert found["same"] and found["failed"] == ["settings", "versions", "hosts"]
    assert sorted((s["what"], s["a"], s["b"]) for s in found["settings"]) == [
        ("NCCL", "22809", "22903"),
        ("NCCL_ALGO", None, "Ring"),
        ("TPROF_CALLSITE", None, "native"),
        ("command", "python train.py", "python x.py"),
        ("hosts", "node000", "node7"),
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("call", "some of calls, elements"),
        ("calls,", "some of calls, elements"),
        ("calls bytes", "some of calls, elements"),
        ("time:5", "a share such as time:5%"),
        ("time:", "a share such as time:5%"),
        ("time:x%", "a share such as time:5%"),
        ("time:-5%", "a share such as time:5%"),
        ("time:nan%", "a share such as time:5%"),
        ("time:5%%", "a share such as time:5%"),
        ("versions:5%", "versions without a share"),
    ],
)
def test_a_list_that_is_none_is_refused_with_what_was_expected(given, expected, tmp_path):
    done = tprof("diff", tmp_path, tmp_path, "--fail-on", given)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert expected in done.stderr and f"found '{given.split(',')[-1]}'" in done.stderr


def test_what_is_no_trace_is_refused_and_damaged_lines_are_named(tmp_path):
    a, _ = made(tmp_path / "a", "moe", seed=1)
    for other in (tmp_path / "missing", tmp_path):
        done = tprof("diff", a, other)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    b, _ = made(tmp_path / "b", "moe", seed=1)
    file = b / "rank-00003.json"
    file.write_text(file.read_text().replace('"ph":"X"', '"ph":X', 1))
    found = diff(a, b)
    assert any("rank-00003.json" in note for note in found["notes"]), found["notes"]
    assert found["counts"] == []

"""TPROF_METRICS: compares the lanes of a process with what the program used (tests/user/uses.cpp). Those of its host
are not the library's (tool/test_node_lanes.py)."""

import json

import pytest
from lib.build import BUILD
from lib.contract import not_as_the_contract_says
from lib.launch import start
from lib.rankfile import lines_of
from lib.tool import merged, tprof, worse_than_notes

MIB = 1 << 20
PROCESS = {
    "process CPU, % of a core", "process memory, bytes", "process threads", "process disk, bytes/s",
    "process major page faults, 1/s",
}  # fmt: skip
SHORTEST_S = 0.1  # since the last reading; a shorter time is not told
OURS = (1, 2)  # threads of the library: one writes; another looks once for what killed processes have left


def uses(folder, what="all", code=0, **variables):
    ours = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "TPROF_METRICS": "100ms"}
    done = start([BUILD / "user_uses", what, folder / "file"], folder, libraries=None, **(ours | variables))
    assert (done.code, done.stderr) == (code, ""), done
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def lanes(lines):
    """Returns name -> [(seconds, values)] of all counters that are not the program's."""
    found = {}
    for line in lines:
        if line.get("cat") == "COUNTER":
            assert (line["ph"], line["tid"]) == ("C", 0)
            found.setdefault(line["name"], []).append((line["ts"] / 1e6, line["args"]))
    return found


def sums(of, lane, begin):
    """Returns key -> how much it grew in all, by its rates: each is for the time since the line before."""
    total, last = {}, begin
    for at, values in of[lane]:
        for key, rate in values.items():
            total[key] = total.get(key, 0) + rate * (at - last)
        last = at
    return total


def begin(of):
    return of["process memory, bytes"][0][0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uses")
    done, (used,) = uses(folder)
    lines = merged(done.traces, folder / "merged.json")
    assert not_as_the_contract_says(lines_of(folder / "merged.json")) == []
    return done, used, lanes(lines)


def test_the_lanes_agree_with_what_the_program_used(run):
    _, used, of = run
    assert of.keys() == PROCESS
    cpu = sum(sums(of, "process CPU, % of a core", begin(of)).values()) / 100
    assert used["cpu"] - SHORTEST_S - 0.05 <= cpu <= used["cpu"] * 1.1 + 0.3
    memory = [values for _, values in of["process memory, bytes"]]
    assert memory[0]["resident"] < 32 * MIB
    assert used["memory"] <= memory[-1]["resident"] <= used["memory"] + 64 * MIB
    assert all(0 < values["file"] <= values["resident"] for values in memory)
    written = sums(of, "process disk, bytes/s", begin(of))["written"]
    assert used["written"] * 0.99 <= written <= used["written"] * 1.01 + 8 * MIB
    assert used["written"] >= 32 * MIB or used["written"] == 0  # 0: the folder is in memory
    assert of["process threads"][-1][1]["threads"] - used["threads"] in OURS


def test_there_is_a_reading_for_each_period_at_most_and_one_at_each_end(run):
    times = [at for at, _ in run[2]["process memory, bytes"]]
    assert 2 <= len(times) <= (times[-1] - times[0]) / 0.1 + 2, times


def test_nothing_is_wrong_with_the_trace_and_a_public_copy_keeps_the_lanes(run, tmp_path):
    done, _, of = run
    assert [finding for finding in worse_than_notes(done.traces) if finding["kind"] not in ("missing_rank", "nothing_counted")] == []
    assert tprof("anonymize", done.traces, "-o", tmp_path / "out").returncode == 0
    (copy,) = (tmp_path / "out").glob("*.json")
    assert lanes(json.loads(line) for line in lines_of(copy)) == of


def test_a_killed_process_has_what_was_written(tmp_path):
    done, (used,) = uses(tmp_path, "kill", code=-9)
    (file,) = done.traces.glob("rank-*.json")
    lines = [json.loads(line.rstrip(",")) for line in file.read_text().splitlines()[1:]]
    assert lanes(lines)["process memory, bytes"][-1][1]["resident"] >= used["memory"]


def test_a_child_has_lanes_of_its_own_and_nothing_open_of_its_parent(tmp_path):
    done, (_, child) = uses(tmp_path, "fork")
    assert child["of the parent"] == 0
    (file,) = [file for file in done.ranks() if file.header.get("forked_from")]
    assert lanes(file.lines)["process threads"][-1][1]["threads"] - child["threads"] in OURS


@pytest.mark.parametrize(("local_rank", "says"), [("0", True), ("1", False), (None, True)])
def test_without_tprof_run_one_process_of_a_node_says_that_nobody_reads_its_gpus(local_rank, says, tmp_path):
    words = [BUILD / "user_tells", "once"]
    ours = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": local_rank, "TPROF_METRICS": "2s,gpus"}
    done = start(words, tmp_path, libraries=None, **ours)
    line = "tprof: TPROF_METRICS: metrics of GPUs and hosts need `tprof run`: recording the process's only"
    assert (done.code, done.stderr.splitlines()) == (0, [line] if says else [])
    of = lanes(line for line in done.only_rank().lines if line["tid"] == 0)
    assert {"process memory, bytes", "process threads"} <= of.keys() <= PROCESS


@pytest.mark.parametrize("setting", [{}, {"TPROF_EVENTS": "off", "TPROF_METRICS": "1s"}, {"TPROF_METRICS": "often"}])
def test_there_are_no_lanes_where_nobody_asked_for_them(setting, tmp_path):
    done = start([BUILD / "user_tells", "once"], tmp_path, libraries=None, RANK="3", WORLD_SIZE="4", **setting)
    assert [line for line in done.only_rank().lines if line.get("cat") == "COUNTER" and line["tid"] == 0] == []
    bad = setting.get("TPROF_METRICS") == "often"
    expected = "tprof: TPROF_METRICS=often: expected off, or a period from 100ms to 3600s, with ,gpus or without; using off"
    assert (done.code, done.stderr.splitlines()) == (0, [expected] if bad else [])

"""tprof tail: prints the lines of running ranks, as their files have them."""

import collections
import json
import re
import signal

import pytest
from lib import handmade, jobs, live, runs
from lib.build import GOLDEN
from lib.launch import running, start
from lib.rankfile import closed
from lib.runs import until
from lib.tool import told, tprof


def whole_lines(rank):
    """Returns the lines of a golden trace; one of the traces was cut in a line, which is left out."""
    lines = (GOLDEN / f"two_ranks/rank-0000{rank}.json").read_text().split("\n")[:-1]
    return [json.loads(line.removesuffix(",")) for line in lines if line not in "[]"]


def by_rank(text):
    """Returns the lines of each rank; every line must be whole."""
    lines = collections.defaultdict(list)
    for line in text.splitlines():
        lines[json.loads(line)["pid"]].append(json.loads(line))
    return lines


def test_an_empty_folder_is_said_to_be_waited_at(tmp_path):
    for command in (["tail", tmp_path], ["watch", tmp_path, "--exec", "true"]):
        with live.follower(*command) as waits:
            waits.send_signal(signal.SIGINT)
            waits.communicate(timeout=runs.TIME_LIMIT_S)


@pytest.mark.parametrize("name", ["notes.txt", "x.json", "rank-00000.json"])
def test_a_file_that_is_no_trace_is_nothing_to_wait_for(name, tmp_path):
    (tmp_path / name).write_text("no trace\n")
    for command in (["tail", tmp_path], ["watch", tmp_path]):
        with live.follower(*command) as waits:
            waits.send_signal(signal.SIGINT)
            waits.communicate(timeout=runs.TIME_LIMIT_S)


def test_another_schema_is_nothing_to_wait_for_either(tmp_path):
    """No later look could read it, so each command says so at once and ends."""
    jobs.healthy(2, 8, 3).write(tmp_path)
    for file in tmp_path.iterdir():
        file.write_text(file.read_text().replace('"schema":"tprof/1"', '"schema":"tprof/2"'))
    for command in ("tail", "watch", "metrics", "top --once", "ctl"):
        name, *options = command.split()
        done = tprof(name, *options, tmp_path, *(["dump"] if name == "ctl" else []), timeout=20)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        assert "schema tprof/2; this tprof reads tprof/1" in done.stderr


def test_a_job_is_followed_from_before_its_beginning_to_its_end(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    with live.follower("tail", traces) as tail:
        run = start([*live.TRAINER, "20"], tmp_path)
        out, err = tail.communicate(timeout=runs.TIME_LIMIT_S)
    assert (run.code, tail.returncode, err) == (0, 0, "")
    assert by_rank(out) == {file.rank: file.lines for file in run.ranks()}


def test_a_rank_that_was_killed_and_started_again_is_followed(tmp_path):
    """The same process started both, which is us: as long as we live, a rank that was killed may come back."""
    traces = tmp_path / "traces"
    traces.mkdir()
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "NATIVE_TRAINER_ID": str(tmp_path / "id")}
    with live.follower("tail", traces) as tail:
        with running([*live.TRAINER, "1000000"], tmp_path, **alone):
            until(lambda: live.pids(traces))
        assert start([*live.TRAINER, "2"], tmp_path, **alone).code == 0
        out, err = tail.communicate(timeout=runs.TIME_LIMIT_S)
    assert (tail.returncode, err) == (0, "")
    assert {path.name for path in traces.glob("*.json")} == {"rank-00000.json", "rank-00000.r1.json"}
    lines = by_rank(out)[0]
    assert len([line for line in lines if line["name"] == "tprof_header"]) == 2
    again = closed(traces / "rank-00000.r1.json")
    assert lines[-len(again):] == again


def test_who_was_started_within_the_same_tick_is_the_later_one(tmp_path):
    """The start of a process is known to 10 ms, and by two clocks that are read one after the other."""
    traces = tmp_path / "traces"
    traces.mkdir()
    for name, seed, end, started, began in (("", 3, "lost", 1, 0), (".r1", 4, "closed", 0, 9_000_000)):
        made = jobs.healthy(1, 12, seed)
        made.ranks[0].end = end
        text = (made.write(tmp_path / f"job{name}") / "rank-00000.json").read_text().replace("job-4", "job-3")
        for key, base in (("start_ns", jobs.BASE_NS - 10**9), ("base_time_ns", jobs.BASE_NS)):
            assert f'"{key}":{base}' in text
            more = started if key == "start_ns" else began
            text = text.replace(f'"{key}":{base}', f'"{key}":{base + more}')
        (traces / f"rank-00000{name}.json").write_text(text)
    assert told("summary", traces)[1]["complete"]
    notes = [finding["text"] for finding in told("check", traces)[1]["findings"]]
    assert any("this is the last to start, job-3#2" in note for note in notes), notes


def test_what_was_there_before_is_left_out_unless_it_is_asked_for():
    assert (tprof("tail", GOLDEN / "two_ranks").stdout, tprof("tail", GOLDEN / "two_ranks").returncode) == ("", 0)
    everything = by_rank(tprof("tail", GOLDEN / "two_ranks", "--from-start").stdout)
    assert everything == {rank: whole_lines(rank) for rank in (0, 1)}


def test_a_rank_that_its_launcher_did_not_tell_is_known_with_its_communicator(tmp_path):
    """Its lines have the process's id in the file."""
    run = start([*live.TRAINER, "2"], tmp_path)
    for file in run.ranks():
        text = file.path.read_text()
        was = f'"pid":{file.rank},'
        file.path.write_text(text.replace(was, '"pid":99,').replace(f'"rank":{file.rank},"world_size":2,', "", 1))
        identity = handmade.metadata("tprof_identity", rank=file.rank, world_size=2) | {"pid": 99}
        handmade.insert(file.path, identity, before='"tprof_comm"')
    found = by_rank(tprof("tail", run.traces, "--from-start").stdout)
    assert set(found) == {0, 1}


def test_the_table_names_calls_and_steps():
    rows = tprof("tail", GOLDEN / "two_ranks", "--from-start", "--format", "table").stdout.splitlines()
    lines = [line for rank in (0, 1) for line in whole_lines(rank)]
    calls = [line for line in lines if line["ph"] in "XB" and line.get("cat") not in ("NVTX", "DEVICE", "BUSY")]
    steps = [line for line in lines if line["name"] == "tprof_step"]
    assert len([row for row in rows if ": step " in row]) == len(steps)
    assert len(rows) == len(calls) + len(steps)
    for row in rows:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC  rank [01]: ", row)


def test_ctrl_c_ends_it(tmp_path):
    with live.standing_still(tmp_path), live.tool("tail", tmp_path / "traces", "--from-start") as tail:
        assert json.loads(tail.stdout.readline())
        tail.send_signal(signal.SIGINT)
        rest = tail.stdout.read()
        assert (tail.wait(), tail.stderr.read()) == (0, "")
    assert all(json.loads(line) for line in rest.splitlines()) and (not rest or rest.endswith("\n"))

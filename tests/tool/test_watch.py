"""tprof watch, and tprof run --on-stuck: they run a command for what is wrong with a running job."""

import json

from lib import launch, live, runs
from lib.launch import environment, start
from lib.runs import until
from lib.tool import tprof, worse_than_notes


def test_a_stuck_rank_gets_the_command_once_with_its_finding(tmp_path):
    log = tmp_path / "log"
    command = f"cat > {tmp_path}/{{rank}}.json && echo {{pid}} >> {log}"
    with live.standing_still(tmp_path) as job:
        traces = tmp_path / "traces"
        options = ("--exec", command, "--stuck-after", "1", "--interval", "0.1")
        with live.tool("watch", traces, *options) as watch:
            until(lambda: (tmp_path / "1.json").exists())
            assert watch.poll() is None  # the job goes on, and so does it
            pid = {rank: pid for pid, rank in live.pids(traces).items()}
            launch.kill(job)
            out, err = watch.communicate(timeout=runs.TIME_LIMIT_S)
    assert watch.returncode == 1 and "rank 1 is inside ncclReduceScatter" in out
    # Rank 0 waits for it, in a call that does not say for whom it waits.
    assert set(log.read_text().split()) <= {str(pid[0]), str(pid[1])}
    assert log.read_text().split().count(str(pid[1])) == 1
    finding = json.loads((tmp_path / "1.json").read_text())
    assert (finding["kind"], finding["ranks"], finding["function"]) == ("hang", [1], "ncclReduceScatter")
    assert finding["processes"] == [{"rank": 1, "pid": pid[1]}]


def test_a_command_for_no_process_gets_all_of_a_kind_at_once(tmp_path):
    """The job is over: one of its ranks was killed."""
    said = tmp_path / "said"
    start([*live.TRAINER, "50"], tmp_path, STANDIN_DIE="1:ncclReduceScatter:25")
    done = tprof("watch", tmp_path / "traces", "--exec", f"cat >> {said}; echo run >> {said}")
    found = worse_than_notes(tmp_path / "traces")
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.endswith(tprof("check", tmp_path / "traces").stdout)
    lines = said.read_text().splitlines()
    assert lines.count("run") == len({f["kind"] for f in found})
    told = [json.loads(line) for line in lines if line != "run"]
    assert sorted(told, key=str) == sorted(({**f, "processes": []} for f in found), key=str)
    done = tprof("watch", tmp_path / "traces", "--exec", "echo {pid} ran")
    assert "none of its processes runs here" in done.stderr and " ran\n" not in done.stdout


def test_without_a_command_it_says_what_it_finds(tmp_path):
    start([*live.TRAINER, "50"], tmp_path, STANDIN_DIE="1:ncclReduceScatter:25")
    alone = tprof("watch", tmp_path / "traces")
    with_one = tprof("watch", tmp_path / "traces", "--exec", "true")
    assert (alone.returncode, alone.stdout, alone.stderr) == (1, with_one.stdout, "")
    assert alone.stdout.count("rank 1") > tprof("check", tmp_path / "traces").stdout.count("rank 1") > 0


def test_a_healthy_job_gets_none_from_before_its_beginning_to_its_end(tmp_path):
    """Its ranks come one after the other, and wait for each other."""
    traces, log = tmp_path / "traces", tmp_path / "log"
    traces.mkdir()
    options = ("--exec", f"echo x >> {log}", "--stuck-after", "20", "--interval", "0.02")
    with live.follower("watch", traces, *options) as watch:
        assert start([*live.TRAINER, "10"], tmp_path).code == 0
        out, err = watch.communicate(timeout=runs.TIME_LIMIT_S)
        assert (watch.returncode, log.exists(), err) == (0, False, "")
    assert out == tprof("check", traces).stdout


def test_run_hands_the_stuck_processes_of_its_command_to_a_command(tmp_path):
    """The command ends them, so that the job ends."""
    log = tmp_path / "log"
    env = environment(tmp_path, preload=False, STANDIN_HANG="1:ncclReduceScatter:5")
    (tmp_path / "tally").mkdir()
    on_stuck = f"echo {{pid}} >> {log}; echo found; kill {{pid}}"
    options = ("--out", tmp_path / "traces", "--stuck-after", "1", "--on-stuck", on_stuck)
    done = tprof("run", *options, "--", *live.TRAINER, "50", env=env)
    assert done.returncode not in (0, 2)
    pids = {str(pid) for pid in live.pids(tmp_path / "traces")}
    assert log.exists() and set(log.read_text().split()) <= pids
    assert " is inside " in done.stderr
    assert "found" not in done.stdout and "found\n" in done.stderr  # standard output is the command's


def test_run_leaves_a_job_alone_that_is_not_stuck(tmp_path):
    log = tmp_path / "log"
    env = environment(tmp_path, preload=False)
    (tmp_path / "tally").mkdir()
    options = ("--out", tmp_path / "traces", "--stuck-after", "20", "--on-stuck", f"echo >> {log}")
    done = tprof("run", *options, "--", *live.TRAINER, "10", env=env)
    assert (done.returncode, log.exists()) == (0, False)

"""tprof run --handler: commands that get the lines of the ranks while the job runs."""

import json
import os
import pathlib
import signal

import pytest
from lib import live, rankfile
from lib.build import BUILD, TPROF
from lib.launch import environment, running
from lib.runs import TIME_LIMIT_S, until
from lib.tool import tprof, worse_than_notes

STEPS = 9


def run(folder, *options, trainer=("--ranks", 2, "--steps", STEPS), **settings):
    """Runs a native job on the stand-in, under tprof run."""
    (folder / "tally").mkdir()
    env = environment(folder, preload=False, **settings)
    return tprof("run", "--out", folder / "traces", *options, "--", BUILD / "native_trainer", *trainer, env=env)


def handler(command):
    return ("--handler", command)


def collected(file):
    """Returns what a handler got: each rank's lines, and the lines of handlers, with how many came before each."""
    ranks, moments = {}, []
    for number, text in enumerate(file.read_text().splitlines()):
        line = json.loads(text)
        if "handler" in line:
            moments.append((number, line))
        else:
            ranks.setdefault(line["pid"], []).append((number, line))
    return ranks, moments


def only_lines(ranks):
    return {rank: [line for _, line in lines] for rank, lines in ranks.items()}


def check_whole(file, traces):
    """Asserts that every line of every rank file came, in its order, and each event at its place. Returns
    the number of lines."""
    ranks, moments = collected(file)
    files = {rank_file.rank: rank_file for rank_file in rankfile.read_folder(traces)}
    assert only_lines(ranks) == {rank: rank_file.lines for rank, rank_file in files.items()}
    opened = {line["files"][0]: number for number, line in moments if line["handler"] == "open"}
    assert opened == {str(files[rank].path): lines[0][0] - 1 for rank, lines in ranks.items()}
    number, last = moments[-1]
    there = sorted(map(str, traces.glob("rank-*.json")))
    assert last == {"handler": "close", "files": there}
    assert number + 1 == len(moments) + sum(map(len, ranks.values()))
    return number + 1


def said(done, command):
    """Returns what was said of a handler. The shell's own words may stand before it, as the shell writes
    its line in parts."""
    begin = f"tprof: --handler {command}: "
    return [line[line.index(begin) :] for line in done.stderr.splitlines() if begin in line]


def steps_of(done):
    return [line for line in done.stdout.splitlines() if line.startswith("step")]


def test_handlers_get_every_line_of_the_ranks_and_the_moments(tmp_path):
    got = [tmp_path / "first", tmp_path / "second"]
    place = tmp_path / "place"
    commands = (f"cat > {got[0]}; echo done", f'cut -d" " -f1,5 /proc/$$/stat > {place}; cat > {got[1]}')
    done = run(tmp_path, *handler(commands[0]), *handler(commands[1]))
    assert done.returncode == 0 and "--handler" not in done.stderr
    for file in got:
        check_whole(file, tmp_path / "traces")
    # Standard output is the job's, and so is its process group.
    assert len(steps_of(done)) == STEPS and "done" not in done.stdout and "done\n" in done.stderr
    pid, group = place.read_text().split()
    assert pid == group


def test_a_handler_that_fails_hangs_or_is_slow_loses_its_own_lines_only(tmp_path):
    good, two, slow = tmp_path / "good", tmp_path / "two", tmp_path / "slow"
    hangs, ends, missing = "exec sleep 1000", "exit 3", "no-such-command-anywhere"
    reads_two = f'read -r a; read -r b; (echo "$a"; echo "$b") > {two}; exec sleep 1000'
    a_byte_a_second = f"while dd bs=1 count=1 2>/dev/null; do sleep 1; done > {slow}"
    commands = (hangs, f"cat > {good}", ends, missing, reads_two, a_byte_a_second)
    options = [word for command in commands for word in handler(command)]
    done = run(tmp_path, *options, "--handler-wait", "1")
    assert done.returncode == 0 and len(steps_of(done)) == STEPS
    assert worse_than_notes(tmp_path / "traces") == []
    check_whole(good, tmp_path / "traces")
    assert said(done, f"cat > {good}") == []
    first = good.read_text()
    assert first.startswith(two.read_text()) and first.startswith(slow.read_text())
    for command in (hangs, reads_two, a_byte_a_second):
        (line,) = said(done, command)
        assert "did not end with the job, and was killed by SIG" in line
    for command, how in ((ends, "exited with 3"), (missing, "exited with 127: there is no such command")):
        (line,) = said(done, command)
        assert line.endswith(how)


@pytest.mark.parametrize("ending", ["exit", "killed"])
def test_a_job_that_fails_is_followed_to_what_recovery_finds(ending, tmp_path):
    """Its exit code stays its own, and what its killed ranks had not written comes too."""
    got = tmp_path / "got"
    if ending == "killed":
        done = run(tmp_path, *handler(f"cat > {got}"), STANDIN_DIE="1:ncclReduceScatter:25")
        assert done.returncode not in (0, 2)
        assert any('"complete":false' in file.read_text() for file in (tmp_path / "traces").glob("*.json"))
    else:
        done = run(tmp_path, *handler(f"cat > {got}"), trainer=("--steps", "-1"))
        assert done.returncode == 1 and "no NCCL or CUDA call was seen" in done.stderr
    check_whole(got, tmp_path / "traces")


def test_ranks_that_were_there_before_and_those_of_other_runs_are_none_of_its_own(tmp_path):
    options = ("--run-id", "same", *handler(f"cat > {tmp_path / 'got'}"))
    assert run(tmp_path, *options).returncode == 0
    before = {str(path) for path in (tmp_path / "traces").glob("*.json")}
    (tmp_path / "tally").rename(tmp_path / "tally-before")
    assert run(tmp_path, *options).returncode == 0
    after = {str(path) for path in (tmp_path / "traces").glob("*.json")} - before
    _, moments = collected(tmp_path / "got")
    assert set(moments[-1][1]["files"]) == after and len(after) == len(before) == 2


def test_of_parallel_tasks_each_has_the_ranks_of_its_own_command(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    got = [tmp_path / "0", tmp_path / "1"]

    def task(number):
        slurm = {"SLURM_JOB_ID": "55", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(number)}
        options = ["--out", traces, *handler(f"cat > {got[number]}")]
        command = [TPROF, "run", *options, "--", *live.TRAINER, 10**7]
        return running(command, tmp_path, preload=False, TPROF_RING_DIR=str(traces), **slurm)

    def opened(number):
        lines = got[number].read_text().splitlines() if got[number].exists() else []
        return [json.loads(line)["files"][0] for line in lines if line.startswith('{"handler":"open"')]

    with task(0) as first, task(1) as second:
        until(lambda: len(list(traces.glob("*.json"))) == 4 and len(opened(0)) >= 2 and len(opened(1)) >= 2)
        for number, process in enumerate((first, second)):
            headers = [live.header(pathlib.Path(path)) for path in opened(number)]
            assert sorted(header["rank"] for header in headers) == [0, 1]
            trainer = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            assert {str(header["launcher"]["pid"]) for header in headers} <= set(trainer)


def test_a_ctrl_c_ends_the_job_and_no_handler(tmp_path):
    """The terminal sends it to the whole process group of the command."""
    traces, got = tmp_path / "traces", tmp_path / "got"
    traces.mkdir()
    command = [TPROF, "run", "--out", traces, *handler(f"cat > {got}"), "--", *live.TRAINER, 10**7]
    with running(command, tmp_path, preload=False, TPROF_RING_DIR=str(traces)) as process:
        until(lambda: got.exists() and got.read_text().count('"tprof_comm"') >= 2)
        os.killpg(process.pid, signal.SIGINT)
        _, said_at_the_end = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == -signal.SIGINT and "--handler" not in said_at_the_end
    _, moments = collected(got)
    assert [line["handler"] for _, line in moments] == ["open", "open", "close"]


def test_options_that_do_nothing_are_refused_and_a_handler_is_one_word(tmp_path):
    done = tprof("run", "--handler-wait", "1", "--", "true")
    assert done.returncode == 2 and "--handler-wait: only with --handler CMD" in done.stderr
    got = tmp_path / "got"
    done = tprof("run", "--out", tmp_path / "traces", "--handler", f"cat > {got}", "echo", "word")
    assert (done.returncode, done.stdout) == (0, "word\n")
    assert json.loads(got.read_text()) == {"handler": "close", "files": []}

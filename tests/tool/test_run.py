"""tprof run: runs a command as it would run without us, but with the preload, and sums up what it leaves."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest
from generator import ends, habits, rank_files
from lib import faults, jobs, live
from lib.build import BUILD, TPROF
from lib.launch import environment
from lib.tool import generate


@pytest.fixture
def bench(tmp_path):
    """Returns a folder with the binary, a library beside it that does nothing, and a folder to run in."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    shutil.copy(BUILD / "tprof", tmp_path / "bin/tprof")
    source = "int tprof_test_library_is_loaded;"
    library = tmp_path / "bin/libtprof.so"
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    return tmp_path


def plain_environment(**more):
    """Returns an environment without what a launcher around these tests may have set."""
    keep = ("PATH", "HOME", "LANG", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS")
    return {**{name: os.environ[name] for name in keep if name in os.environ}, **more}


def run(bench, *arguments, env=None, **options):
    return subprocess.run(
        [bench / "bin/tprof", "run", *arguments],
        cwd=bench / "work",
        env=env or plain_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def variables(result):
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)


def test_the_command_gets_the_preload_and_its_folder(bench):
    seen = variables(run(bench, "--", "env"))
    assert seen["LD_PRELOAD"] == str(bench / "bin/libtprof.so")
    folder = pathlib.Path(seen["TPROF_OUTPUT_DIR"])
    assert folder.is_absolute()
    assert folder.parent == bench / "work/tprof-traces"
    assert folder.name.startswith("env-")
    assert seen["TPROF_RUN_ID"]


def test_the_folder_of_the_setting_is_taken_and_patterns_are_filled_in(bench):
    def folder(*arguments, **env):
        done = run(bench, *arguments, "--", "env", env=plain_environment(**env))
        assert "nothing was written" in done.stderr, done.stderr
        return variables(done)["TPROF_OUTPUT_DIR"]

    work, host = bench / "work", socket.gethostname()
    assert folder(TPROF_OUTPUT_DIR="mine") == str(work / "mine")
    assert folder("--out", "other", TPROF_OUTPUT_DIR="mine") == str(work / "other")
    assert folder(TPROF_OUTPUT_DIR="x/%j", SLURM_JOB_ID="12") == str(work / "x/12")
    assert folder("--out", "x/%j-%h") == str(work / f"x/nojob-{host}")
    assert folder("--out", "50%%") == str(work / "50%%")  # for the library, which takes it for 50%
    assert sorted(p.name for p in work.iterdir()) == ["50%", "mine", "other", "x"]
    for pattern in ("x/%r", "%p"):
        done = run(bench, "--out", pattern, "--", "env")
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
        assert "a folder for each process" in done.stderr


def test_traces_are_found_where_a_pattern_puts_them(tmp_path):
    env = environment(tmp_path, preload=False, TPROF_OUTPUT_DIR=str(tmp_path / "%j-%h"), SLURM_JOB_ID="7")
    (tmp_path / "tally").mkdir()
    command = [TPROF, "run", "--", *live.TRAINER, "3"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert "calls moved" in done.stderr and "nothing was written" not in done.stderr
    folder = tmp_path / f"7-{socket.gethostname()}"
    assert done.returncode == 0 and len(list(folder.glob("rank-*.json"))) == 2


def test_a_folder_that_can_not_be_made_is_one_line(bench):
    """Nobody can make files in /proc, root neither."""
    (bench / "work/file").touch()
    reasons = {"/proc/foo": "No such file or directory", "file": "Not a directory", "file/a": "Not a directory"}
    for folder, reason in reasons.items():
        done = run(bench, "--out", folder, "--", "env")
        line = f"tprof: {folder}: no folder for the traces can be made there ({reason}): give another one with --out DIR"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line + "\n")


@pytest.mark.parametrize(
    ("users", "all_of_them"),
    [
        ("libm.so.6", "libm.so.6:OURS"),
        ("libasan.so.8 libm.so.6", "libasan.so.8:libm.so.6:OURS"),
        (": libasan.so.8 :libm.so.6:", "libasan.so.8:libm.so.6:OURS"),
        ("OURS:libm.so.6", "OURS:libm.so.6"),
        ("libm.so.6:OURS OURS", "libm.so.6:OURS:OURS"),
        ("../bin/libtprof.so:libm.so.6", "../bin/libtprof.so:libm.so.6"),
        ("/not/there/libtprof.so:libm.so.6", "libm.so.6:OURS"),
        ("libm.so.6:/not/there/libnccl.so.2:libz.so", "libm.so.6:OURS:/not/there/libnccl.so.2:libz.so"),
    ],
)
def test_ours_comes_behind_the_preloads_of_the_user(bench, users, all_of_them):
    """But before NCCL itself, which would answer all calls, and once."""
    ours = f"{bench}/bin/libtprof.so"
    done = run(bench, "--", "env", env=plain_environment(LD_PRELOAD=users.replace("OURS", ours)))
    assert variables(done)["LD_PRELOAD"] == all_of_them.replace("OURS", ours)


@pytest.mark.parametrize("length", [1, 63, 64])
def test_the_host_has_its_whole_name(tmp_path, length):
    """Linux takes 64 characters."""
    name = "h" * length
    script = f"hostname {name} && exec {BUILD}/tprof run --out {tmp_path}/run -- {BUILD}/many_ranks 1 1"
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to give the host a name")
    env = plain_environment(LD_LIBRARY_PATH=str(BUILD / "standin"), TPROF_METRICS="10ms")
    done = subprocess.run(["unshare", "--uts", "sh", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = list((tmp_path / "run").glob("*.json"))
    assert files and all(f'"host":"{name}"' in file.read_text() for file in files)


def test_options_become_settings(bench):
    options = ["--events", "off", "--quota", "1GiB", "--ranks", "0-7", "--run-id", "mine"]
    seen = variables(run(bench, *options, "--out", "here", "--", "env"))
    assert seen["TPROF_EVENTS"] == "off"
    assert seen["TPROF_QUOTA"] == "1GiB"
    assert seen["TPROF_RANKS"] == "0-7"
    assert seen["TPROF_RUN_ID"] == "mine"
    assert seen["TPROF_OUTPUT_DIR"] == str(bench / "work/here")


def test_settings_of_the_user_are_left_alone(bench):
    environment = plain_environment(TPROF_QUOTA="5", TPROF_RUN_ID="theirs")
    seen = variables(run(bench, "--", "env", env=environment))
    assert (seen["TPROF_QUOTA"], seen["TPROF_RUN_ID"]) == ("5", "theirs")
    assert "TPROF_EVENTS" not in seen


def test_the_library_is_found_in_lib_beside_bin(bench):
    (bench / "lib").mkdir()
    (bench / "bin/libtprof.so").rename(bench / "lib/libtprof.so")
    seen = variables(run(bench, "--", "env"))
    assert os.path.samefile(seen["LD_PRELOAD"], bench / "lib/libtprof.so")


def test_words_in_brackets_reach_the_command_as_they_are(bench):
    """CLI11 takes them for lists."""
    words = ["[a,b]", "[ x ]", "[]", "[[1,2],[3]]", "x", "[", "]", ""]
    for before in (["--quiet", "--"], ["--quiet"]):
        assert run(bench, *before, "printf", "<%s>", *words).stdout == "".join(f"<{word}>" for word in words)
    assert run(bench, "--quiet", "--", "sh", "-c", '[ "$0" = "[y]" ]', "[y]").returncode == 0


def test_a_missing_library_is_said_before_anything_runs(bench):
    (bench / "bin/libtprof.so").unlink()
    result = run(bench, "--", "touch", "ran")
    assert result.returncode == 2
    assert "libtprof.so found neither as" in result.stderr
    assert list((bench / "work").iterdir()) == []


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_exit_code_and_output_are_the_commands_own(bench, code):
    result = run(bench, "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert result.returncode == code
    assert result.stdout == "out\n"
    assert result.stderr.startswith("err\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_command_killed_by_a_signal_makes_us_die_of_it(bench, number):
    assert run(bench, "--", "sh", "-c", f"kill -{int(number)} $$").returncode == -number


def test_a_command_that_can_not_be_run_is_named_as_shells_do(bench):
    result = run(bench, "--", "no-such-command")
    assert result.returncode == 127
    assert "tprof: no-such-command: No such file or directory" in result.stderr
    assert run(bench, "--", "/").returncode == 126


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "TERM", "USR1", "USR2"])
def test_signals_reach_the_command(bench, name):
    script = f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [bench / "bin/tprof", "run", "--", "sh", "-c", script],
        cwd=bench / "work",
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, "SIG" + name))
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == (f"got {name}\n", 3)


def test_arguments_of_the_command_are_not_ours(bench):
    result = run(bench, "--", "sh", "-c", 'echo "$@"', "sh", "--help", "--out", "x", "--", "-y")
    assert result.stdout == "--help --out x -- -y\n"


def test_a_command_that_makes_no_call_leaves_nothing(bench):
    result = run(bench, "--", "true")
    assert "no NCCL or CUDA call was seen" in result.stderr
    assert list((bench / "work").iterdir()) == []


def copy_traces(bench):
    """Returns a command that 'traces': it copies ready rank files to where it was told to."""
    generate(bench / "ready", 2, 10)
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for file in (bench / "ready").iterdir():
        text = file.read_text().replace('"run_id":"job-0"', '"run_id":"mine"')
        file.write_text(text.replace('"boot_id":"boot-0"', f'"boot_id":"{boot_id}"'))
    return ["sh", "-c", f"cp {bench}/ready/* $TPROF_OUTPUT_DIR; echo done"]


def test_the_summary_comes_at_the_end_on_standard_error(bench):
    result = run(bench, "--run-id", "mine", "--", *copy_traces(bench))
    assert result.stdout == "done\n"
    assert "Totals over 2 processes" in result.stderr
    assert "tprof merge tprof-traces/sh-" in result.stderr
    assert "Totals" not in run(bench, "--quiet", "--", "true").stderr


def of_this_run(bench, made, attempt):
    """Puts the files of a folder where the command takes them from, as of an attempt of run "mine" on this host."""
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (bench / "ready").mkdir(exist_ok=True)
    for file in made.iterdir():
        text = re.sub(r'"(run_id|boot_id)":"[^"]*"', lambda m: f'"{m[1]}":"{"mine" if m[1] == "run_id" else boot_id}"',
                      file.read_text())  # fmt: skip
        text = text.replace('"restart":0', f'"restart":{attempt}').replace('"pid":4', f'"pid":{4 + attempt}')
        text = re.sub(r"17636831\d{11}|17636832\d{11}", lambda m: str(int(m[0]) + attempt * 60 * 10**9), text)
        name = file.name if attempt == 0 else file.name.replace(".json", f".r{attempt}.json")
        (bench / "ready" / name).write_text(text)


def test_of_a_job_that_was_started_again_each_attempt_has_its_end_and_the_last_one_the_page(bench):
    first, op = faults.plant_killed(jobs.healthy(2, 30, 1), 1, 0, 12)
    of_this_run(bench, first.write(bench / "made0"), 0)
    of_this_run(bench, jobs.healthy(2, 30, 2).write(bench / "made1"), 1)
    result = run(bench, "--run-id", "mine", "--out", "o", "--", "sh", "-c", f"cp {bench}/ready/* $TPROF_OUTPUT_DIR")
    said = result.stderr.splitlines()
    (why,) = [line for line in said if line.startswith("attempt ")]
    assert why.startswith(f"attempt 1: rank 1 never came to collective 12 ({op.function})")
    assert "(tprof check o --attempt 1)" in said[said.index(why) + 1]
    assert sum(line.startswith("Totals over") for line in said) == 1
    assert any(line.startswith("The ranks did nothing wrong") for line in said)
    assert "open o/report.html" in result.stderr
    assert (bench / "work/o/report.html").read_text().startswith("<!doctype html><!-- tprof report -->")


def test_a_deadlock_is_told_before_what_only_costs_time(bench):
    rank_files.write(ends.given_up(habits.run(ends.DEADLOCK.but(ranks=2)), 12 * ends.S), bench / "made")
    of_this_run(bench, bench / "made", 0)
    result = run(bench, "--run-id", "mine", "--", "sh", "-c", f"cp {bench}/ready/* $TPROF_OUTPUT_DIR")
    _, first, *others = result.stderr.splitlines()[1:]  # behind whose summary it is
    assert first.startswith("Ranks 0,1 wait for each other: rank 0 in collective "), result.stderr
    assert any(line.startswith("note: rank 0 computes longer than the others") for line in others)


def test_parallel_tasks_of_one_launch_share_a_folder_and_one_of_them_speaks(bench):
    command = copy_traces(bench)
    results = []
    for task in ("0", "1"):
        slurm = {"SLURM_JOB_ID": "55", "SLURM_STEP_ID": "0", "SLURM_PROCID": task}
        environment = plain_environment(**slurm)
        results.append(run(bench, "--run-id", "mine", "--", *command, env=environment))
    assert [path.name for path in (bench / "work/tprof-traces").iterdir()] == ["sh-55.0"]
    assert ["Totals" in result.stderr for result in results] == [True, False]


def test_in_a_shared_folder_other_hosts_are_not_missing(bench):
    command = copy_traces(bench)
    other = bench / "ready/rank-00001.json"
    other.write_text(other.read_text().replace('"boot_id":"', '"boot_id":"other-'))
    result = run(bench, "--run-id", "mine", "--out", "shared", "--", *command)
    assert "Totals over 1 process" in result.stderr
    assert "have no trace" not in result.stderr
    assert "Next: tprof report shared  (all hosts)" in result.stderr


TRAINER = BUILD / "native_trainer"


def run_a_rank_that_dies(folder, used, task):
    """Runs the built tprof and library on the stand-in: one of two ranks dies, and both are killed.
    Returns the bytes that the command read, the ranks included, and what it said."""
    slurm = {"SLURM_JOB_ID": "55", "SLURM_STEP_ID": "0", "SLURM_PROCID": task}
    dies = {"STANDIN_DIE": "1:ncclReduceScatter:5", "LD_LIBRARY_PATH": str(BUILD / "standin")}
    command = [BUILD / "bench_usage", used, BUILD / "tprof", "run", "--out", folder]
    result = subprocess.run(
        [*command, "--run-id", "mine", "--", TRAINER, "--ranks", "2", "--steps", "50"],
        env=plain_environment(**slurm, **dies),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode != 0
    return json.loads(used.read_text())["read_bytes"], result.stderr


def foreign_files(folder, ranks):
    """Makes the files of a run's other hosts, in the folder that they share."""
    job = jobs.plain(ranks, 10)
    for rank in job.ranks:
        rank.end = "lost"
    job.write(folder)
    for file in list(folder.iterdir()):
        text = file.read_text().replace('"run_id":"job-0"', '"run_id":"mine"')
        file.rename(folder / f"of-others-{file.name}").write_text(text)


def test_what_the_dead_left_is_recovered_whatever_else_is_in_the_folder(tmp_path):
    """A task that prints no summary reads nothing of what other hosts wrote; one that does reads
    their first lines. Each uses up the ring files of its own dead ranks."""
    read = {}
    for task in ("0", "1"):
        for others in (0, 400):
            folder = tmp_path / f"{task}-{others}"
            foreign_files(folder, others)
            read[task, others], said = run_a_rank_that_dies(folder, tmp_path / "used", task)
            assert list(folder.glob(".*")) == []
            ours = sorted(folder.glob("rank-*.json"))
            assert len(ours) == 2
            assert all('"complete":false' in file.read_text() for file in ours)
            assert ("Totals over 2 processes" in said) == (task == "0")
            assert ("have no trace" in said) is False
            assert ("(all hosts)" in said) == (task == "0" and others != 0)
    slack = 1 << 20  # the ranks do not read the same each time
    assert read["1", 400] - read["1", 0] < slack < 400 * 4096
    assert read["0", 400] - read["0", 0] < 400 * 8192 + slack

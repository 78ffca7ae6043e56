"""tprof answers what a new user types wrong."""

import os
import re

import pytest
from lib.tool import generate, tprof


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sumary", "DIR"], "expected a command, found 'sumary': did you mean summary? (tprof --help lists them)"),
        (["xyzzy"], "expected a command, found 'xyzzy' (tprof --help lists them)"),
        (["--hlep"], "expected a command, found '--hlep': did you mean --help? (tprof --help lists them)"),
        (["-x", "DIR"], "expected a command, found '-x' (tprof --help lists them)"),
        (["help", "mrge"], "expected a command, found 'mrge': did you mean merge? (tprof --help lists them)"),
        ([], "expected a command, such as tprof run -- CMD, or tprof report DIR (tprof --help lists them)"),
        (["report", "--hlep"],
         "The following argument was not expected: --hlep: did you mean --help? (see tprof report --help)"),
        (["merge", "DIR", "--outptu=x"], "--output is required: did you mean --output? (see tprof merge --help)"),
        (["summary", "DIR", "--by", "foo"], "--by: expected one of .*rank.*; found foo .*"),
        (["run", "--quota", "foo", "--", "true"], "--quota: expected bytes such as 64MiB, or 0 for no limit; found foo"),
        (["run", "--ranks", "7-0", "--", "true"], "--ranks: expected ranks such as 0-7,64, or all; found 7-0"),
        (["summary"], "expected a PATH, as ./tprof-traces has no run"),
    ],
)  # fmt: skip
def test_one_line_says_what_was_expected(words, line, tmp_path):
    done = tprof(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(re.escape("tprof: ") + (line if ".*" in line else re.escape(line)) + "\n", done.stderr)


@pytest.mark.parametrize(
    ("command", "option", "value", "expected"),
    [
        ("budget", "--params", "abc", "a number above 0, such as 7e9"),
        ("budget", "--params", "0", "a number above 0, such as 7e9"),
        ("budget", "--params", "nan", "a number above 0, such as 7e9"),
        ("budget", "--root-params", "x", "a number of 0 or more, such as 5e8"),
        ("budget", "--tolerance", "5%", "a number of 0 or more, such as 1.5"),
        ("budget", "--layers", "1.5", "a whole number of 1 or more, such as 32"),
        ("budget", "--steps", "9999999999", "a whole number from 1 to 4294967296, such as 100"),
        ("check", "--stuck-after", "x", "a number of seconds of 0 or more, such as 60"),
        ("run", "--stuck-after", "0", "a number of seconds of 1 or more, such as 60"),
        ("run", "--handler-wait", "-1", "a number of seconds of 0 or more, such as 10"),
        ("run", "--keep-windows", "some", "a whole number of 0 or more, such as 3"),
        ("summary", "--attempt", "0", "a whole number of 1 or more, such as 2"),
        ("summary", "--top", "1e3", "a whole number from 1 to 1000, such as 20"),
        ("summary", "--bins", "1001", "a whole number from 1 to 1000, such as 20"),
        ("summary", "--epoch", "-1", "a whole number of 0 or more, such as 1"),
        ("top", "--interval", "0", "a number of seconds of 0.01 or more, such as 2"),
    ],
)
def test_what_is_no_number_is_one_short_line(command, option, value, expected, tmp_path):
    behind = ["--", "true"] if command == "run" else [tmp_path]
    done = tprof(command, f"{option}={value}", *behind)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tprof: {option}: expected {expected}; found '{value}' (see tprof {command} --help)\n"


def test_numbers_are_taken_as_people_write_them(tmp_path):
    generate(tmp_path, 2, 12)
    for words in (["--top", "0x10"], ["--top", "1000"], ["--bins", "+3", "--hist", "ncclAllReduce"]):
        done = tprof("summary", tmp_path, *words)
        assert (done.returncode, done.stderr) == (0, ""), words


@pytest.mark.parametrize("command", ["summary", "check", "report", "replay"])
def test_without_a_path_the_newest_run_is_taken(command, tmp_path):
    traces = tmp_path / "tprof-traces"
    for n, name in enumerate(["b-first", "a-last", "no-run"]):
        (traces / name).mkdir(parents=True)
        if name != "no-run":
            generate(traces / name, 2 + n, 12)
        os.utime(traces / name, (1000 + n, 1000 + n))
    done = tprof(command, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "tprof: tprof-traces/a-last, the newest run here\n")
    assert done.stdout == tprof(command, "tprof-traces/a-last", "--json", cwd=tmp_path).stdout


def test_commands_for_jobs_that_run_take_the_newest_run_too(tmp_path):
    generate(tmp_path / "tprof-traces" / "only", 2, 12)
    done = tprof("top", "--once", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "tprof: tprof-traces/only, the newest run here\n")
    assert done.stdout == tprof("top", "tprof-traces/only", "--once", "--json", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "as_words"),
    [
        (["help"], ["--help"]),
        (["-h"], ["--help"]),
        (["help", "merge"], ["merge", "--help"]),
        (["version"], ["--version"]),
        (["-V"], ["--version"]),
    ],
)
def test_what_other_tools_have_as_a_command_is_understood(words, as_words):
    done, same = tprof(*words), tprof(*as_words)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", same.stdout)
    assert done.stdout


def test_run_says_how_its_command_ended(tmp_path):
    for script, line in (("exit 3", "exited with 3"), ("kill -9 $$", "was ended by signal 9 (Killed)")):
        assert f"tprof: the command {line}\n" in tprof("run", "--", "sh", "-c", script, cwd=tmp_path).stderr
    assert "the command" not in tprof("run", "--", "true", cwd=tmp_path).stderr

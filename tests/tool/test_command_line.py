"""What a new user types wrong, and what tprof says to it."""

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
         "The following argument was not expected: --hlep: did you mean --help? (tprof report --help tells more)"),
        (["merge", "DIR", "--outptu=x"], "--output is required: did you mean --output? (tprof merge --help tells more)"),
        (["summary", "DIR", "--by", "foo"], "--by: expected one of .*rank.*; found foo .*"),
        (["run", "--quota", "foo", "--", "true"], "--quota: expected bytes such as 64MiB, or 0 for no limit; found foo"),
        (["run", "--ranks", "7-0", "--", "true"], "--ranks: expected ranks such as 0-7,64, or all; found 7-0"),
        (["summary"], "expected a PATH: there is no run in ./tprof-traces to take for it"),
    ],
)  # fmt: skip
def test_one_line_says_what_was_expected(words, line, tmp_path):
    done = tprof(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(re.escape("tprof: ") + (line if ".*" in line else re.escape(line)) + "\n", done.stderr)


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

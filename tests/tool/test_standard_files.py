"""Standard output and error that are full, closed, or a pipe that nobody reads: no command's exit code, and nothing
else that it does, depends on who reads what it says."""

import itertools
import os
import re
import signal
import subprocess

import pytest
from lib.build import BUILD, REPO, STANDIN
from lib.tool import generate

# Each command with words that make it say something, in a folder with the traces a and b.
ON_TRACES = (
    "report a", "report a --json", "report a -o a.html", "report a -o -", "summary a", "summary a --json", "check a",
    "check a --json", "diff a b", "diff a b --json", "budget a --steps 1", "budget a --steps 1 --write x.json",
    "merge a -o x.json", "merge a -o -", "export a --sqlite x.db", "export a --csv x", "export a --kineto x",
    "replay a", "anonymize a -o x", "recover a", "doctor", "doctor a", "doctor -- sh", "top a --once", "tail a --from-start",
    "metrics a", "metrics a --textfile x.prom", "watch a", "ctl status a", "summary tprof-traces", "summary",
)  # fmt: skip
OF_THE_TOOL = ("coverage", "coverage --json", "completion bash", "completion fish", "--version", "--help", "run --help")
WRONG = ("", "nonsense", "--nonsense", "summary --nonsense", "summary nowhere", "merge a", "diff a", "tail nowhere")
RUNS = ("run true", "run -- sh -c 'exit 7'", "run nonsense", "run --quiet -- sh -c 'kill -9 $$'", "run CALLS", "run --handler 'exit 3' CALLS")


@pytest.fixture
def folder(tmp_path):
    """Returns a folder for each run: what one has written would be in the way of the next."""
    names = itertools.count()

    def make():
        one = tmp_path / str(next(names))
        generate(one / "a", 2, 50, 1)
        generate(one / "b", 2, 60)
        return one

    return make


def run(words, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options):
    words = words.replace("CALLS", f"-- {BUILD}/many_ranks 1 1")
    environment = os.environ | {"LD_LIBRARY_PATH": str(STANDIN)}
    program = words.split()[0] if words.startswith("tprof-") else f"tprof {words}"
    command = ["sh", "-c", f"exec {BUILD}/{program}"]
    return subprocess.run(
        command, cwd=folder(), env=environment, stdout=stdout, stderr=stderr, text=True, timeout=60, **options
    )


def nobody_reads():
    """Returns the end of a pipe of which the other one is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w")


WAYS = {"full": lambda: open("/dev/full", "w"), "closed": lambda: None, "a pipe": nobody_reads}


def run_with(way, fd, words, folder):
    with WAYS[way]() or open(os.devnull) as file:
        options = {"preexec_fn": lambda: os.close(fd)} if way == "closed" else {}
        return run(words, folder, **{("", "stdout", "stderr")[fd]: file}, **options)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", (*ON_TRACES, *OF_THE_TOOL, *WRONG, *RUNS))
def test_nobody_reads(tmp_path, folder, words, way):
    usual = run(words, folder)
    assert usual.returncode in (0, 1, 2, 7, 127, -9)
    done = run_with(way, 2, words, folder)
    assert done.returncode == usual.returncode
    assert (done.stdout == "") == (usual.stdout == "")
    done = run_with(way, 1, words, folder)
    if not usual.stdout:
        assert done.returncode == usual.returncode
    elif way == "a pipe":
        assert done.returncode == -signal.SIGPIPE  # as any program that is left by its reader
    else:
        why = {"full": "No space left on device", "closed": "Bad file descriptor"}[way]
        assert done.returncode == 2
        said = done.stderr.splitlines()[-1]
        assert said.startswith("tprof: standard output: ") and said.endswith(why)
    traces = [{file.name: file.read_bytes() for file in (tmp_path / run / "a").iterdir()} for run in "012"]
    assert traces[0] == traces[1] == traces[2]  # a message is in no file that got the number of a closed one


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", ["tprof-node", "tprof-mpi"])
def test_a_program_of_the_tool_that_nobody_hears(folder, program, way):
    assert run_with(way, 2, program, folder).returncode == 2


def test_the_tool_speaks_in_one_place():
    throwing = re.compile(r"fmt::print\(|\bstd(out|err)\b|std::(cout|cerr|clog)|perror")
    files = [file for file in (REPO / "analysis").glob("*/*") if file.suffix in (".cpp", ".h")]
    assert {file.stem for file in files if throwing.search(file.read_text())} == {"print"}

"""One thing is wrong in a folder of good rank files: summary, check, report and budget tell of the others, and in
one line of what is wrong. (test_bad_input.py: nothing can be read.)"""

import gzip
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import pytest
from generator import causes, rank_files
from lib import handmade
from lib.build import TPROF
from lib.rankfile import named, parsed

RANKS = 4
# Runs a command, and writes behind its messages how many kB it used at most.
PEAK = [sys.executable, "-c", """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)"""]
@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("healthy")
    rank_files.write(causes.case("fsdp", RANKS, None, 1, 6), folder / "one", 1)
    budget = subprocess.run([TPROF, "budget", folder / "one", "--write", folder / "budget.json"], check=False)
    assert budget.returncode == 0
    return folder


@pytest.fixture
def job(healthy, tmp_path):
    shutil.copytree(healthy / "one", tmp_path / "job")
    return tmp_path / "job"


def file_of(folder, rank):
    return folder / f"rank-{rank:05}.json"


@pytest.fixture(params=["summary", "check", "report", "budget"])
def say(request, healthy):
    """Returns say(folder, status), which gives all that a command prints, each run of white space as one space.

    Paths are given as seen from the folder of the test, so that a screen has room for them and what is said."""

    def call(*paths, status, limit_s=30, more=(), around=(), **options):
        seen_from = paths[0].parent if paths[0].name == "job" else paths[0].parents[1]
        short = [path.relative_to(seen_from) if path.is_relative_to(seen_from) else path for path in paths]
        command = [*around, TPROF, request.param, *more, *map(str, short)]
        if request.param == "budget":
            command += ["--budget", healthy / "budget.json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s, cwd=seen_from, **options)
        assert done.returncode == status, (done.stdout, done.stderr)
        assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr)
        return re.sub(r"\s+", " ", done.stdout + done.stderr)

    call.command = request.param
    return call


def says_of_a_file(said, file, why):
    return f" {file.parent.name}/{file.name}: {why}" in said


def changed(file, old, new):
    text = file.read_text()
    assert re.search(old, text), old
    file.write_text(re.sub(old, new, text))


def test_a_healthy_job_is_all_right(say, job):
    """Else nothing below would mean anything."""
    assert "error" not in say(job, status=0)


def test_two_versions_of_the_schema(say, job):
    changed(file_of(job, 2), '"schema":"tprof/1"', '"schema":"tprof/2"')
    said = say(job, status=1)
    assert "1 of 4 ranks has no trace: 2" in said.lower()
    assert says_of_a_file(said, file_of(job, 2), "byte 2: written by tprof 0.1.0 in schema tprof/2")


def test_world_sizes_that_differ(say, job):
    changed(file_of(job, 2), f'"world_size":{RANKS}', '"world_size":6')
    said = say(job, status=0 if say.command == "budget" else 1)
    assert "anks have different world sizes: 4 on ranks 0,1,3, 6 on rank 2; 6 is used here" in said
    assert "2 of 6 ranks have no trace: 4,5" in said


def test_a_rank_that_was_started_twice(say, job):
    again = job / "rank-00001-again.json"
    text = re.sub(r'"pid":(\d+),"start_ns"', '"pid":99,"start_ns"', file_of(job, 1).read_text())
    again.write_text(text)
    said = say(job, status=0 if say.command == "budget" else 1)
    assert "2 processes have rank 1 of one communicator: " in said and f"job/{again.name}" in said


def test_a_wall_clock_that_was_set_back(say, job):
    """Only those that look at the times say it. The second reading of both clocks is two seconds early."""
    ((monotonic, realtime, error),) = named(parsed(file_of(job, 1)), "tprof_header")[0]["clock"]
    late = handmade.metadata("tprof_clock", clock=[monotonic + 10**9, realtime - 10**9, error]) | {"pid": 1}
    handmade.insert(file_of(job, 1), late, before='"tprof_footer"')
    looks = say.command in ("check", "report")
    said = say(job, status=1 if looks else 0)
    assert ("was set back by 2" in said) == looks


def test_no_footer(say, job):
    lines = file_of(job, 1).read_text().split("\n")
    footer = next(i for i, line in enumerate(lines) if "tprof_footer" in line)
    file_of(job, 1).write_text("\n".join(lines[:footer]) + "\n")
    said = say(job, status=0 if say.command == "budget" else 1)
    assert "ank 1 did not close, and there is no ring file: the counts are exact until " in said


@pytest.mark.parametrize("kind", ["empty", "folder", "pipe", "link", "loop"])
def test_what_is_no_file(say, job, kind):
    file = file_of(job, 3)
    file.unlink()
    make = {
        "empty": file.touch, "folder": file.mkdir, "pipe": lambda: os.mkfifo(file),
        "link": lambda: file.symlink_to("nothing"), "loop": lambda: file.symlink_to(file.name),
    }  # fmt: skip
    make[kind]()
    why = {
        "empty": "empty file, left out", "folder": "a folder, not a file; left out",
        "pipe": "a pipe, not a file; left out", "link": "a broken link; left out",
        "loop": "Too many levels of symbolic links; left out",
    }  # fmt: skip
    said = say(job, status=1)
    assert says_of_a_file(said, file, why[kind]) and "1 of 4 ranks has no trace: 3" in said
    if kind != "folder":  # by name it is the folder that holds the rank files
        assert says_of_a_file(say(*sorted(job.iterdir()), status=1), file, why[kind])


def test_a_pipe_alone_is_not_waited_for_and_one_without_a_name_is_read(say, job, tmp_path):
    os.mkfifo(tmp_path / "rank.json")
    assert say(tmp_path / "rank.json", status=2).endswith("/rank.json: a pipe, not a file ")
    if say.command != "summary":
        return  # the others read lines, which are gone by then
    with subprocess.Popen(["cat", file_of(job, 0)], stdout=subprocess.PIPE) as cat:
        assert "3 of 4 ranks have no trace: 1-3" in say(pathlib.Path("/dev/stdin"), status=1, stdin=cat.stdout)


def test_a_file_that_this_user_may_not_read(say, job, healthy):
    """Root may read all, so root becomes another for this."""
    file_of(job, 3).chmod(0)
    for folder in (job, healthy, *job.parents):
        if os.geteuid() == 0 and "pytest" in str(folder):
            folder.chmod(0o755)
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        subprocess.run([TPROF, "--version"], check=True, stdout=subprocess.DEVNULL, **other)
    except PermissionError:
        pytest.skip("needs a place where others may run the tool")
    said = say(job, status=1, **other)
    assert says_of_a_file(said, file_of(job, 3), "Permission denied; left out")
    assert "1 of 4 ranks has no trace: 3" in said


def test_gzip_that_was_cut_short(say, job):
    packed = gzip.compress(file_of(job, 1).read_bytes())
    file_of(job, 1).unlink()
    (job / "rank-00001.json.gz").write_bytes(packed[: len(packed) // 2])
    said = say(job, status=0 if say.command == "budget" else 1)
    assert "ank 1 left a truncated compressed file: its end is unknown" in said
    assert "{" not in said.replace("{}", "")


FOREIGN = {
    "kineto.json": json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::add"}]}, indent=1),
    "nsys.json": '{"Type":80,"CudaEvent":{"startNs":"1"}}\n{"Type":79}\n',
    "package.json": '{\n  "name": "left-pad",\n  "version": "1.0.0"\n}\n',
    "chrome.json": '[\n{"ph":"X","name":"main","ts":1,"dur":2,"pid":1,"tid":1}\n]\n',
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_tools(say, job, name, tmp_path):
    (job / name).write_text(FOREIGN[name])
    why = "a trace of another tool" if name == "kineto.json" else "expected "
    assert says_of_a_file(say(job, status=0), job / name, why)
    (tmp_path / name).write_text(FOREIGN[name])
    said = say(tmp_path / name, status=2)
    way_on = "merge --with takes it" if name == "kineto.json" else "not a tprof trace"
    assert re.fullmatch(rf"tprof: \S*/{name}: {why}.* {way_on} ", said)


def sparse(file, size):
    """Puts a hole in the middle of a file, so that it has one line that never ends."""
    text = file.read_bytes()
    half = text.index(b"\n", len(text) // 2) + 1
    with open(file, "wb") as out:
        out.write(text[:half])
        out.seek(size)
        out.write(b"\n" + text[half:])
    return half


def test_20_gb_with_one_broken_line(say, job):
    """The counts are at the end, so that `summary` needs no more. The others give up at the line, and say where."""
    half = sparse(file_of(job, 1), 20 << 30)

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    said = say(job, status=0 if say.command == "summary" else 1, around=PEAK, preexec_fn=limits)
    assert int(said.split()[-1]) < 1 << 20, f"{said.split()[-1]} kB"
    assert "run synthetic-fsdp-1: " in said or f"byte {half}: expected a line break within 64 MiB" in said
    if say.command == "budget":
        assert "Each of ranks 0,2,3 in a step" in said
